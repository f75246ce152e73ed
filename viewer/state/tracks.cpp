// Which tracks are shown, and the command that shows this view again.
#include <fmt/format.h>

#include "viewer/state/actions.h"

namespace trainprof {
namespace {

void Toggle(std::set<uint32_t>& lines, uint32_t line) {
  if (lines.erase(line) == 0) lines.insert(line);
}

// For a POSIX shell.
std::string Quoted(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@%=,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
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

std::string ViewLink(const State& state) {
  if (!state.document) return "trainprof view";
  // It is run elsewhere, too.
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(state.document->path(), error);
  std::string link = "trainprof view " + Quoted(path.string());
  const bool of_slowest = state.finding && state.finding->rank == state.document->SlowestRank();
  if (of_slowest) {
    link += fmt::format(" --finding {}", state.finding->index + 1);
  } else if (const auto step = StepInView(state)) {
    link += fmt::format(" --step {}", *step);
  }
  const bool light = state.settings.theme == ThemeName::kLight;
  return link + (light ? " --theme light" : " --theme dark") + " --screenshot view.png";
}

}  // namespace trainprof
