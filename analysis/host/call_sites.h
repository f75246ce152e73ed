// Where in the user's source an event came from, as far as the trace can tell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// A place in the user's code. Without stacks in the trace, `file` is empty and `function` names the
// operator or the user's range around the event.
struct Site {
  std::string file;
  int64_t line = 0;
  std::string function;
  // The outermost operator inside the user's line: "aten::item", "at::Tensor::item".
  std::string op;
  int64_t count = 0;  // events from here

  bool operator==(const Site&) const = default;
  bool SamePlace(const Site& other) const {
    return file == other.file && line == other.line && function == other.function && op == other.op;
  }
};

// Finds sites by the stack that a call itself recorded, else by the ranges around it: recorded
// Python frames, an operator's stack, else names. The user's frame is the innermost
// outside of torch, CUDA, the system's libraries and installed packages.
class SiteFinder {
 public:
  explicit SiteFinder(const Trace& trace) : trace_(trace) {}  // trace must outlive it

  // O(log n + depth of nesting).
  Site Find(TrackId thread, TraceTime at) const;
  // Of a row of trace.api.
  Site FindCall(Row call) const;

 private:
  bool UserFrameOf(Row range, Site& site) const;
  void SetPlace(const CallFrame& frame, Site& site) const;

  const Trace& trace_;
};

// Adds `site` to a list, merging equal places; keeps the list short by the count at the end.
void AddSite(std::vector<Site>& sites, const Site& site);
// Places with a line first, then most events; equal counts by place, so that the output is stable.
void SortSites(std::vector<Site>& sites);

// The innermost range on a thread that covers `at`, or kNoRow; those around it are its parents.
// O(log n + depth of nesting).
Row InnermostRange(const RangeTable& ranges, TrackId thread, TraceTime at);

}  // namespace trainprof
