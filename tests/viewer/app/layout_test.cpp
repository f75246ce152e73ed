#include "viewer/app/layout.h"

#include <gtest/gtest.h>

#include "viewer/app/splitter.h"

namespace trainprof {
namespace {

struct Window {
  float width, height, scale;
};

class LayoutTest : public ::testing::TestWithParam<Window> {};

TEST_P(LayoutTest, FillsTheWindowExactlyWhateverTheSettingsSay) {
  const auto [width, height, scale] = GetParam();
  for (const float length : {0.f, 50.f, 260.f, 5000.f}) {
    Settings settings;
    settings.bottom_height = settings.findings_width = settings.selection_width = length;
    for (const bool bottom : {true, false}) {
      settings.show_bottom = bottom;
      const Layout layout = LayoutOf(settings, width, height, scale);
      const float splitter = kSplitterPoints * scale;
      EXPECT_NEAR(layout.ribbon + layout.overview + layout.timeline +
                      (bottom ? splitter + layout.bottom : 0),
                  height, 0.5f);
      EXPECT_NEAR(layout.findings + layout.selection + layout.inspector + 2 * splitter, width,
                  0.5f);
      EXPECT_GE(layout.timeline, layout.bottom);
    }
  }
}

TEST_P(LayoutTest, EachPaneOfTheBottomCanBeRead) {
  const auto [width, height, scale] = GetParam();
  for (const float length : {0.f, 320.f, 5000.f}) {
    Settings settings;
    settings.findings_width = settings.selection_width = length;
    const Layout layout = LayoutOf(settings, width, height, scale);
    EXPECT_GE(layout.findings, 200 * scale);
    EXPECT_GE(layout.selection, 200 * scale);
    EXPECT_GE(layout.inspector, 299 * scale);
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, LayoutTest,
                         ::testing::Values(Window{1280, 640, 1}, Window{1600, 820, 1},
                                           Window{1920, 1000, 1.5f}, Window{3840, 2080, 1},
                                           Window{3840, 2060, 2}));

TEST(Layout, AWindowTooSmallForAnythingHasNoNegativeLengths) {
  for (const float side : {1.f, 20.f, 200.f, 500.f}) {
    const Layout layout = LayoutOf(Settings{}, side, side, 1);
    for (const float length :
         {layout.timeline, layout.bottom, layout.findings, layout.selection, layout.inspector}) {
      EXPECT_GE(length, 0);
    }
  }
}

TEST(Layout, PanesThatAreHiddenLeaveTheirPlaceToTheTimeline) {
  Settings settings;
  settings.show_ribbon = settings.show_overview = settings.show_bottom = false;
  EXPECT_EQ(LayoutOf(settings, 1280, 600, 1).timeline, 600);
}

}  // namespace
}  // namespace trainprof
