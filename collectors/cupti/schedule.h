// When GPU detail is recorded: in full around the first steps, then in samples, so that hours of
// training stay within bounds. Pure: time and steps are handed in.
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
  };

  static constexpr uint64_t kFirstSteps = 10 + 30;  // warm-up, then what is analysed
  static constexpr int64_t kFirstNs = 60 * recording::kNsPerSecond;  // of programs without steps
  static constexpr int64_t kPauseNs = 300 * recording::kNsPerSecond;
  static constexpr uint64_t kSampleSteps = 10;
  static constexpr int64_t kSampleNs = 10 * recording::kNsPerSecond;

  void Start(const Plan& plan, const ScheduleInput& input);
  // Whether to record now. To be asked again at the step NextStep() and at least each second.
  bool Want(const ScheduleInput& input);
  // The number of begun steps at which the answer may change; 0: none.
  uint64_t NextStep() const { return next_step_; }

 private:
  bool WantByTime(const ScheduleInput& input);
  bool WantBySteps(const ScheduleInput& input);

  Plan plan_;
  bool by_steps_;
  bool open_;
  int64_t changed_ns_;
  uint64_t steps_before_;  // begun before CUDA's first use
  uint64_t close_at_step_;
  uint64_t next_step_;
};

}  // namespace trainprof::collectors
