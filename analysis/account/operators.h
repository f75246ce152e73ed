// What torch's operators and modules took within the steps, where a recording has them
// (trainprof run --ops).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/steps/steps.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct OperatorTime {
  std::string name;
  int64_t count = 0;
  Duration own;    // less what operators within took; of a module, what modules within did
  Duration whole;  // of one that calls itself, each call counts

  bool operator==(const OperatorTime&) const = default;
};

struct Operators {
  // Largest own time first, at most kMostOperators; of all threads of the rank.
  std::vector<OperatorTime> operators;
  std::vector<OperatorTime> modules;  // as they hang below the one that was called first
  int64_t recorded = 0;               // ranges of both within the steps
  Duration recording;                 // what it cost to record these, about

  bool operator==(const Operators&) const = default;
};

inline constexpr size_t kMostOperators = 100;

// Empty for any trace but a recording with operators. O(ranges * depth).
Operators OperatorsOf(const Trace& trace, const Steps& steps);

}  // namespace trainprof
