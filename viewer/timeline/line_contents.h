// What a line shows: its lanes, its series, or one lane in place of all. Made in one go, on any
// thread.
#pragma once

#include <vector>

#include "analysis/tables/category.h"
#include "viewer/timeline/lines.h"

namespace trainprof {

// What is made of a line. A line without nesting has nothing but kLanes.
enum class Form : uint8_t {
  kLanes,      // its lanes by depth, or its series
  kInnermost,  // one lane: of nested events the innermost (viewer/timeline/innermost.h)
  kStrip,      // the same, as it stands for the whole line
};

struct LineContents {
  std::vector<Lane> lanes;  // by depth; none for a series
  Series series;
  size_t size_bytes = 0;
};

// `categorizer`: of the line's rank. O(EffortFor), may be cancelled (trace/base/cancel.h).
LineContents MakeContents(const Lines& lines, uint32_t line, Form form,
                          const Categorizer& categorizer);

// How much there is to do for one of them: the events that have to be looked at, 50 ns each. O(1),
// for the busy time and the idle time of a GPU O(devices).
size_t EffortFor(const Lines& lines, uint32_t line);

// Whether both show the same in a line, which both have: `after` may know more of its rank, or
// have another axis.
bool ShowTheSame(const Lines& before, const Lines& after, uint32_t line);

// The time during which a device was busy, by what it is counted as, in time order.
std::vector<Segment<DeviceClass>> BusyByClass(const DeviceAccount& account);

}  // namespace trainprof
