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

int64_t Schedule::CeasedNs() const {
  const int64_t after = kCeasedAfter * longest_ns_;
  return seen_ns_ + (after > kSampleNs ? after : kSampleNs);
}

void Schedule::NoteSteps(const ScheduleInput& input) {
  if (input.steps != seen_steps_) {
    if (input.now_ns - seen_ns_ > longest_ns_) longest_ns_ = input.now_ns - seen_ns_;
    seen_steps_ = input.steps;
    seen_ns_ = input.now_ns;
    if (!ceased_) return;
    ceased_ = false;
    open_ = input.steps < close_at_step_;
    changed_ns_ = input.now_ns;
  } else if (!ceased_ && (open_ || sample_due_) && input.now_ns >= CeasedNs()) {
    ceased_ = true;
    open_ = sample_due_;
    sample_due_ = false;
    changed_ns_ = input.now_ns;
  }
}

bool Schedule::WantBySteps(const ScheduleInput& input) {
  NoteSteps(input);
  if (ceased_) {
    if (input.now_ns - changed_ns_ >= (open_ ? kSampleNs : PauseNs())) {
      open_ = !open_;
      changed_ns_ = input.now_ns;
    }
    return open_;
  }
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
  if (by_steps_ && ceased_) return changed_ns_ + (open_ ? kSampleNs : PauseNs());
  if (by_steps_) return open_ || sample_due_ ? CeasedNs() : SampleNs();
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
    first_step_ns_ = seen_ns_ = input.now_ns;
    seen_steps_ = input.steps;
    longest_ns_ = 0;
    ceased_ = false;
    close_at_step_ = next_step_ = input.steps + kFirstSteps;
  }
  if (!by_steps_) next_step_ = input.steps + 1;
  const bool open = by_steps_ ? WantBySteps(input) : WantByTime(input);
  return open && input.host_window_open;
}

}  // namespace trainprof::collectors
