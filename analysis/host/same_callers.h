// Calls whose stack nobody took, and others of the same kind that tell where they come from.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// Of copies, waits for events and functions of the host a recording has the stacks of the first few from each site
// (collectors/cupti/stacks.h). So where all of a thread's calls of one name, within ranges of one name, that have one
// come from one place of the user's, the others do as well; of copies those of one direction, and if these come from
// several places, those of one size on one stream.
class SameCallers {
 public:
  // O(calls + copies log copies); where there are no stacks, nothing. The trace must outlive it.
  explicit SameCallers(const Trace& trace);

  // One of the same kind that has a stack; kNoRow where none is known, or several places are. O(log n).
  Row Of(Row call) const;

 private:
  static constexpr int64_t kAnySize = -1;
  struct Kind {
    TrackId thread;
    StringId name;
    StringId range;  // the innermost one around it; that of a step is none
    CopyDirection direction;
    // Of a copy; kAnySize: of all sizes, on all streams.
    int64_t bytes = kAnySize;
    TrackId stream = kNoTrack;

    bool operator==(const Kind&) const = default;
  };
  struct HashOfKind {
    size_t operator()(const Kind& kind) const;
  };
  struct Known {
    Row call;
    uint32_t place;
  };
  Row CopyOf(Row call) const;  // of device_ops, or kNoRow
  Kind KindOf(Row call, Row copy) const;
  static Kind OfSameSize(Kind kind, const DeviceOpTable& ops, Row copy);
  void Learn(const Kind& kind, Row call, uint32_t place);

  const Trace& trace_;
  std::vector<std::pair<Row, Row>> copies_;  // a call, and the operation that it asked for; by call
  std::unordered_map<Kind, Known, HashOfKind> known_;  // call kNoRow: several places
};

}  // namespace trainprof
