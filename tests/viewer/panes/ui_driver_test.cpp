#include "tests/viewer/ui_driver.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

TEST(UiDriver, PressesHoldsAndMovesOnWidgets) {
  int clicks = 0;
  int double_clicks = 0;
  ImVec2 dragged{0, 0};
  float wheel = 0;
  UiDriver ui({400, 300}, [&](const Theme& theme) {
    ImGui::GetWindowDrawList()->AddRectFilled({300, 200}, {320, 220}, theme.selection);
    ImGui::SetCursorScreenPos({10, 10});
    if (ImGui::InvisibleButton("target", {100, 100})) ++clicks;
    if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(0)) ++double_clicks;
    if (ImGui::IsItemActive()) dragged = ImGui::GetMouseDragDelta(0);
    wheel += ImGui::GetIO().MouseWheel;
  });
  ui.Click({200, 200});
  EXPECT_EQ(clicks, 0);
  ui.Click({50, 50});
  ui.Click({50, 50});
  EXPECT_EQ(clicks, 2);
  EXPECT_EQ(double_clicks, 0);
  ui.DoubleClick({50, 50});
  EXPECT_EQ(double_clicks, 1);
  ui.Drag({20, 20}, {60, 50});
  EXPECT_EQ(dragged.x, 40);
  EXPECT_EQ(dragged.y, 30);
  ui.Wheel({50, 50}, 2);
  ui.Frames(3);
  EXPECT_EQ(wheel, 2);
  EXPECT_TRUE(ui.Shows(ui.theme().selection, {300, 200}, {320, 220}));
  EXPECT_FALSE(ui.Shows(ui.theme().selection, {0, 0}, {200, 200}));
  EXPECT_GE(ui.drawn().rects, 1);
}

}  // namespace
}  // namespace trainprof
