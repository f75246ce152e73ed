// Which tracks, panes and tabs are shown.
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

void GoToPane(State& state, int direction) {
  if (!state.HasLines()) return;
  const auto next =
      static_cast<size_t>(state.keys.pane) + kKeyPanes + static_cast<size_t>(direction);
  state.keys.pane = static_cast<KeyPane>(next % kKeyPanes);
  state.keys.shown = true;
  if (state.keys.pane != KeyPane::kTimeline) state.settings.show_bottom = true;
}

void GoToTab(State& state, int direction) {
  if (!state.HasLines()) return;
  const auto next = static_cast<size_t>(state.tab) + kTabs + static_cast<size_t>(direction);
  state.tab = static_cast<Tab>(next % kTabs);
  state.keys.row = 0;
  state.settings.show_bottom = true;
}

}  // namespace trainprof
