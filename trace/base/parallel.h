// A few independent jobs on several cores.
#pragma once

#include <functional>
#include <span>

#include "trace/base/held_signals.h"

namespace trainprof {

// How many threads make long work faster: the cores that this process may use, at least 1.
unsigned UsableCores();

// Threads that are started while one of these lives take no signals: those are for the program's
// own threads, some of which wait for one.
class WithoutSignals {
 public:
  WithoutSignals() : held_(kSignalsToHold) {}

 private:
  HeldSignals held_;
};

// Calls each job once, on this thread and on others, and returns when all are done. The first
// exception of a job is thrown again here. Where no thread can be started all jobs run here. What
// cancels this thread's work (cancel.h) cancels the others', too.
void RunAll(std::span<const std::function<void()>> jobs);

}  // namespace trainprof
