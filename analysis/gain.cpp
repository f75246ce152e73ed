#include "analysis/gain.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/gain_spread.h"
#include "analysis/graph/pinned_copies.h"
#include "analysis/outcome.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// No two runs of a program take the same time.
constexpr double kRunToRun = 0.01;
constexpr double kRunToRunContended = 0.02;
std::vector<double> InMs(std::span<const int64_t> times_ns) {
  std::vector<double> times;
  for (const int64_t ns : times_ns) times.push_back(static_cast<double>(ns) / 1e6);
  return times;
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
  if (half >= kStepsOfBlock) {
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
  const Outcome outcome = OutcomeOf(model, changes);
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
  return ExpectedOf(OutcomeOf(model, changes), changes);
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
