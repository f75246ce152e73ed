// Where the user's ranges are opened: the line, past the wrappers that many programs open them through.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

class Openings {
 public:
  // O(openings log openings). The trace must outlive it.
  explicit Openings(const Trace& trace);

  // The user's frame that opens ranges of this one's name in its process; null where none is known, or several are.
  //
  // A line that opens ranges of several names, of which each is called for from elsewhere, is a wrapper's (a class that
  // pushes and pops, a macro's function), and so is a constructor: what called it is the place.
  const CallFrame* Of(Row range) const;

 private:
  const Trace& trace_;
  std::map<std::pair<ProcessId, StringId>, FrameId> frame_of_;
};

}  // namespace trainprof
