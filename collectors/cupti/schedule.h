// When GPU detail is recorded: in full around the first steps, then in samples, so that hours of
// training stay within bounds. The first two samples come early: queues that were full when the loop
// began hide for some dozen steps that a loader is too slow. Steps may cease while training goes on: a CUDA graph runs
// what it captured without the ranges that told of them. Then samples come by time. Pure: time and steps are handed in.
#pragma once

#include <cstdint>

#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {

struct ScheduleInput {
  int64_t now_ns;
  uint64_t steps;  // ranges named as steps that have begun in this process
  bool host_window_open;
};

class Schedule {
 public:
  struct Plan {
    bool everything;  // --full, or a window that the user asked for: no sampling within it
    bool has_first_step;
    uint64_t first_step;  // of the user's window: recording starts one step ahead
    int64_t pause_ns;     // 0: kPauseNs
  };

  static constexpr uint64_t kFirstSteps = 10 + 30;  // warm-up, then what is analysed
  static constexpr uint64_t kEarlyStep = 4 * kFirstSteps;
  static constexpr int64_t kEarlyNs = 30 * recording::kNsPerSecond;  // after the first step
  static constexpr int64_t kFirstNs = 60 * recording::kNsPerSecond;  // of programs without steps
  static constexpr int64_t kPauseNs = 300 * recording::kNsPerSecond;
  static constexpr uint64_t kSampleSteps = 10;
  static constexpr int64_t kSampleNs = 10 * recording::kNsPerSecond;
  // Steps have ceased where none has come for so many times as the longest took, kSampleNs at least.
  static constexpr int64_t kCeasedAfter = 4;

  void Start(const Plan& plan, const ScheduleInput& input);
  // Whether to record now. To be asked again at the step NextStep() and at least each second.
  bool Want(const ScheduleInput& input);
  // The number of begun steps at which the answer may change; 0: none.
  uint64_t NextStep() const { return next_step_; }
  // The time at which it may change; INT64_MAX: none.
  int64_t NextNs() const;

 private:
  bool WantByTime(const ScheduleInput& input);
  bool WantBySteps(const ScheduleInput& input);
  void NoteSteps(const ScheduleInput& input);
  int64_t CeasedNs() const;  // when steps will have ceased, if none comes before
  int64_t SampleNs() const;  // when the next one is due, if no number of steps brings one before
  int64_t PauseNs() const { return plan_.pause_ns > 0 ? plan_.pause_ns : kPauseNs; }

  Plan plan_;
  bool by_steps_;
  bool early_step_due_;
  bool early_time_due_;
  bool sample_due_;  // since its time came: it begins with the next step, not within one
  bool open_;
  int64_t changed_ns_;
  int64_t first_step_ns_;
  uint64_t steps_before_;  // begun before CUDA's first use
  uint64_t close_at_step_;
  uint64_t next_step_;
  uint64_t seen_steps_;  // begun when last asked
  int64_t seen_ns_;      // when these were first seen
  int64_t longest_ns_;   // between two of them, as far as asked
  bool ceased_;
};

}  // namespace trainprof::collectors
