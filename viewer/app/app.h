// The window's content: which panes there are, where they stand, and what the keyboard does. Knows
// no window system: it draws between ImGui::NewFrame and ImGui::Render of whoever has one.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"
#include "viewer/state/state.h"

namespace trainprof {

// What to show once all is loaded.
struct Goal {
  std::optional<int64_t> step{};     // see ShowStep
  std::optional<int64_t> finding{};  // see OpenFindingNumber
  std::optional<int64_t> rank{};     // see ShowRankNumber: whose step and finding
  std::optional<TraceTime> from{};   // see ShowTimes
  std::optional<TraceTime> to{};
  std::vector<std::string> select{};  // see SelectByText

  bool IsEmpty() const { return !step && !finding && !rank && !from && !to && select.empty(); }
};

class App {
 public:
  explicit App(Settings settings, Goal goal = {});

  State& state() { return state_; }
  const Theme& theme() const { return theme_; }
  // Why the goal could not be shown; empty while it was not tried.
  const std::string& goal_error() const { return goal_error_; }

  // Files that were dropped on the window: opens the first, and says what became of the others.
  void Drop(std::span<const std::filesystem::path> paths);

  // Before ImGui::NewFrame. `display_scale`: pixels a point, as the display asks for. True when
  // the fonts were made anew, so that their texture has to be made anew as well.
  bool Prepare(float display_scale);
  // Between ImGui::NewFrame and ImGui::Render; fills the whole display.
  void Frame();
  // Whether the next frame may wait until its user does something.
  bool Idle() const;
  // Whether it is due at once, since a key is held that moves the view.
  bool KeyHeld() const { return key_held_; }

 private:
  void PursueGoal();
  void DrawPanes(PaneContext& context);

  State state_;
  std::optional<Goal> goal_;
  std::string goal_error_;
  PaneCache cache_;
  Theme theme_;
  float font_scale_ = 0;  // that the fonts were made for
  bool key_held_ = false;
};

}  // namespace trainprof
