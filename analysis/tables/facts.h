// What the trace tells of one event, as lines of "what: how much".
#pragma once

#include <string>
#include <vector>

#include "trace/base/interval_set.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct Fact {
  std::string label;
  std::string value;

  bool operator==(const Fact&) const = default;
};

// What the event's table knows and what its arguments say that a reader asks for first: of a kernel
// its launch shape and occupancy, of a copy bytes, direction and rate.
std::vector<Fact> FactsOf(const Trace& trace, Table table, Row row);

// All arguments but stacks, in their order, as the source has them.
std::vector<Fact> ArgumentsOf(const Trace& trace, Table table, Row row);

struct StackFrame {
  std::string text;
  bool is_users = false;  // not torch's, CUDA's or the system's: a line to change

  bool operator==(const StackFrame&) const = default;
};

// Innermost first: the stack that the event recorded, else the ranges around it. For a device
// operation those of the call that launched it. At most kMostFrames. O(log n + depth).
inline constexpr size_t kMostFrames = 200;
std::vector<StackFrame> StackOf(const Trace& trace, Table table, Row row);

}  // namespace trainprof
