#include "viewer/theme/theme.h"

#include <gtest/gtest.h>
#include <imgui.h>

#include <cmath>
#include <set>

#include "tests/viewer/text_finder.h"
#include "viewer/timeline/frame.h"

namespace trainprof {
namespace {

// WCAG 2: what text of normal size needs.
constexpr double kLeastContrast = 4.5;
// And what a picture's parts need against what is beside them.
constexpr double kLeastContrastOfMarks = 3;

double Luminance(const ImVec4& color) {
  const auto linear = [](double c) {
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.x) + 0.7152 * linear(color.y) + 0.0722 * linear(color.z);
}

double Contrast(const ImVec4& a, const ImVec4& b) {
  const double la = Luminance(a);
  const double lb = Luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

double Contrast(ImU32 a, ImU32 b) {
  return Contrast(ImGui::ColorConvertU32ToFloat4(a), ImGui::ColorConvertU32ToFloat4(b));
}

class ThemeTest : public ::testing::TestWithParam<ThemeName> {
 protected:
  ThemeTest() {
    ImGui::CreateContext();
    LoadFonts(1);
    theme_ = ApplyTheme(GetParam(), 1);
  }
  ~ThemeTest() override { ImGui::DestroyContext(); }
  Theme theme_;
};

TEST_P(ThemeTest, EveryTextIsReadableOnEverySurface) {
  for (const ImU32 surface : {theme_.window, theme_.panel, theme_.stripe}) {
    for (const ImU32 text :
         {theme_.text, theme_.text_dim, theme_.error, theme_.warning, theme_.note}) {
      EXPECT_GE(Contrast(text, surface), kLeastContrast)
          << std::hex << "text " << text << " on " << surface;
    }
    EXPECT_GE(Contrast(theme_.selection, surface), kLeastContrastOfMarks);
  }
}

TEST_P(ThemeTest, TextIsReadableOnEveryControl) {
  const ImVec4* const colors = ImGui::GetStyle().Colors;
  for (const ImGuiCol_ control :
       {ImGuiCol_PopupBg, ImGuiCol_MenuBarBg, ImGuiCol_TitleBg, ImGuiCol_TitleBgActive,
        ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_FrameBgActive, ImGuiCol_Button,
        ImGuiCol_ButtonHovered, ImGuiCol_ButtonActive, ImGuiCol_Header, ImGuiCol_HeaderHovered,
        ImGuiCol_HeaderActive, ImGuiCol_Tab, ImGuiCol_TabHovered, ImGuiCol_TabActive,
        ImGuiCol_TableHeaderBg, ImGuiCol_TextSelectedBg}) {
    EXPECT_GE(Contrast(colors[ImGuiCol_Text], colors[control]), kLeastContrast)
        << ImGui::GetStyleColorName(control);
    EXPECT_EQ(colors[control].w, 1) << ImGui::GetStyleColorName(control);
  }
}

TEST_P(ThemeTest, WhatAFieldAsksForIsReadableInIt) {
  const ImVec4* const colors = ImGui::GetStyle().Colors;
  EXPECT_GE(Contrast(colors[ImGuiCol_TextDisabled], colors[ImGuiCol_FrameBg]), kLeastContrast);
}

TEST_P(ThemeTest, NamesAreReadableOnEveryShadeOfEveryCategory) {
  for (size_t i = 0; i < kCategories; ++i) {
    const auto category = static_cast<Category>(i);
    for (uint8_t shade = 1; shade <= kShades; ++shade) {
      const ImU32 color = theme_.Shaded(category, shade);
      EXPECT_GE(Contrast(Theme::TextOn(color), color), kLeastContrast) << Title(category);
    }
    EXPECT_EQ(theme_.Shaded(category, kShades), theme_.Of(category));
  }
}

TEST_P(ThemeTest, CategoriesDifferFromEachOtherFromTheSurfaceAndFromTheSelection) {
  std::set<ImU32> colors{theme_.panel, theme_.selection};
  for (size_t i = 0; i < kCategories; ++i) {
    EXPECT_TRUE(colors.insert(theme_.category[i]).second) << Title(static_cast<Category>(i));
    EXPECT_GE(Contrast(theme_.category[i], theme_.panel), 1.4) << Title(static_cast<Category>(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, ThemeTest, ::testing::Values(ThemeName::kLight, ThemeName::kDark),
                         [](const auto& info) {
                           return info.param == ThemeName::kLight ? "Light" : "Dark";
                         });

class FontsTest : public ::testing::TestWithParam<float> {
 protected:
  FontsTest() {
    ImGui::CreateContext();
    LoadFonts(GetParam());
    theme_ = ApplyTheme(ThemeName::kDark, GetParam());
    unsigned char* pixels = nullptr;
    ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width_, &height_);
  }
  ~FontsTest() override { ImGui::DestroyContext(); }
  Theme theme_;
  int width_ = 0;
  int height_ = 0;
};

TEST_P(FontsTest, HoldWhatWeWrite) {
  for (ImFont* font : {theme_.regular, theme_.bold_title, theme_.mono}) {
    ASSERT_NE(font, nullptr);
    for (const ImWchar c : {u'a', u'ß', u'µ', u'μ', u'←', u'→', u'↔', u'≤', u'≥', u'≈', u'∞',
                            u'•', u'…', u'–', u'█', u'▏', u'▶', u'▼', u'×', u'⚠', u'✓'}) {
      EXPECT_NE(testing::GlyphOf(*font, c), nullptr) << std::hex << static_cast<unsigned>(c);
    }
  }
}

TEST_P(FontsTest, FitInATextureThatEveryDriverHas) {
  EXPECT_LE(width_, 8192);
  EXPECT_LE(height_, 8192);
}

INSTANTIATE_TEST_SUITE_P(Scales, FontsTest, ::testing::Values(1.f, 1.5f, 2.f, 4.f));

}  // namespace
}  // namespace trainprof
