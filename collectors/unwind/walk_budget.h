// What walking stacks may cost a thread.
#pragma once

#include <cstdint>

namespace trainprof::collectors {

// Zeros are a full one. What counts is the processor's time: who is preempted while walking would have been
// anyway. One thread uses it.
struct WalkBudget {
  struct Limits {
    int64_t part;     // one ns in so many of the thread's time
    int64_t most_ns;  // so much at once after a quiet while
  };

  int64_t left_ns;    // may be below 0
  int64_t filled_ns;  // when it was last filled; 0: never

  // Adds what the time since then has earned. False: nothing is left.
  bool Fill(const Limits& limits, int64_t now_ns) {
    const int64_t earned = filled_ns == 0 ? limits.most_ns : (now_ns - filled_ns) / limits.part;
    left_ns = left_ns + earned < limits.most_ns ? left_ns + earned : limits.most_ns;
    filled_ns = now_ns;
    return left_ns > 0;
  }
};

}  // namespace trainprof::collectors
