#include "profiler/process/inherited.h"

namespace trainprof {

static_assert(ITIMER_REAL == 0 && ITIMER_VIRTUAL == 1 && ITIMER_PROF == 2);

Inherited::Inherited() {
  if (getrlimit(RLIMIT_NOFILE, &descriptors_) == 0) {
    const rlimit all = {descriptors_.rlim_max, descriptors_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &all);
  }
  const itimerval none{};
  for (int timer = 0; timer < kTimers; ++timer) {
    setitimer(static_cast<__itimer_which>(timer), &none, &timers_[timer]);
  }
}

void Inherited::Restore() const {
  if (descriptors_.rlim_max != 0) setrlimit(RLIMIT_NOFILE, &descriptors_);
  for (int timer = 0; timer < kTimers; ++timer) {
    if (timerisset(&timers_[timer].it_value)) {
      setitimer(static_cast<__itimer_which>(timer), &timers_[timer], nullptr);
    }
  }
}

}  // namespace trainprof
