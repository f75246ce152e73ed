// Training steps: where one ends and the next begins, and how sure that is.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/steps/device_rows.h"
#include "trace/tables/trace.h"

namespace trainprof {

enum class StepSource : uint8_t {
  kNone,
  kExplicit,   // by name: NVTX "step", ProfilerStep#N, a server's "step[DECODE bs=16]"
  kOptimizer,  // from the end of one Optimizer.step to the end of the next
  kLoader,     // from one DataLoader next to the next
  kInferred,   // from the periodic sequence of device operations (periods.h)
};

std::string_view Name(StepSource source);  // "explicit", "optimizer", ...

// Which clock tells how long steps took.
enum class StepClock : uint8_t {
  kHost,    // of no device, or of none whose operations' launches are known
  kDevice,  // a step ends when the last operation launched in it ends (device_time.h)
};

std::string_view Name(StepClock clock);  // "host", "device"

struct Step {
  Interval range;  // the step's own range, as recorded
  // From its begin to the next step's begin, so that work between two ranges (a loader wait outside
  // the user's range) is not lost; the last step, and one before a recording gap, ends with its
  // range.
  Interval span;
  // From the end of the step before it to its own end on the devices; may be empty, of a step that
  // added nothing to what they had to do. The span where the host's clock tells.
  Interval device;
  // False: no step is recorded before it, and what it would have waited for, or had to do first, is
  // not known (device_time.h).
  bool begin_is_known = true;
  // False: its last launches have no row of what the device did.
  bool end_is_known = true;
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
  // What accounts of devices cover: the union of the steps' times on the device; where there are
  // no steps from the first to the last operation of a device.
  IntervalSet device_window;
  StepClock clock = StepClock::kHost;

  void Cover();  // sets both windows to the unions of what the steps have

  size_t count() const { return steps.size(); }
  // The index of the step of that number; nothing where there is none, or it was set aside.
  // O(log n).
  std::optional<size_t> Find(int64_t number) const;
  // The step whose span `at` lies in, nullptr where there is none. O(log n).
  const Step* At(TraceTime at) const;
  const Step* OnDeviceAt(TraceTime at) const;  // the same of its time on the device
  // By what totals are divided to get "per step": the number of steps, 1 where there are none.
  int64_t divisor() const { return steps.empty() ? 1 : static_cast<int64_t>(steps.size()); }
  // The first step does not count in the mean where its begin is not known and there are others: they
  // tell how long steps take.
  size_t first_timed() const {
    return clock == StepClock::kDevice && count() > 1 && !steps.front().begin_is_known ? 1 : 0;
  }
  // Of the steps' times on the device, or where the host's clock tells of their own ranges, that
  // `share` of them do not exceed. 0 without steps.
  Duration Quantile(double share) const;
  Duration Median() const { return Quantile(0.5); }
  // By the steps' clock. For display; the window itself is exact, and is the mean times the count
  // where all of them are timed.
  double MeanMilliseconds() const;
  // The same of the spans, whatever the clock.
  double HostMeanMilliseconds() const { return window.Total().ToMilliseconds() / divisor(); }
  // How far the host was ahead of the device at the begin of the first step and at the end of the
  // last one; less than 0 where it came after it. 0 without steps.
  Duration LagAtBegin() const;
  Duration LagAtEnd() const;

  bool operator==(const Steps&) const = default;
};

// Our own recordings set min(kMaxWarmupSteps, a quarter of the steps) aside, since the first steps
// allocate, tune and fill caches, and any step in which CUPTI was set up; an imported trace keeps
// all its steps: its window was chosen.
inline constexpr int kMaxWarmupSteps = 10;

// A device that did less than this share of what the busiest did takes no part in the training: a
// rank of a DDP job that left a stray tensor or context on GPU 0. Its idle time is nobody's loss.
inline constexpr double kStrayShare = 0.01;

Steps FindSteps(const Trace& trace);
// `rows`: the trace's. `warmup_steps`: of our own recordings, instead of that.
Steps FindSteps(const Trace& trace, DeviceRows& rows,
                std::optional<int> warmup_steps = std::nullopt);

// The same from what is named alone, without inference from the device's work. The same thread.
// O(ranges + tracks + operations).
Steps FindNamedSteps(const Trace& trace);

// When devices were not recorded: the gaps of processes that used one.
IntervalSet DeviceGaps(const Trace& trace);

// The same by the host's clock.
Steps ByHost(Steps steps);

// The steps that device accounts may cover: those that touch no such gap, and where others are left
// no step whose begin or end on the device is not known; by the host's clock where no end is. A step
// without the devices' rows may be any mixture of work and idleness. Without steps the windows lose
// the gaps. The rest is as in `steps`.
Steps WithDeviceDetail(const Steps& steps, const IntervalSet& gaps);

// The steps that lie within such gaps as a whole: what they show is the host's alone. None without
// named steps.
Steps WithoutDeviceDetail(const Steps& steps, const IntervalSet& gaps);

}  // namespace trainprof
