// Where in the user's source an event came from, as far as the trace can tell.
#pragma once

#include <string>
#include <vector>

#include "trace/trace.h"

namespace trainprof {

// A place in the user's code. Without stacks in the trace, `file` is empty and `function` names the
// operator or the user's range around the event.
struct Site {
  std::string file;
  int64_t line = 0;
  std::string function;
  std::string op;     // the outermost operator inside the user's line: "aten::item"
  int64_t count = 0;  // events from here

  bool SamePlace(const Site& other) const {
    return file == other.file && line == other.line && function == other.function && op == other.op;
  }
};

// Finds sites by the ranges around an event: recorded Python frames, an operator's "Call stack"
// argument, else names. The user's frame is the innermost outside of torch and installed packages.
class SiteFinder {
 public:
  explicit SiteFinder(const Trace& trace);  // trace must outlive it

  // O(log n + depth of nesting).
  Site Find(TrackId thread, TraceTime at) const;

 private:
  bool UserFrameOf(Row range, Site& site) const;

  const Trace& trace_;
  StringId call_stack_key_;
};

// Adds `site` to a list, merging equal places; keeps the list short by the count at the end.
void AddSite(std::vector<Site>& sites, const Site& site);
// Most events first; equal counts by place, so that the output is stable.
void SortSites(std::vector<Site>& sites);

// "train.py(88): train_step" -> file, line, function. False when the text is no frame.
bool ParseFrame(std::string_view frame, Site& site);
// Frames inside torch, Python itself or installed packages are nobody's line to change.
bool IsUserFrame(std::string_view frame);

}  // namespace trainprof
