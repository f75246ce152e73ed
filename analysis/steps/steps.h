// Training steps: where one ends and the next begins, and how sure that is.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/steps/device_order.h"
#include "trace/tables/trace.h"

namespace trainprof {

enum class StepSource : uint8_t {
  kNone,
  kExplicit,   // NVTX "step", ProfilerStep#N
  kOptimizer,  // from the end of one Optimizer.step to the end of the next
  kLoader,     // from one DataLoader next to the next
  kInferred,   // from the periodic sequence of device operations
};

std::string_view Name(StepSource source);  // "explicit", "optimizer", ...

struct Step {
  Interval range;  // the step's own range, as recorded
  // From its begin to the next step's begin, so that work between two ranges (a loader wait outside
  // the user's range) is not lost; the last step, and one before a recording gap, ends with its
  // range.
  Interval span;
  // As people speak of it: the number in its name (ProfilerStep#12, "step 12") where all steps have
  // one and it grows, else its place from 0. Steps that are set aside count.
  int64_t number = 0;

  bool operator==(const Step&) const = default;
};

struct Steps {
  StepSource source = StepSource::kNone;
  TrackId thread = kNoTrack;  // the thread that steps; the busiest host thread when there is none
  std::vector<Step> steps;    // in time order, warm-up left out
  int warmup_steps = 0;       // set aside at the front
  int searched_steps = 0;     // set aside, since --memory looked for lines during them
  // What the accounts cover: the union of the spans; where there are no steps the whole trace, less
  // the time that setting up its recording took.
  IntervalSet window;

  size_t count() const { return steps.size(); }
  // The index of the step of that number; nothing where there is none, or it was set aside.
  // O(log n).
  std::optional<size_t> Find(int64_t number) const;
  // The step whose span `at` lies in, nullptr where there is none. O(log n).
  const Step* At(TraceTime at) const;
  // By what totals are divided to get "per step": the number of steps, 1 where there are none.
  int64_t divisor() const { return steps.empty() ? 1 : static_cast<int64_t>(steps.size()); }
  // Of the steps' own ranges. 0 without steps.
  Duration Median() const;
  // Of the spans: window / count. For display; the window itself is exact.
  double MeanMilliseconds() const { return window.Total().ToMilliseconds() / divisor(); }

  bool operator==(const Steps&) const = default;
};

// Our own recordings set min(kMaxWarmupSteps, a quarter of the steps) aside, since the first steps
// allocate, tune and fill caches, and any step in which CUPTI was set up; an imported trace keeps
// all its steps: its window was chosen.
inline constexpr int kMaxWarmupSteps = 10;

Steps FindSteps(const Trace& trace);
Steps FindSteps(const Trace& trace, DeviceOrder& order);  // the trace's

// The same from what is named alone, without inference from the device's work. The same thread.
// O(ranges + tracks).
Steps FindNamedSteps(const Trace& trace);

// When devices were not recorded: the gaps of processes that used one.
IntervalSet DeviceGaps(const Trace& trace);

// The steps that device accounts may cover: those that touch no such gap. A step without them may
// be any mixture of work and idleness. Without steps the window loses the gaps. The rest is as in
// `steps`; without gaps all of it.
Steps WithDeviceDetail(const Steps& steps, const IntervalSet& gaps);

// The steps that lie within such gaps as a whole: what they show is the host's alone. None without
// named steps.
Steps WithoutDeviceDetail(const Steps& steps, const IntervalSet& gaps);

}  // namespace trainprof
