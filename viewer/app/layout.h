// Where the panes stand: pure arithmetic, so that a test can try every size of window.
#pragma once

#include "viewer/state/state.h"

namespace trainprof {

// In pixels; of the part of the window below the verdict.
struct Layout {
  float ribbon = 0;  // heights; 0: not shown
  float overview = 0;
  float timeline = 0;
  float bottom = 0;     // without the splitter above it; 0: not shown
  float findings = 0;   // widths
  float selection = 0;  // the inspector has the rest, between two splitters
  float inspector = 0;
};

// What the settings ask for as far as it fits: at least half the height that ribbon and overview
// leave is the timeline's, and each pane of the bottom keeps a width in which it can be read.
Layout LayoutOf(const Settings& settings, float width, float height, float scale);

}  // namespace trainprof
