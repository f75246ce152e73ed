// Where in the user's source an event came from, as far as the trace can tell.
#pragma once

#include <algorithm>
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
// Python frames, an operator's "Call stack" argument, else names. The user's frame is the innermost
// outside of torch, CUDA, the system's libraries and installed packages.
class SiteFinder {
 public:
  explicit SiteFinder(const Trace& trace);  // trace must outlive it

  // O(log n + depth of nesting).
  Site Find(TrackId thread, TraceTime at) const;
  // Of a row of trace.api.
  Site FindCall(Row call) const;

 private:
  bool UserFrameOf(Row range, Site& site) const;
  // The stack that stands among the arguments, "" where there is none.
  std::string_view StackIn(ArgsId args) const;

  const Trace& trace_;
  StringId call_stack_key_;
};

// Adds `site` to a list, merging equal places; keeps the list short by the count at the end.
void AddSite(std::vector<Site>& sites, const Site& site);
// Places with a line first, then most events; equal counts by place, so that the output is stable.
void SortSites(std::vector<Site>& sites);

// The key of the argument that holds a stack: "inner.py(3): f;outer.py(7): <module>".
inline constexpr std::string_view kCallStackKey = "Call stack";

// Calls visit(frame) for each frame of such a text, innermost first, until it returns false.
template <class Visit>
void ForEachFrame(std::string_view stack, Visit visit) {
  while (!stack.empty()) {
    const size_t end = std::min(stack.find(';'), stack.size());
    if (!visit(stack.substr(0, end))) return;
    stack.remove_prefix(std::min(end + 1, stack.size()));
  }
}

// The innermost range on a thread that covers `at`, or kNoRow; those around it are its parents.
// O(log n + depth of nesting).
Row InnermostRange(const RangeTable& ranges, TrackId thread, TraceTime at);

// "/home/me/train(+0x1a2b): train_step()": a native frame of a file without line information, or of
// a library. False when the text is none.
bool ParseModuleFrame(std::string_view frame, std::string_view* module, std::string_view* function);
// "train.py(88): train_step" -> file, line, function. False when the text is no frame.
bool ParseFrame(std::string_view frame, Site& site);
// Frames inside torch, CUDA, Python itself, the system or installed packages are nobody's line to
// change.
bool IsUserFrame(std::string_view frame);

}  // namespace trainprof
