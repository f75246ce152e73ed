// The window's content: which panes there are, where they stand, and what the keyboard does. Knows
// no window system: it draws between ImGui::NewFrame and ImGui::Render of whoever has one.
#pragma once

#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"
#include "viewer/state/state.h"

namespace trainprof {

class App {
 public:
  explicit App(Settings settings);

  State& state() { return state_; }

  // Before ImGui::NewFrame. `display_scale`: pixels a point, as the display asks for. True when
  // the fonts were made anew, so that their texture has to be made anew as well.
  bool Prepare(float display_scale);
  // Between ImGui::NewFrame and ImGui::Render; fills the whole display.
  void Frame();
  // Whether a frame may wait until its user does something.
  bool Idle() const;

 private:
  void DrawPanes(PaneContext& context);

  State state_;
  PaneCache cache_;
  Theme theme_;
  float font_scale_ = 0;  // that the fonts were made for
  bool key_held_ = false;
};

}  // namespace trainprof
