// A few independent jobs on several cores.
#pragma once

#include <functional>
#include <span>

namespace trainprof {

// How many threads make long work faster: the cores that this process may use, at least 1.
unsigned UsableCores();

// Calls each job once, on this thread and on others, and returns when all are done. The first
// exception of a job is thrown again here. Where no thread can be started all jobs run here.
void RunAll(std::span<const std::function<void()>> jobs);

}  // namespace trainprof
