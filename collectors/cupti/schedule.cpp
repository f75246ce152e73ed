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
  } else if (!open_ && input.now_ns - changed_ns_ >= PauseNs()) {
    open_ = true;
    changed_ns_ = input.now_ns;
  }
  return open_;
}

int64_t Schedule::SampleNs() const {
  const int64_t after_pause = changed_ns_ + PauseNs();
  const int64_t early = first_step_ns_ + kEarlyNs;
  return early_time_due_ && early < after_pause ? early : after_pause;
}

bool Schedule::WantBySteps(const ScheduleInput& input) {
  const uint64_t early_step = steps_before_ + kEarlyStep;
  if (open_ && input.steps >= close_at_step_) {
    open_ = false;
    changed_ns_ = input.now_ns;
    next_step_ = early_step_due_ ? early_step : 0;
  }
  // What is recorded then needs no sample of its own.
  if (open_ && input.steps >= early_step) early_step_due_ = false;
  if (open_ && input.now_ns >= first_step_ns_ + kEarlyNs) early_time_due_ = false;
  if (open_) return true;
  if (!sample_due_ && input.now_ns >= SampleNs()) {
    sample_due_ = true;
    next_step_ = input.steps + 1;
  }
  if (next_step_ != 0 && input.steps >= next_step_) {
    open_ = true;
    sample_due_ = false;
    changed_ns_ = input.now_ns;
    close_at_step_ = next_step_ = input.steps + kSampleSteps + 1;
    if (input.steps >= early_step) early_step_due_ = false;
    if (input.now_ns >= first_step_ns_ + kEarlyNs) early_time_due_ = false;
  }
  return open_;
}

int64_t Schedule::NextNs() const {
  if (plan_.everything) return INT64_MAX;
  if (by_steps_) return open_ || sample_due_ ? INT64_MAX : SampleNs();
  if (!open_) return changed_ns_ + PauseNs();
  return changed_ns_ + (close_at_step_ == 0 ? kFirstNs : kSampleNs);
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
    early_step_due_ = early_time_due_ = true;
    sample_due_ = false;
    first_step_ns_ = input.now_ns;
    close_at_step_ = next_step_ = input.steps + kFirstSteps;
  }
  if (!by_steps_) next_step_ = input.steps + 1;
  const bool open = by_steps_ ? WantBySteps(input) : WantByTime(input);
  return open && input.host_window_open;
}

}  // namespace trainprof::collectors
