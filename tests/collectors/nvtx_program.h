// The profiled programs of these tests: `nvtx_program MODE [arguments]`. Plain NVTX users.
#pragma once

#include <string>
#include <vector>

namespace nvtx_program {

using Arguments = std::vector<std::string>;

// Written by the program after the NVTX calls have returned, mapped by the test: what has been
// handed over.
struct HandedOver {
  static constexpr int kThreads = 3;
  struct alignas(64) PerThread {
    volatile long pushed;  // ranges "N", N counting from 0
    volatile long popped;
  };
  PerThread thread[kThreads];
};

int Everything(const Arguments& arguments);  // one of each call
int Numbered(
    const Arguments&
        arguments);  // FILE [MS]: ranges without end, HandedOver in FILE; 1000, then a sleep
int Bulk(const Arguments& arguments);          // N: N times phase > detail > more
int Paced(const Arguments& arguments);         // N MS: N times 5,000 ranges, then a sleep
int Threads(const Arguments& arguments);       // N: N threads at once, a range each
int ShortThreads(const Arguments& arguments);  // N: N threads one after another, a range each
int ChunkEnds(
    const Arguments& arguments);  // N: threads that fill up to N words differently far, then wait
int Fork(const Arguments& arguments);     // N children beside busy threads
int RawFork(const Arguments& arguments);  // a child made by the bare system call
int Exec(const Arguments& arguments);     // vfork + exec of itself
int Spawned(const Arguments& arguments);  // a child process that records, by fork + exec
int WorkingSteps(
    const Arguments&
        arguments);  // N: steps of 3 ms of the CPU and 3 ms of sleep; prints its CPU time
int Steps(const Arguments& arguments);      // N MS: steps with a range inside and one around all
int Capture(const Arguments& arguments);    // ranges in and outside of "capture"
int Signals(const Arguments& arguments);    // NVTX calls from a signal handler
int SmallStacks(const Arguments&);          // of a thread, and of a signal handler's own
int CloseAll(const Arguments& arguments);   // closes all descriptors between ranges
int Late(const Arguments& arguments);       // NVTX calls in destructors of threads and of exit
int Deep(const Arguments& arguments);       // N ranges deep
int Long(const Arguments& arguments);       // names of 10^5 characters
int Libraries(const Arguments& arguments);  // ranges of the program and of a library of it
int Random(
    const Arguments& arguments);  // SEED N: N calls; prints the ranges' names, checks their levels
// nvtx_program_hooks.cpp
int HookRanges(
    const Arguments& arguments);        // what Python's hooks call; "unrecorded": not under a run
int Tasks(const Arguments& arguments);  // as torch's ITT observer; "unrecorded" as above
int HookedSteps(const Arguments& arguments);  // N [whole]: steps that hooks count
int HooksFork(const Arguments& arguments);    // a range in a forked child
int Names(const Arguments& arguments);        // N different names

}  // namespace nvtx_program
