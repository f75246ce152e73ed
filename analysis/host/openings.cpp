#include "analysis/host/openings.h"

#include <algorithm>
#include <set>

#include "trace/symbols/demangle.h"

namespace trainprof {
namespace {

using RangeName = std::pair<ProcessId, StringId>;

// The user's frames that have a line, innermost first, from `at` on.
struct Place {
  RangeName name;
  std::vector<FrameId> frames;
  size_t at = 0;

  FrameId frame() const { return frames[at]; }
  bool HasCaller() const { return at + 1 < frames.size(); }
};

std::vector<FrameId> UserFrames(const StackTable& stacks, StackId stack) {
  std::vector<FrameId> frames;
  for (; stack != kNoStack; stack = stacks.caller(stack)) {
    const CallFrame& frame = stacks.frame(stacks.innermost(stack));
    if (frame.is_user && frame.HasLine()) frames.push_back(stacks.innermost(stack));
  }
  return frames;
}

// "trainer::Range::Range(char const*)".
bool IsConstructor(std::string_view function) {
  const std::string name = ShortFunctionName(function);
  const size_t last = name.rfind("::");
  if (last == std::string::npos) return false;
  const size_t before = name.rfind("::", last - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 2;
  return last > 0 && name.compare(begin, last - begin, name, last + 2, std::string::npos) == 0;
}

// Moves places out of wrappers by one frame. Whether there were any.
bool LeaveWrappers(const Trace& trace, std::vector<Place>& places) {
  // Of each frame the names that it opens, and of each the callers, all the way up.
  using Callers = std::set<std::vector<FrameId>>;
  std::map<FrameId, std::map<RangeName, Callers>> opened_by;
  for (const Place& place : places) {
    const auto callers = place.frames.begin() + static_cast<ptrdiff_t>(place.at) + 1;
    opened_by[place.frame()][place.name].emplace(callers, place.frames.end());
  }
  bool any = false;
  for (Place& place : places) {
    const auto& names = opened_by.at(place.frame());
    const bool differ = std::any_of(names.begin(), names.end(), [&](const auto& name) {
      return name.second != names.begin()->second;
    });
    const bool is_wrapper =
        differ || IsConstructor(trace.Text(trace.stacks.frame(place.frame()).function));
    if (!is_wrapper || !place.HasCaller()) continue;
    ++place.at;
    any = true;
  }
  return any;
}

}  // namespace

Openings::Openings(const Trace& trace) : trace_(trace) {
  std::vector<Place> places;
  for (const Opening& opening : trace.openings) {
    Place place{{opening.process, opening.name}, UserFrames(trace.stacks, opening.stack)};
    if (!place.frames.empty()) places.push_back(std::move(place));
  }
  while (LeaveWrappers(trace, places)) {
  }
  std::set<RangeName> several;
  for (const Place& place : places) {
    const auto [it, is_new] = frame_of_.try_emplace(place.name, place.frame());
    if (!is_new && it->second != place.frame()) several.insert(place.name);
  }
  for (const auto& name : several) frame_of_.erase(name);
}

const CallFrame* Openings::Of(Row range) const {
  if (frame_of_.empty()) return nullptr;
  const ProcessId process = trace_.ProcessOf(trace_.ranges.track[Index(range)]);
  const auto found = frame_of_.find({process, trace_.ranges.name[Index(range)]});
  return found == frame_of_.end() ? nullptr : &trace_.stacks.frame(found->second);
}

}  // namespace trainprof
