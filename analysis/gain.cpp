#include "analysis/gain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/gain_spread.h"
#include "analysis/graph/latencies.h"
#include "analysis/graph/pinned_copies.h"
#include "analysis/host/program.h"
#include "analysis/students_t.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// Steps depend on those before them; so many together hardly do on the next so many. What other programs do lasts longer:
// of long runs no more blocks are made than tell what they differ by, of short ones as many as it takes for that.
constexpr size_t kBlock = 5;
constexpr size_t kFewestBlocks = 10;
constexpr size_t kMostBlocks = 24;
constexpr size_t kFewestPeriods = 2;
// No two runs of a program take the same time.
constexpr double kRunToRun = 0.01;
constexpr double kRunToRunContended = 0.02;
// With workers beside it the training thread itself may get slower, where processors are few: on
// kineto_resnet50 its other work went from 105 to 126 ms a step when the loader went from 0 to 4 workers.
constexpr double kContention = 1.2;
// Pinned copies of PCIe 3 to 5 with 16 lanes, bytes a microsecond.
constexpr int64_t kSlowLink = 12'000;
constexpr int64_t kFastLink = 48'000;
// Assumption::tensor_core_speedup.
constexpr double kLeastTensorSpeedup = 2;
constexpr double kMostTensorSpeedup = 16;
// Of a step, what fewer launches have to save before gaps between a graph's nodes count.
constexpr double kWorthAGraph = 0.02;
// Waits for input, or for what nothing tells, of less than this share of the steps say nothing about how
// fast a loader is.
constexpr double kLoaderShare = 0.01;

// How many steps make a block of so many. `every`: what happens comes each so many steps, 0 where it does not: blocks hold
// it equally often, where there are enough.
size_t BlockOf(size_t steps, int64_t every) {
  const size_t block =
      std::max({size_t{1}, std::min(kBlock, steps / kFewestBlocks), steps / kMostBlocks});
  const auto period = static_cast<size_t>(std::max<int64_t>(1, every));
  const size_t whole = (block + period - 1) / period * period;
  return steps / whole >= kFewestPeriods ? whole : block;
}

// Half the width of the interval in which the mean of these lies with nine in ten.
double HalfWidth(std::span<const double> values, int64_t every) {
  const size_t block = BlockOf(values.size(), every);
  const size_t blocks = values.size() / block;
  if (blocks < 2) return 0;
  std::vector<double> means;
  for (size_t i = 0; i < blocks; ++i) {
    const auto part = values.subspan(i * block, block);
    means.push_back(std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(block));
  }
  const double mean =
      std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(blocks);
  double squares = 0;
  for (const double m : means) squares += (m - mean) * (m - mean);
  const auto n = static_cast<double>(blocks);
  return StudentsT95(n - 1) * std::sqrt(squares / (n - 1) / n);
}

std::vector<double> InMs(std::span<const int64_t> times_ns) {
  std::vector<double> times;
  for (const int64_t ns : times_ns) times.push_back(static_cast<double>(ns) / 1e6);
  return times;
}

// For a batch that another thread or process makes.
bool HasWaitedForInput(const RankModel& model) {
  Duration waited;
  std::vector<Interval> own;
  for (const Row range : model.own_input) own.push_back(model.trace.ranges.interval(range));
  const IntervalSet waits = model.host.InputWait().Minus(IntervalSet::Union(std::move(own)));
  for (const Interval& wait : waits.intervals()) {
    // Sooner nobody is woken: the batch was there.
    if (wait.Length() >= kThreadPause) waited += model.device_steps.window.TotalWithin(wait);
  }
  return model.ShareOfWindow(waited) > kLoaderShare;
}

// Whether the stepping thread waited for what may come no sooner by the change: for a loader of which nothing is
// recorded, say. Once or twice is chance.
bool MayWaitElsewhere(const RankModel& model, const Change& change) {
  if (change.edit == Edit::kFeedInput) return false;
  IntervalSet waits = model.unnamed_waits;
  if (!change.spans.empty()) {
    std::vector<Interval> dropped;
    for (const ThreadSpan& span : change.spans) dropped.push_back(span.interval);
    waits = waits.Minus(IntervalSet::Union(std::move(dropped)));
  }
  const double all_ms = waits.TotalWithin(model.device_steps.window).ToMilliseconds();
  std::vector<double> by_step_ms;
  for (const Step& step : model.device_steps.steps) {
    by_step_ms.push_back(waits.TotalWithin(step.span).ToMilliseconds());
  }
  const double odd_ms = OfOddSteps(by_step_ms) * static_cast<double>(by_step_ms.size());
  return model.ShareOfWindow(Microseconds(std::llround((all_ms - odd_ms) * 1e3))) > kLoaderShare;
}

// How many times as long the training thread's other work may take beside workers that keep up, where a step
// that waits for none of them is of `fed_ms`. What they and the thread compute, which takes longer side by side as
// well, has to fit in the cores there are, however many workers share it.
double ContentionOf(const RankModel& model, double step_ms, double fed_ms) {
  const auto cores = static_cast<double>(CoresOfRank(model.trace));
  if (cores == 0 || fed_ms <= 0) return kContention;
  const double least_ms = step_ms * CoresUsed(model.trace, model.steps) / cores;
  return kContention * std::max(1.0, least_ms / fed_ms);
}

bool AnyIs(std::span<const Change* const> changes, Edit edit) {
  return std::any_of(changes.begin(), changes.end(),
                     [&](const Change* change) { return change->edit == edit; });
}

// Whether copies go with work of the host.
bool AnySaves(std::span<const Change* const> changes) {
  return std::any_of(changes.begin(), changes.end(), [](const Change* change) {
    return change->edit == Edit::kDropHostWork && !change->ops.empty();
  });
}

// All ways in which the world may answer, the likeliest first. Contention (AskAll) apart.
std::vector<Assumption> Answers(const RankModel& model, std::span<const Change* const> changes) {
  const auto any = [&](Edit edit) { return AnyIs(changes, edit); };
  std::vector<Assumption> answers{{}};
  if (!any(Edit::kFeedInput) && HasWaitedForInput(model)) {
    answers.push_back({.loader_is_limited = true});
  }
  if (any(Edit::kDropWork)) answers.push_back({.drops_preparation = true});
  if (any(Edit::kPinCopies)) answers.push_back({.pinned_copies_overlap = true});
  if (any(Edit::kPinCopies) && PinnedBytesPerMicrosecond(model.trace) == 0) {
    answers.push_back({.pinned_bytes_per_us = kSlowLink});
    answers.push_back({.pinned_bytes_per_us = kFastLink});
  }
  if (AnySaves(changes)) answers.push_back({.saved_copies_overlap = true});
  if (any(Edit::kLaunchAsGraph)) answers.push_back({.closes_graph = true});
  if (any(Edit::kUseTensorCores)) {
    answers.push_back({.tensor_core_speedup = kLeastTensorSpeedup});
    answers.push_back({.tensor_core_speedup = kMostTensorSpeedup});
  }
  if (any(Edit::kKeepReplicas)) answers.push_back({.exchange_is_exposed = true});
  if (any(Edit::kOverlapCommunication)) answers.push_back({.waits_for_last_collective = true});
  for (Assumption& answer : answers) {
    answer.without_recording = &model.recording_cost;
    answer.own_input = model.own_input;
  }
  return answers;
}

// What is left of a step when a resource is used all the time: copies that run beside the rest still
// need their link, collectives theirs.
double FloorMs(const RankModel& model, const Change& change) {
  if (change.edit == Edit::kPinCopies) {
    const int64_t measured = PinnedBytesPerMicrosecond(model.trace);
    int64_t bytes = 0;
    for (const Row op : change.rows) {
      if (model.InDeviceWindow(model.trace.device_ops.interval(op))) {
        bytes += model.trace.device_ops.bytes[Index(op)];
      }
    }
    return model.PerStepMs(Microseconds(bytes / (measured > 0 ? measured : kFastLink)));
  }
  const bool overlaps =
      change.edit == Edit::kOverlapCopies || change.edit == Edit::kOverlapCommunication;
  if (!overlaps && change.edit != Edit::kDropHostWork) return 0;
  std::vector<Interval> times;
  for (const Row op : overlaps ? change.rows : change.ops) {
    times.push_back(model.trace.device_ops.interval(op));
  }
  return model.PerStepMs(
      IntervalSet::Union(std::move(times)).TotalWithin(model.device_steps.device_window));
}

// An operation whose launch is not recorded waited for anything, be it what goes. Of a step.
double OpenMs(const RankModel& model) {
  if (model.ShareWithoutLaunch() == 0) return 0;
  Duration most;
  for (const DeviceAccount& device : model.devices) {
    if (device.ops_without_launch == 0) continue;
    most = std::max(most, device.Of(DeviceClass::kIdleUnknown));
  }
  return model.PerStepMs(most);
}

struct Answer {
  double mean_ms = 0;
  int64_t every = 0;  // GainSpread::every
  double half_width_ms = 0;
  std::vector<double> gains_ms;  // by step
  std::vector<int64_t> after;    // ns, by step
};

Answer Ask(const RankModel& model, std::span<const Change* const> changes,
           const Assumption& assumption, std::span<const int64_t> before) {
  const std::vector<int64_t> after = model.step_replay->After(changes, assumption);
  std::vector<double> gains;
  for (size_t i = 0; i < before.size(); ++i) {
    gains.push_back(static_cast<double>(before[i] - after[i]) / 1e6);
  }
  if (gains.empty()) return {};
  const double mean =
      std::accumulate(gains.begin(), gains.end(), 0.0) / static_cast<double>(gains.size());
  const int64_t every = SpreadOf(gains, model.step_replay->numbers()).every;
  const double half_width = HalfWidth(gains, every);
  return {mean, every, half_width, std::move(gains), after};
}

// What changes give together, by the worst and by the best answer.
struct Outcome {
  double low_ms = std::numeric_limits<double>::infinity();
  double high_ms = 0;
  double likeliest_ms = 0;               // by the first answer
  std::vector<int64_t> likeliest_steps;  // after it, ns
  int64_t every = 0;                     // GainSpread::every, by it
  double half_width_ms = 0;              // of the answer whose steps differ most
  // By step: of the answer that gives least, and of that which gives most.
  std::vector<double> low_gains_ms;
  std::vector<double> high_gains_ms;
};

// By how much less, or more, what changes give may be for not knowing what recording took of the host.
struct RecordingDoubt {
  double less_ms = 0;
  double more_ms = 0;
};

RecordingDoubt DoubtOfRecording(const RankModel& model, std::span<const Change* const> changes,
                                const Outcome& outcome) {
  RecordingDoubt doubt;
  for (const auto& other : model.other_recordings) {
    const Answer answer = Ask(model, changes, {.without_recording = &other.cost}, other.steps);
    const double more = std::max(0.0, answer.mean_ms) - outcome.likeliest_ms;
    doubt.less_ms = std::max(doubt.less_ms, -more);
    doubt.more_ms = std::max(doubt.more_ms, more);
  }
  return doubt;
}

Outcome AskAll(const RankModel& model, std::span<const Change* const> changes) {
  const double step = model.step_replay->MeanNs() / 1e6;
  Outcome outcome;
  const auto take = [&](const Assumption& assumption, std::span<const int64_t> before) {
    Answer answer = Ask(model, changes, assumption, before);
    // Who loses by a change takes it back.
    const double mean = std::max(0.0, answer.mean_ms);
    if (outcome.high_gains_ms.empty()) {
      outcome.likeliest_ms = mean;
      outcome.likeliest_steps = std::move(answer.after);
      outcome.every = answer.every;
    }
    if (mean > outcome.high_ms || outcome.high_gains_ms.empty()) {
      outcome.high_ms = mean;
      outcome.high_gains_ms = answer.gains_ms;
    }
    if (mean < outcome.low_ms) {
      outcome.low_ms = mean;
      outcome.low_gains_ms = std::move(answer.gains_ms);
    }
    outcome.half_width_ms = std::max(outcome.half_width_ms, answer.half_width_ms);
  };
  for (const Assumption& assumption : Answers(model, changes)) {
    CancelPoint();
    // A graph saves between its nodes, too; by itself that is worth no change.
    if (assumption.closes_graph && outcome.low_ms < kWorthAGraph * step) continue;
    take(assumption, model.steps_without_recording);
  }
  if (AnyIs(changes, Edit::kFeedInput)) {
    take({.without_recording = &model.recording_cost,
          .contention = ContentionOf(model, step, step - outcome.high_ms)},
         model.steps_without_recording);
  }
  if (!model.silence.empty()) take({.silence = &model.silence}, model.steps_without_silence);
  if (!model.steps_with_all_nodes.empty()) {
    take({.has_all_graph_nodes = true}, model.steps_with_all_nodes);
  }
  return outcome;
}

// Where programs compete for processors each run meets other turns of theirs, one before the change and one after it:
// what these make of a step shows in what steps differ by.
double OtherTurnsMs(const RankModel& model, const Outcome& outcome) {
  if (!model.host_is_contended) return 0;
  return std::hypot(HalfWidth(InMs(model.steps_without_recording), outcome.every),
                    HalfWidth(InMs(outcome.likeliest_steps), outcome.every));
}

// What runs differ by beside the change, in ms a step.
double RunToRun(const RankModel& model, const Outcome& outcome) {
  const auto steps = model.step_replay->recorded();
  const double mean = StepReplay::MeanOf(steps);
  size_t half = steps.size() / 2;
  double differ = 0;
  if (half >= kBlock) {
    const auto period = static_cast<size_t>(std::max<int64_t>(1, outcome.every));
    half = std::max(half / period, size_t{1}) * period;
    differ = std::abs(StepReplay::MeanOf(steps.first(half)) - StepReplay::MeanOf(steps.last(half)));
  }
  const double least = model.host_is_contended ? kRunToRunContended : kRunToRun;
  return std::max({differ / 2e6, least * mean / 1e6, OtherTurnsMs(model, outcome)});
}

// What made a tensor on the host goes with its copy, as a rule.
bool ExpectsTheMost(std::span<const Change* const> changes) {
  return AnyIs(changes, Edit::kDropWork);
}

// Else the middle.
double ExpectedOf(const Outcome& outcome, std::span<const Change* const> changes) {
  return ExpectsTheMost(changes) ? outcome.high_ms : (outcome.low_ms + outcome.high_ms) / 2;
}

// By step.
std::vector<double> ExpectedGains(const Outcome& outcome, std::span<const Change* const> changes) {
  std::vector<double> gains = outcome.high_gains_ms;
  if (!ExpectsTheMost(changes)) {
    for (size_t i = 0; i < gains.size(); ++i) gains[i] = (gains[i] + outcome.low_gains_ms[i]) / 2;
  }
  return gains;
}

// The table whose rows an edit names; nullptr: it names none.
const EventColumns* TableOf(const Trace& trace, Edit edit) {
  switch (edit) {
    case Edit::kRemoveWaits:
    case Edit::kDropCalls:
    case Edit::kLaunchAsGraph:
      return &trace.api;
    case Edit::kFeedInput:
    case Edit::kDropHostWork:
      return &trace.ranges;
    case Edit::kDropDependencies:
      return &trace.syncs;
    case Edit::kFillIdle:
      return nullptr;
    default:
      return &trace.device_ops;
  }
}

// Whether at least half of the steps have some of what goes.
bool IsInMostSteps(const RankModel& model, const Change& change) {
  const EventColumns* const table = TableOf(model.trace, change.edit);
  std::vector<bool> has(model.device_steps.count(), false);
  const auto add = [&](const Step* step) {
    if (step != nullptr) has[static_cast<size_t>(step - model.device_steps.steps.data())] = true;
  };
  for (size_t i = 0; table != nullptr && i < change.rows.size(); ++i) {
    CancelPoint(i);
    const TraceTime begin = table->begin[Index(change.rows[i])];
    const bool is_devices = table == &model.trace.device_ops;
    add(is_devices ? model.device_steps.OnDeviceAt(begin) : model.device_steps.At(begin));
  }
  for (const ThreadSpan& span : change.spans) add(model.device_steps.At(span.interval.begin));
  return 2 * static_cast<size_t>(std::count(has.begin(), has.end(), true)) >= has.size();
}

// Of the mean of these, what no habit gives: where what goes is in most steps and one or two of them hold most of the
// gain, something else happened there.
double ByChance(const RankModel& model, const Change& change, std::vector<double> gains) {
  for (double& gain : gains) gain = std::max(0.0, gain);
  const double odd = OfOddSteps(gains);
  const double all = std::accumulate(gains.begin(), gains.end(), 0.0);
  const bool is_most = 2 * odd * static_cast<double>(gains.size()) > all;
  return is_most && IsInMostSteps(model, change) ? odd : 0;
}

// What few steps gain that stand at a fixed distance, a step: how many of them the recording holds is chance.
double BeyondChance(const GainSpread& spread) {
  if (spread.every == 0) return 0;
  return spread.rare_ms *
         (1 / static_cast<double>(spread.every) -
          static_cast<double>(spread.rare_steps) / static_cast<double>(spread.steps));
}

Gain OfReplay(const RankModel& model, const Change& change) {
  const Change* const changes[] = {&change};
  const Outcome outcome = AskAll(model, changes);
  // A change of nothing gives nothing, however much runs differ.
  if (outcome.high_ms == 0) return {};
  const double step = model.step_replay->MeanNs() / 1e6;
  const double most = std::max(
      0.0, StepReplay::MeanOf(model.steps_without_recording) / 1e6 - FloorMs(model, change));
  const double least = MayWaitElsewhere(model, change) ? 0 : outcome.low_ms;
  const std::vector<double> gains = ExpectedGains(outcome, changes);
  const GainSpread spread = SpreadOf(gains, model.step_replay->numbers());
  const double by_chance = ByChance(model, change, gains);
  const double beyond_chance = BeyondChance(spread);
  const RecordingDoubt recording = DoubtOfRecording(model, changes, outcome);
  const GainSources sources{.answers_ms = outcome.high_ms - least,
                            .steps_ms = std::max(outcome.half_width_ms, std::abs(beyond_chance)),
                            .replay_ms = model.step_replay->identity_error() * step,
                            .runs_ms = RunToRun(model, outcome),
                            .recording_ms = std::max(recording.less_ms, recording.more_ms),
                            .launches_ms = OpenMs(model)};
  const double unsure = std::hypot(sources.steps_ms, sources.runs_ms) + sources.replay_ms;
  const double low = std::max(0.0, least - by_chance - unsure - recording.less_ms) *
                     (1 - model.ShareWithoutLaunch());
  const double high = outcome.high_ms + unsure + recording.more_ms + sources.launches_ms;
  return {std::clamp(low, 0.0, most),
          std::clamp(high, 0.0, most),
          std::clamp(ExpectedOf(outcome, changes) + beyond_chance - by_chance, 0.0, most),
          0,
          spread,
          sources};
}

// Not replayed: it may be any of these.
Gain Between(double low, double high) {
  return {low, high, (low + high) / 2, 0, {}, {.answers_ms = high - low}};
}

// In steps of which devices were not recorded: the wait goes, as far as the device's work, known from
// the others, leaves room.
Gain OfInputInOtherSteps(const RankModel& model) {
  const DetailCheck& check = model.detail_check;
  const double step = check.other_step.ToMilliseconds();
  const double wait = check.other_wait.ToMilliseconds();
  const double room = std::max(0.0, step - check.device_work.ToMilliseconds());
  const double high = std::min(wait, room);
  // As many steps of others of the run, whose queue was still full, wait less.
  const auto others = static_cast<double>(model.other_steps.count());
  const double share = others / (others + static_cast<double>(model.device_steps.count()));
  const double fed = step - wait;
  const double low = std::clamp(step - ContentionOf(model, step, fed) * fed, 0.0, high * share);
  return Between(low, high);
}

}  // namespace

Gain GainOf(const RankModel& model, const Finding& finding, const Change& change) {
  if (!IsTrusted(model)) return {};
  if (change.edit == Edit::kFillIdle) {
    return Between(0, model.PerStepMs(finding.cost));
  }
  if (change.in_other_steps) return OfInputInOtherSteps(model);
  // No row tells what would go: its cost is all that is known.
  if (!IsReplay(change)) {
    return Between(0, model.PerStepMs(finding.cost));
  }
  Gain gain = OfReplay(model, change);
  // Whether a stream needs what it waits for, no trace shows.
  if (change.edit == Edit::kDropDependencies) gain.low_ms_per_step = 0;
  return gain;
}

double JointGain(const RankModel& model, std::span<const Change* const> changes) {
  return ExpectedOf(AskAll(model, changes), changes);
}

bool MayBeEqual(const Gain& a, const Gain& b) {
  const auto lies_in = [](const Gain& one, const Gain& other) {
    const double shared =
        std::hypot(other.sources.steps_ms, other.sources.runs_ms) - other.sources.steps_ms;
    const double below = other.expected_ms_per_step - other.low_ms_per_step - shared;
    const double above = other.high_ms_per_step - other.expected_ms_per_step - shared;
    const double more = one.expected_ms_per_step - other.expected_ms_per_step;
    return more >= -std::max(0.0, below) && more <= std::max(0.0, above);
  };
  return lies_in(a, b) && lies_in(b, a);
}

void LowerTo(const Gain& most, Gain& gain) {
  const Gain before = gain;
  const auto lower = [](double of, double& value) { value = std::min(value, std::max(0.0, of)); };
  lower(most.low_ms_per_step, gain.low_ms_per_step);
  lower(most.expected_ms_per_step, gain.expected_ms_per_step);
  lower(most.high_ms_per_step, gain.high_ms_per_step);
  lower(gain.expected_ms_per_step, gain.further_ms_per_step);
  if (gain == before) return;
  gain.spread = {};
  gain.sources = {};
}

}  // namespace trainprof
