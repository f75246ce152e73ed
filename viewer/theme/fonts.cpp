// Fonts: DejaVu's, which the build embeds (fonts.S.in), with the characters that we write.
#include <cmath>

#include "viewer/theme/theme.h"

extern "C" {
extern const unsigned char trainprof_font_regular[], trainprof_font_regular_end[];
extern const unsigned char trainprof_font_bold[], trainprof_font_bold_end[];
extern const unsigned char trainprof_font_mono[], trainprof_font_mono_end[];
}

namespace trainprof {
namespace {

// Heights of a line of text, in points.
constexpr float kBodyPoints = 14;
constexpr float kTitlePoints = 18;
constexpr float kMonoPoints = 13;

// Names come from traces, so that more than English is needed; what lies outside is shown as "?".
constexpr ImWchar kRanges[] = {
    0x0020, 0x017f,  // Latin with its accents, µ, ×, ±
    0x0391, 0x03c9,  // Greek
    0x0401, 0x0451,  // Cyrillic
    0x2010, 0x2044,  // dashes, quotes, bullets, ellipsis
    0x2070, 0x208e,  // raised and lowered figures
    0x2190, 0x21bb,  // arrows
    0x2200, 0x2265,  // sums, infinity, about equal, at most, at least
    0x2580, 0x259f,  // blocks
    0x25a0, 0x25ff,  // squares, triangles, circles
    0x2605, 0x2606,  // stars
    0x26a0, 0x26a0,  // warning sign
    0x2713, 0x2717,  // check mark, cross
    0,
};

ImFont* Add(const unsigned char* begin, const unsigned char* end, float pixels) {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  // Whole pixels keep stems sharp; sub-pixel placing is for small text on coarse displays only.
  config.OversampleH = pixels < 20 ? 2 : 1;
  config.OversampleV = 1;
  config.PixelSnapH = pixels >= 20;
  // The atlas does not write to the font, though its interface says so.
  auto* const data = const_cast<unsigned char*>(begin);
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(data, static_cast<int>(end - begin), pixels,
                                                    &config, kRanges);
}

}  // namespace

void LoadFonts(float scale) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  atlas.Clear();
#if IMGUI_VERSION_NUM < 19200  // later ones let the texture grow as it needs to
  atlas.TexDesiredWidth = 2048;
#endif
  // In the order of Theme's members, see ApplyTheme.
  Add(trainprof_font_regular, trainprof_font_regular_end, std::round(kBodyPoints * scale));
  Add(trainprof_font_bold, trainprof_font_bold_end, std::round(kTitlePoints * scale));
  Add(trainprof_font_mono, trainprof_font_mono_end, std::round(kMonoPoints * scale));
}

}  // namespace trainprof
