#include "profiler/report/steps_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/words.h"

namespace trainprof {
namespace {

// "number 3", "numbers 3 to 12".
std::string Numbers(const Steps& steps) {
  const int64_t first = steps.steps.front().number;
  if (steps.count() == 1) return fmt::format("number {}", first);
  return fmt::format("numbers {} to {}", first, steps.steps.back().number);
}

// How the devices' clock and the host's differ, where that changes what figures mean.
std::string ClockText(const RankAnalysis& rank) {
  constexpr double kWorthSaying = 0.5;  // of a step that the host is ahead
  const Steps& steps = rank.device_steps;
  if (steps.clock == StepClock::kHost) {
    return rank.devices.empty() ? ""
                                : "Step times are the host's: what launched the devices' work, or "
                                  "when it ended, is not in the trace.\n";
  }
  const double begin = steps.LagAtBegin().ToMilliseconds();
  const double end = steps.LagAtEnd().ToMilliseconds();
  const double mean = steps.MeanMilliseconds();
  if (std::max(begin, end) < kWorthSaying * mean || mean == 0) return {};
  return fmt::format(
      "The host ran ahead of the device, by {} at the first of these steps and {} at the last ({:.1f} steps); "
      "by its own clock a step took {}.\n",
      TimeText(std::max(begin, 0.0)), TimeText(std::max(end, 0.0)), std::max(end, 0.0) / mean,
      TimeText(steps.HostMeanMilliseconds()));
}

std::string WithoutSteps(const RankAnalysis& rank) {
  std::string out = fmt::format(
      "No steps found (looked for ranges named \"step\", ProfilerStep, optimizer steps, loader "
      "waits, periodic work): figures are over the whole trace of {:.1f} ms.\n",
      rank.window.ToMilliseconds());
  if (rank.devices.empty() || rank.device_window == rank.window) return out;
  return out +
         fmt::format(
             "Those of GPUs are over the {:.1f} ms from their first operation to their last.\n",
             rank.device_window.ToMilliseconds());
}

}  // namespace

std::string StepsText(const RankAnalysis& rank) {
  const Steps& steps = rank.steps;
  if (steps.count() == 0) return WithoutSteps(rank);
  const bool by_device = steps.clock == StepClock::kDevice;
  std::string out =
      fmt::format("{} ({}; {}), median {:.3f} ms, mean {} {:.3f} ms",
                  Counted(static_cast<int64_t>(steps.count()), "step", "steps"), Name(steps.source),
                  Numbers(steps), steps.Median().ToMilliseconds(),
                  by_device ? "on the device" : "begin-to-begin", steps.MeanMilliseconds());
  if (steps.warmup_steps > 0)
    out +=
        fmt::format("; {} set aside", Counted(steps.warmup_steps, "warm-up step", "warm-up steps"));
  if (steps.searched_steps > 0) {
    out += fmt::format("; so are {} during which --memory looked for lines",
                       Counted(steps.searched_steps, "step", "steps"));
  }
  out += "\n";
  out += ClockText(rank);
  if (rank.device_steps.count() != steps.count()) {
    out += fmt::format(
        "What the GPU did is known of {} of them from begin to end (mean {:.3f} ms): the figures of "
        "GPUs and the findings are about these.\n",
        rank.device_steps.count(), rank.device_steps.MeanMilliseconds());
    if (const Duration recording = rank.detail_check.recording; recording.ns > 0) {
      out += fmt::format(
          "Recording that takes some {} of each on the host, as the others show: times below are with it, gains without.\n",
          TimeText(recording.ToMilliseconds()));
    }
  }
  return out;
}

}  // namespace trainprof
