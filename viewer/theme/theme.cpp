#include "viewer/theme/theme.h"

#include <cmath>
#include <utility>

#include "viewer/timeline/frame.h"

namespace trainprof {
namespace {

constexpr ImU32 Rgb(uint32_t rrggbb) {
  return IM_COL32((rrggbb >> 16) & 0xff, (rrggbb >> 8) & 0xff, rrggbb & 0xff, 0xff);
}

struct Surface {
  uint32_t window, panel, stripe, text, text_dim, grid, selection, error, warning, note;
};

constexpr Surface kDark = {.window = 0x14171c,
                           .panel = 0x1b1f26,
                           .stripe = 0x20252d,
                           .text = 0xe8eaed,
                           .text_dim = 0xa3abb6,
                           .grid = 0x3a424d,
                           .selection = 0xb07cff,
                           .error = 0xff7b66,
                           .warning = 0xf0b429,
                           .note = 0x74b9e8};

constexpr Surface kLight = {.window = 0xe9ebee,
                            .panel = 0xfcfcfd,
                            .stripe = 0xf2f4f6,
                            .text = 0x16191d,
                            .text_dim = 0x555d67,
                            .grid = 0xc6ccd3,
                            .selection = 0x7a2fe0,
                            .error = 0xb3261e,
                            .warning = 0x855000,
                            .note = 0x00609a};

const Surface& SurfaceOf(ThemeName name) { return name == ThemeName::kDark ? kDark : kLight; }

ImU32 Mix(ImU32 from, ImU32 to, float share) {
  ImU32 mixed = 0xffu << IM_COL32_A_SHIFT;
  for (const int shift : {IM_COL32_R_SHIFT, IM_COL32_G_SHIFT, IM_COL32_B_SHIFT}) {
    const auto a = static_cast<float>((from >> shift) & 0xff);
    const auto b = static_cast<float>((to >> shift) & 0xff);
    mixed |= static_cast<ImU32>(std::lround(a + (b - a) * share)) << shift;
  }
  return mixed;
}

// Relative luminance as WCAG 2 defines it, 0 .. 1.
float Luminance(ImU32 color) {
  const auto linear = [color](int shift) {
    const float c = static_cast<float>((color >> shift) & 0xff) / 255;
    return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f);
  };
  return 0.2126f * linear(IM_COL32_R_SHIFT) + 0.7152f * linear(IM_COL32_G_SHIFT) +
         0.0722f * linear(IM_COL32_B_SHIFT);
}

ImVec4 Vec(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }

void SetMeasures(ImGuiStyle& style, float scale) {
  style.WindowPadding = {8, 6};
  style.FramePadding = {7, 3};
  style.CellPadding = {5, 2};
  style.ItemSpacing = {8, 4};
  style.ItemInnerSpacing = {5, 4};
  style.ScrollbarSize = 12;
  style.GrabMinSize = 10;
  style.WindowRounding = 0;
  style.ChildRounding = 0;
  style.FrameRounding = 3;
  style.PopupRounding = 4;
  style.GrabRounding = 3;
  style.TabRounding = 3;
  style.ScrollbarRounding = 6;
  style.WindowBorderSize = 0;
  style.PopupBorderSize = 1;
  style.ScaleAllSizes(scale);
}

// What stands out of the panel by ever more of the text's colour.
void SetControls(ImVec4* colors, const Theme& theme) {
  const auto raised = [&](float share) { return Vec(Mix(theme.panel, theme.text, share)); };
  // They stand on the window as well, which is darker than the panel in the light theme.
  const float more = theme.name == ThemeName::kLight ? 0.07f : 0;
  for (const auto& [color, share] :
       {std::pair{ImGuiCol_FrameBg, 0.07f + more}, std::pair{ImGuiCol_FrameBgHovered, 0.11f + more},
        std::pair{ImGuiCol_FrameBgActive, 0.15f + more}, std::pair{ImGuiCol_Button, 0.10f + more},
        std::pair{ImGuiCol_ButtonHovered, 0.16f + more},
        std::pair{ImGuiCol_ButtonActive, 0.20f + more}, std::pair{ImGuiCol_Header, 0.13f},
        std::pair{ImGuiCol_HeaderHovered, 0.09f}, std::pair{ImGuiCol_HeaderActive, 0.18f},
        std::pair{ImGuiCol_Tab, 0.04f}, std::pair{ImGuiCol_TabHovered, 0.18f},
        std::pair{ImGuiCol_TabActive, 0.15f}, std::pair{ImGuiCol_TabUnfocused, 0.04f},
        std::pair{ImGuiCol_TabUnfocusedActive, 0.15f}, std::pair{ImGuiCol_TableHeaderBg, 0.08f},
        std::pair{ImGuiCol_ScrollbarGrab, 0.22f}, std::pair{ImGuiCol_ScrollbarGrabHovered, 0.32f},
        std::pair{ImGuiCol_ScrollbarGrabActive, 0.42f}}) {
    colors[color] = raised(share);
  }
}

void SetColors(ImVec4* colors, const Theme& theme) {
  theme.name == ThemeName::kDark ? ImGui::StyleColorsDark() : ImGui::StyleColorsLight();
  SetControls(colors, theme);
  const ImVec4 grid = Vec(theme.grid);
  const ImVec4 panel = Vec(theme.panel);
  colors[ImGuiCol_Text] = Vec(theme.text);
  colors[ImGuiCol_TextDisabled] = Vec(theme.text_dim);
  colors[ImGuiCol_WindowBg] = Vec(theme.window);
  colors[ImGuiCol_ChildBg] = {0, 0, 0, 0};
  colors[ImGuiCol_PopupBg] = panel;
  colors[ImGuiCol_MenuBarBg] = Vec(theme.window);
  colors[ImGuiCol_TitleBg] = panel;
  colors[ImGuiCol_TitleBgActive] = panel;
  colors[ImGuiCol_ScrollbarBg] = {0, 0, 0, 0};
  for (const ImGuiCol_ color : {ImGuiCol_Border, ImGuiCol_Separator, ImGuiCol_TableBorderStrong,
                                ImGuiCol_TableBorderLight}) {
    colors[color] = grid;
  }
  colors[ImGuiCol_SeparatorHovered] = Vec(theme.text_dim);
  colors[ImGuiCol_SeparatorActive] = Vec(theme.text);
  colors[ImGuiCol_TableRowBg] = {0, 0, 0, 0};
  colors[ImGuiCol_TableRowBgAlt] = Vec(theme.stripe);
  colors[ImGuiCol_CheckMark] = Vec(theme.text);
  colors[ImGuiCol_PlotHistogram] = Vec(theme.Of(Category::kCompute));
  colors[ImGuiCol_TextSelectedBg] = Vec(Mix(theme.panel, theme.Of(Category::kCompute), 0.35f));
  colors[ImGuiCol_NavHighlight] = Vec(theme.text_dim);
}

}  // namespace

ImU32 Theme::Shaded(Category c, uint8_t shade) const {
  // What is hardly busy is still to be seen.
  constexpr float kFaintest = 0.3f;
  const float busy = static_cast<float>(shade) / static_cast<float>(kShades);
  return Mix(panel, Of(c), kFaintest + (1 - kFaintest) * busy);
}

ImU32 Theme::TextOn(ImU32 background) {
  // Where black and white differ equally from it: (L + 0.05)^2 = 1.05 * 0.05.
  constexpr float kMiddle = 0.1791f;
  return Luminance(background) > kMiddle ? IM_COL32_BLACK : IM_COL32_WHITE;
}

Theme ApplyTheme(ThemeName name, float scale) {
  const Surface& surface = SurfaceOf(name);
  Theme theme{.name = name,
              .scale = scale,
              .window = Rgb(surface.window),
              .panel = Rgb(surface.panel),
              .stripe = Rgb(surface.stripe),
              .text = Rgb(surface.text),
              .text_dim = Rgb(surface.text_dim),
              .grid = Rgb(surface.grid),
              .selection = Rgb(surface.selection),
              .error = Rgb(surface.error),
              .warning = Rgb(surface.warning),
              .note = Rgb(surface.note)};
  for (size_t i = 0; i < kCategories; ++i)
    theme.category[i] = Rgb(ColorOf(static_cast<Category>(i)));
  const ImVector<ImFont*>& fonts = ImGui::GetIO().Fonts->Fonts;
  IM_ASSERT(fonts.Size == 3 && "LoadFonts comes first");
  theme.regular = fonts[0];
  theme.bold_title = fonts[1];
  theme.mono = fonts[2];
  ImGuiStyle& style = ImGui::GetStyle();
  style = ImGuiStyle();
  SetMeasures(style, scale);
  SetColors(style.Colors, theme);
  return theme;
}

}  // namespace trainprof
