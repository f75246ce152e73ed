// Colours and measures of the window: one palette of causes everywhere (Okabe and Ito's, which
// colour-blind people tell apart), a light and a dark surface. All lengths are points, scaled.
#pragma once

#include <imgui.h>

#include "analysis/tables/category.h"
#include "viewer/state/state.h"

namespace trainprof {

struct Theme {
  ThemeName name{};
  float scale = 1;  // pixels a point

  ImU32 window = 0;  // behind everything
  ImU32 panel = 0;   // behind a pane's content
  ImU32 stripe = 0;  // every second line of the timeline
  ImU32 text = 0;
  ImU32 text_dim = 0;   // what may be read last
  ImU32 grid = 0;       // ruler ticks, borders
  ImU32 selection = 0;  // the selected event and range; used for nothing else
  ImU32 error = 0;      // severities
  ImU32 warning = 0;
  ImU32 note = 0;
  ImU32 category[kCategories] = {};

  ImFont* regular = nullptr;
  ImFont* bold_title = nullptr;  // the verdict
  ImFont* mono = nullptr;        // code, commands

  float Px(float points) const { return points * scale; }
  ImU32 Of(Category c) const { return category[static_cast<size_t>(c)]; }
  // The colour of a column that is busy `shade` / kShades: the category's, mixed into the surface.
  ImU32 Shaded(Category c, uint8_t shade) const;
  // Idle time is hatched too, so that colour is not the only cue.
  static bool IsHatched(Table table) { return table == Table::kIdle; }
  // Black or white, whichever reads better on `background`.
  static ImU32 TextOn(ImU32 background);
};

// Sets ImGui's style and returns the palette. LoadFonts first; the fonts are of that scale.
Theme ApplyTheme(ThemeName name, float scale);
// Puts the fonts, with arrows and the micro sign, into ImGui's atlas.
void LoadFonts(float scale);

}  // namespace trainprof
