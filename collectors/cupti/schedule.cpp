#include "collectors/cupti/schedule.h"

namespace trainprof::collectors {

void Schedule::Start(const Plan& plan, const ScheduleInput& input) {
  plan_ = plan;
  by_steps_ = false;
  open_ = true;
  changed_ns_ = input.now_ns;
  steps_before_ = input.steps;
  close_at_step_ = 0;
  next_step_ = 0;
}

bool Schedule::WantByTime(const ScheduleInput& input) {
  const bool first = close_at_step_ == 0;
  if (open_ && input.now_ns - changed_ns_ >= (first ? kFirstNs : kSampleNs)) {
    open_ = false;
    close_at_step_ = 1;  // the first stretch is over
    changed_ns_ = input.now_ns;
  } else if (!open_ && input.now_ns - changed_ns_ >= kPauseNs) {
    open_ = true;
    changed_ns_ = input.now_ns;
  }
  return open_;
}

bool Schedule::WantBySteps(const ScheduleInput& input) {
  if (open_ && input.steps >= close_at_step_) {
    open_ = false;
    changed_ns_ = input.now_ns;
    next_step_ = 0;
  }
  if (open_ || input.now_ns - changed_ns_ < kPauseNs) return open_;
  // The pause is over: the sample begins with the next step, not within one.
  if (next_step_ == 0) next_step_ = input.steps + 1;
  if (input.steps >= next_step_) {
    open_ = true;
    changed_ns_ = input.now_ns;
    close_at_step_ = next_step_ = input.steps + kSampleSteps + 1;
  }
  return open_;
}

bool Schedule::Want(const ScheduleInput& input) {
  if (plan_.everything) {
    next_step_ = plan_.has_first_step ? plan_.first_step : 0;
    const bool ahead = plan_.has_first_step && input.steps == plan_.first_step;
    return input.host_window_open || ahead;
  }
  if (!by_steps_ && input.steps > steps_before_) {
    by_steps_ = true;
    open_ = true;
    close_at_step_ = next_step_ = input.steps + kFirstSteps;
  }
  if (!by_steps_) next_step_ = input.steps + 1;
  const bool open = by_steps_ ? WantBySteps(input) : WantByTime(input);
  return open && input.host_window_open;
}

}  // namespace trainprof::collectors
