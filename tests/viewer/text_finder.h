// Reads what the last frame wrote: text is found by its glyphs, so that a test clicks on words as a
// user does and sees what a user sees.
#pragma once

#include <imgui.h>

#include <optional>
#include <string_view>

namespace trainprof::testing {

struct FoundText {
  ImVec2 min;
  ImVec2 max;

  ImVec2 middle() const { return {(min.x + max.x) / 2, (min.y + max.y) / 2}; }
};

// Of the size that the font was loaded with; null where the font lacks it. Before ImGui 1.92 a font
// has one size.
inline const ImFontGlyph* GlyphOf(ImFont& font, ImWchar c) {
#if IMGUI_VERSION_NUM < 19200
  return font.FindGlyphNoFallback(c);
#else
  return font.GetFontBaked(font.LegacySize)->FindGlyphNoFallback(c);
#endif
}

// The `nth` place (0: the first drawn) where a text of ASCII stands, in any font, on one line and
// with its middle to be seen.
std::optional<FoundText> FindText(std::string_view text, int nth = 0);

inline bool ShowsText(std::string_view text) { return FindText(text).has_value(); }

// Glyphs of the last frame whose right half lies beyond what they are clipped to, on a line that is
// seen: text that cannot be read to its end.
int CutGlyphs();

}  // namespace trainprof::testing
