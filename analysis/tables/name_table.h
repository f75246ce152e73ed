// Events summed by their name: which kernels, operators and calls a stretch of time was made of.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/tables/category.h"
#include "trace/base/interval_set.h"
#include "trace/tables/trace.h"

namespace trainprof {

enum class NamedEvents : uint8_t {
  kDeviceOps,  // kernels, copies, memsets
  kOperators,  // ranges of threads but Python functions and the profiler's own
  kCalls,      // runtime and driver calls
  kPython,
};

// The table that its rows belong to.
Table TableOf(NamedEvents what);

struct NameRow {
  StringId name = kEmptyString;
  Category category{};
  uint64_t count = 0;
  Duration total{};  // nested ones of one name count each
  Duration self{};   // less what ranges inside of them took; `total` for what does not nest
  Duration median{};
  Duration longest{};
  Row longest_row = kNoRow;

  Duration Mean() const { return {count == 0 ? 0 : total.ns / static_cast<int64_t>(count)}; }
  bool operator==(const NameRow&) const = default;
};

struct NameTable {
  std::vector<NameRow> rows;  // in the order of first sight
  uint64_t events = 0;
  Duration self;  // of all: what shares are of
};

// Events that touch the window, cut at its ends. Of two equally long ones the first row counts. Can
// be cancelled (trace/base/cancel.h). O(n log w), w intervals of the window.
NameTable MakeNameTable(const Trace& trace, NamedEvents what, const IntervalSet& window);

// The part of an event that a window holds; nothing when they do not touch. An event of no length
// is inside or outside.
class Cutter {
 public:
  explicit Cutter(const IntervalSet& window) : window_(window) {}
  // False: outside.
  bool Cut(const Interval& event, Duration* part) const;

 private:
  const IntervalSet& window_;
};

}  // namespace trainprof
