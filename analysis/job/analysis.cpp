// Runs the stages in order and copies out what reports need.
#include "analysis/job/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "analysis/account/idle.h"
#include "analysis/gain.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/base/parallel.h"
#include "trace/build/missing_rows.h"

namespace trainprof {
namespace {

// Mean of the kernels' theoretical occupancy, weighted by their time within the window.
double OccupancyOf(const Trace& trace, const Steps& steps, DeviceId device) {
  if (trace.launch_configs.empty()) return -1;
  double weighted = 0;
  double weight = 0;
  for (uint32_t row = 0; row < trace.device_ops.size(); ++row) {
    CancelPoint(row);
    if (trace.tracks[Index(trace.device_ops.track[row])].device != device) continue;
    const LaunchConfig* const config = trace.ConfigOf(Row{row});
    if (config == nullptr || config->theoretical_occupancy_percent < 0) continue;
    const Interval interval = trace.device_ops.interval(Row{row});
    const auto ns = static_cast<double>(steps.device_window.TotalWithin(interval).ns);
    weighted += config->theoretical_occupancy_percent / 100 * ns;
    weight += ns;
  }
  return weight > 0 ? weighted / weight : -1;
}

DeviceReport Report(const Trace& trace, const Steps& steps, const DeviceAccount& account) {
  const Device& device = trace.devices[Index(account.device)];
  DeviceReport report;
  report.id = device.id;
  report.name = trace.Text(device.name);
  report.busy = account.BusyWithin(steps.device_window);
  report.busy_high = report.busy + account.Of(DeviceClass::kIdleUnrecorded);
  report.account = LinesOf<DeviceClass>(account.total);
  if (device.compute_major > 0) {
    report.compute_capability =
        std::to_string(device.compute_major) + "." + std::to_string(device.compute_minor);
  }
  report.multiprocessors = device.num_sms;
  report.memory_bytes = device.total_memory_bytes;
  report.is_mig_slice = device.is_mig_slice;
  report.occupancy = OccupancyOf(trace, steps, account.device);
  return report;
}

LoaderWait LoaderWaitOf(const Steps& steps, std::span<const DeviceAccount> devices,
                        const HostAccount& host) {
  const IntervalSet wait = host.InputWait().IntersectWith(steps.window);
  LoaderWait loader{wait.Total(), {}};
  if (devices.empty()) loader.during_idle = loader.total;
  for (const DeviceAccount& device : devices) {
    loader.during_idle = std::max(loader.during_idle, wait.Minus(device.busy).Total());
  }
  return loader;
}

// Rules judge by the cost; what is worth a change is told by its gain.
void JudgeByGain(double step_ms, Finding& finding) {
  const double least = kNoteShare * step_ms;
  if (finding.gain.expected_ms_per_step < least) {
    finding.severity = Severity::kNote;
  } else if (finding.gain.low_ms_per_step >= least) {
    finding.severity = std::max(finding.severity, Severity::kWarning);
  }
}

// A loss too small to be worth a change is no finding; one that is hardly worth it, a note.
bool IsWorthSaying(const RankModel& model, const Change& change, Finding& finding) {
  const double step = model.device_steps.MeanMilliseconds();
  // What costs much and gives nothing when it is gone hides behind something else.
  // It is said where it is much, since the verdict names it.
  constexpr double kMuch = 0.05;  // of a step
  const double least = IsTrusted(model) && IsReplay(change) ? kMuch : kLeastShare;
  const bool costs = model.PerStepMs(finding.cost) >= least * step;
  if (!costs && finding.gain.high_ms_per_step < kLeastShare * step) return false;
  JudgeByGain(step, finding);
  return true;
}

// Largest gain first; of two that give the same, as far as is known, that which `goes_before` says.
template <class GoesBefore>
std::vector<size_t> OrderOf(const std::vector<Finding>& findings, GoesBefore goes_before) {
  std::vector<size_t> order(findings.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return findings[a].gain.expected_ms_per_step > findings[b].gain.expected_ms_per_step;
  });
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const bool is_same = MayBeEqual(findings[order[i]].gain, findings[order[i + 1]].gain);
    if (is_same && goes_before(order[i + 1], order[i])) std::swap(order[i], order[i + 1]);
  }
  return order;
}

// Of a joint gain each further change is a few replays, and behind some nobody looks.
constexpr size_t kMostJoint = 5;

// To write launches anew is the most work of all, and needs what a capture does not take to go first.
bool IsLastResort(const Change& change) { return change.edit == Edit::kLaunchAsGraph; }

// Behind those others beside which it gives too little to be worth that.
void PutLastResortBehind(const RankModel& model, const std::vector<Change>& changes,
                         const std::vector<Finding>& findings, std::vector<size_t>& order) {
  const double least = kNoteShare * model.device_steps.MeanMilliseconds();
  const auto is_worth_more = [&](size_t i) {
    return IsReplay(changes[i]) && !IsLastResort(changes[i]) &&
           findings[i].gain.expected_ms_per_step >= least;
  };
  const auto it = std::ranges::find_if(order, [&](size_t i) { return IsLastResort(changes[i]); });
  auto last = it;
  std::vector<const Change*> others;
  for (auto at = order.begin(); at != order.end() && others.size() + 1 < kMostJoint; ++at) {
    if (!is_worth_more(*at)) continue;
    others.push_back(&changes[*at]);
    if (at > it) last = at;
  }
  if (last == it) return;
  const double without = JointGain(model, others);
  others.push_back(&changes[*it]);
  if (JointGain(model, others) - without < least) std::rotate(it, it + 1, last + 1);
}

// In that order, of the same gain the change that is less work first (Edit), and then that of what costs more; of
// each what it gives beyond those before it.
void OrderByGain(const RankModel& model, const std::vector<Change>& changes,
                 RankAnalysis& analysis) {
  auto order = OrderOf(analysis.findings, [&](size_t a, size_t b) {
    if (changes[a].edit != changes[b].edit) return changes[a].edit < changes[b].edit;
    return analysis.findings[a].cost > analysis.findings[b].cost;
  });
  if (IsTrusted(model)) PutLastResortBehind(model, changes, analysis.findings, order);
  std::vector<Finding> sorted;
  std::vector<const Change*> made;
  std::vector<size_t> findings;  // of `sorted`, whose changes these are
  for (const size_t i : order) {
    if (IsTrusted(model) && IsReplay(changes[i]) && made.size() < kMostJoint) {
      made.push_back(&changes[i]);
      findings.push_back(sorted.size());
    }
    Finding& finding = sorted.emplace_back(std::move(analysis.findings[i]));
    finding.gain.further_ms_per_step = finding.gain.expected_ms_per_step;
  }
  std::vector<double> joint(made.size());
  std::vector<std::function<void()>> jobs;
  for (size_t i = 1; i < made.size(); ++i) {
    jobs.emplace_back([&, i] { joint[i] = JointGain(model, std::span(made).first(i + 1)); });
  }
  RunAll(jobs);
  double together = made.empty() ? 0 : sorted[findings[0]].gain.expected_ms_per_step;
  for (size_t i = 1; i < made.size(); ++i) {
    Gain& gain = sorted[findings[i]].gain;
    const double all = std::max(together, joint[i]);
    gain.further_ms_per_step = std::min(gain.expected_ms_per_step, all - together);
    together = all;
    if (IsLastResort(*made[i]) &&
        gain.further_ms_per_step < kNoteShare * model.device_steps.MeanMilliseconds()) {
      sorted[findings[i]].severity = Severity::kNote;
    }
  }
  analysis.findings = std::move(sorted);
}

// What each of their findings would give.
void SetGains(const RankModel& model, std::span<RuleOutcome> outcomes) {
  std::vector<std::function<void()>> jobs;
  for (RuleOutcome& outcome : outcomes) {
    auto* const found = std::get_if<std::vector<Diagnosis>>(&outcome);
    if (found == nullptr) continue;
    for (Diagnosis& diagnosis : *found) {
      jobs.emplace_back([&model, &diagnosis] {
        diagnosis.finding.gain = GainOf(model, diagnosis.finding, diagnosis.change);
      });
    }
  }
  RunAll(jobs);
}

// Of an outcome whose gains are known.
void Take(const RankModel& model, const RegisteredRule& entry, RuleOutcome outcome,
          std::vector<Change>& changes, RankAnalysis& analysis) {
  if (const auto* skipped = std::get_if<Skipped>(&outcome)) {
    analysis.skipped.push_back({std::string(entry.slug), skipped->reason});
    return;
  }
  bool found = false;
  for (auto& [finding, change] : std::get<std::vector<Diagnosis>>(outcome)) {
    if (!IsWorthSaying(model, change, finding)) continue;
    finding.rule = entry.slug;
    finding.code = entry.rule->code;
    SortSites(finding.where);
    if (!IsTrusted(model)) {
      finding.confidence_reasons.push_back(
          fmt::format("no gain is claimed: replayed, the recorded steps are off by {:.0f} %",
                      100 * model.step_replay->identity_error()));
    }
    analysis.findings.push_back(std::move(finding));
    changes.push_back(std::move(change));
    found = true;
  }
  if (found) return;
  const std::string& doubt = model.device_doubt.empty() ? model.launch_doubt : model.device_doubt;
  if (doubt.empty()) {
    analysis.passed.emplace_back(entry.slug);
  } else {
    // Not found in what there is: not checked in what is missing.
    analysis.skipped.push_back({std::string(entry.slug), doubt});
  }
}

// By rule, of those that need no other's findings.
using Outcomes = std::vector<RuleOutcome>;

void AddChecks(const RankModel& model, Outcomes& outcomes,
               std::vector<std::function<void()>>& jobs) {
  outcomes.resize(AllRules().size());
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Rule& rule = *AllRules()[i].rule;
    if (!rule.check) continue;
    jobs.emplace_back([&rule, &model, &outcome = outcomes[i]] { outcome = rule.check(model); });
  }
}

void TakeAll(const RankModel& model, Outcomes outcomes, RankAnalysis& analysis) {
  std::vector<Change> changes;  // of the findings, in their order
  SetGains(model, outcomes);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    CancelPoint();
    const RegisteredRule& entry = AllRules()[i];
    if (entry.rule->check) Take(model, entry, std::move(outcomes[i]), changes, analysis);
  }
  for (const RegisteredRule& entry : AllRules()) {
    CancelPoint();
    if (!entry.rule->check_rest) continue;
    RuleOutcome outcome = entry.rule->check_rest(model, analysis.findings);
    SetGains(model, {&outcome, 1});
    Take(model, entry, std::move(outcome), changes, analysis);
  }
  OrderByGain(model, changes, analysis);
}

// What weakens the findings, in the order in which it is said.
std::vector<Weakness> WeaknessesOf(const RankAnalysis& rank) {
  std::vector<Weakness> weaknesses;
  constexpr size_t kFewSteps = 5;  // below, one odd step is over a fifth of the evidence
  const auto steps = static_cast<int64_t>(rank.device_steps.count());
  if (steps == 0) {
    weaknesses.push_back({0.6, "no steps were found: figures are over the whole trace"});
  } else if (rank.device_steps.source == StepSource::kInferred) {
    weaknesses.push_back({0.8, "steps were inferred from the device's periodic work"});
  }
  if (steps > 0 && rank.device_steps.count() < kFewSteps) {
    weaknesses.push_back(
        {0.8, fmt::format("only {} recorded", Counted(steps, "step was", "steps were"))});
  }
  for (const QualityItem& item : rank.quality) {
    if (item.severity != QualitySeverity::kDataLoss) continue;
    std::string kind = item.kind;
    std::replace(kind.begin(), kind.end(), '_', ' ');
    weaknesses.push_back({0.8, fmt::format("records were lost: {} x {}", item.count, kind)});
  }
  if (const DetailCheck& check = rank.detail_check; check.is_unlike) {
    weaknesses.push_back({1 - check.ShareApart() / 2, UnlikeText(check)});
  }
  weaknesses.insert(weaknesses.end(), rank.weaknesses.begin(), rank.weaknesses.end());
  return weaknesses;
}

void CountEvents(const Trace& trace, RankAnalysis& analysis) {
  for (DeviceOpKind kind : trace.device_ops.kind) {
    ++(kind == DeviceOpKind::kKernel ? analysis.kernels : analysis.copies);
  }
  analysis.api_calls = trace.api.size();
  analysis.ranges = trace.ranges.size();
}

// What one call waits for within another is one wait.
size_t DeviceWaitsOf(const RankModel& model) {
  const ApiTable& api = model.trace.api;
  size_t waits = 0;
  TrackId thread = kNoTrack;
  TraceTime behind;  // the last one of the thread
  IntervalReader window(model.steps.window);
  for (uint32_t row = 0; row < api.size(); ++row) {
    CancelPoint(row);
    if (!model.blocking_calls[row]) continue;
    const Interval call = api.interval(Row{row});
    if (api.track[row] == thread && call.begin < behind) continue;
    thread = api.track[row];
    behind = call.end;
    if (window.TotalWithin(call).ns > 0) ++waits;
  }
  return waits;
}

}  // namespace

std::string_view KindName(const Trace& trace) {
  switch (trace.source) {
    case SourceKind::kRecording:
      return "recording";
    case SourceKind::kKineto:
      return "kineto";
    case SourceKind::kChrome:
      return "chrome";
    case SourceKind::kOther:
      break;
  }
  return trace.format;
}

RankAnalysis Examine(const RankModel& model) {
  const Trace& trace = model.trace;
  RankAnalysis analysis;
  analysis.path = trace.path;
  analysis.source = trace.source;
  analysis.kind = KindName(trace);
  analysis.rank = trace.rank;
  analysis.rank_known = trace.rank_known;
  analysis.world_size = trace.world_size;
  analysis.base_ns = trace.base_ns;
  analysis.quality = model.quality;
  analysis.environment = trace.environment;
  CountEvents(trace, analysis);
  analysis.device_waits = DeviceWaitsOf(model);

  analysis.steps = model.steps;
  analysis.window = model.steps.window.Total();
  analysis.device_steps = model.device_steps;
  analysis.device_window = model.device_steps.device_window.Total();
  analysis.workload = model.workload;
  analysis.identity_error = model.step_replay->identity_error();
  analysis.residual = LargestResidual(model);
  analysis.detail_check = model.detail_check;
  analysis.host_facts = model.host_facts;
  for (const DeviceAccount& account : model.devices_and_strays) {
    if (account.ops_in_window == 0) continue;
    analysis.devices.push_back(Report(trace, model.device_steps, account));
    analysis.devices.back().stray = &account >= model.devices.data() + model.devices.size();
  }
  analysis.host_account = LinesOf<HostClass>(model.host.total);
  analysis.host_other = model.host_other;
  analysis.host_lines = model.host_lines;
  analysis.phases_are_sampled = model.host.sampled_thread != kNoTrack;
  Outcomes outcomes;
  std::vector<std::function<void()>> jobs;
  AddChecks(model, outcomes, jobs);
  jobs.emplace_back([&] { analysis.operators = OperatorsOf(trace, model.steps); });
  jobs.emplace_back([&] { analysis.memory = MemoryOf(trace, model.steps); });
  RunAll(jobs);
  analysis.loader_wait = LoaderWaitOf(model.device_steps, model.devices, model.host);
  analysis.has_host_phases = model.host.Of(HostClass::kOther) != analysis.window;
  analysis.device_doubt = model.device_doubt;
  analysis.launch_doubt = model.launch_doubt;
  TakeAll(model, std::move(outcomes), analysis);
  model.step_replay->Forget();
  analysis.weaknesses = DeviceWeaknesses(model);
  return analysis;
}

void RateConfidence(RankAnalysis& rank) {
  const std::vector<Weakness> weaknesses = WeaknessesOf(rank);
  for (Finding& finding : rank.findings) {
    for (const Weakness& weakness : weaknesses) {
      finding.confidence *= weakness.factor;
      finding.confidence_reasons.push_back(weakness.reason);
    }
    finding.confidence = std::clamp(finding.confidence, 0.0, 1.0);
  }
}

void RateGainsAgain(RankAnalysis& rank) {
  const double step_ms = rank.DevicePerStepMs(rank.device_window);
  for (Finding& finding : rank.findings) JudgeByGain(step_ms, finding);
  std::vector<Finding> sorted;
  for (const size_t i : OrderOf(rank.findings, std::less<size_t>())) {
    sorted.push_back(std::move(rank.findings[i]));
  }
  rank.findings = std::move(sorted);
}

RankAnalysis Analyze(const RankModel& model) {
  RankAnalysis analysis = Examine(model);
  RateConfidence(analysis);
  return analysis;
}

RankAnalysis Analyze(const Trace& trace) { return Analyze(RankModel(trace)); }

}  // namespace trainprof
