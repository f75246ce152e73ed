// Which tracks are shown.
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

void Toggle(std::set<uint32_t>& lines, uint32_t line) {
  if (lines.erase(line) == 0) lines.insert(line);
}

}  // namespace

void TogglePinned(State& state, uint32_t line) {
  if (state.HasLines() && line < state.lines().lines().size()) Toggle(state.pinned, line);
}

void ToggleCollapsed(State& state, uint32_t line) {
  if (state.HasLines() && line < state.lines().lines().size()) Toggle(state.collapsed, line);
}

void Reveal(State& state, uint32_t line) {
  if (!state.HasLines()) return;
  const auto lines = state.lines().lines();
  if (line >= lines.size()) return;
  for (uint32_t up = lines[line].parent; up != kNoLine; up = lines[up].parent) {
    state.collapsed.erase(up);
  }
  state.filter.clear();
  state.reveal = line;
}

}  // namespace trainprof
