// How long a call of a few nanoseconds takes.
#pragma once

#include <algorithm>
#include <chrono>

namespace trainprof {

inline constexpr long kPairs = 300'000;
inline constexpr int kRuns = 25;

// Nanoseconds a call of body, the fastest of kRuns runs of kPairs: what else the machine does can only add.
template <class Body>
double FastestNs(Body body) {
  double fastest = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < kPairs; ++i) body();
    const auto end = std::chrono::steady_clock::now();
    fastest =
        std::min(fastest, std::chrono::duration<double, std::nano>(end - begin).count() / kPairs);
  }
  return fastest;
}

}  // namespace trainprof
