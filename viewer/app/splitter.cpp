#include "viewer/app/splitter.h"

#include <algorithm>
#include <cmath>

namespace trainprof {

float Splitter(const char* id, const Theme& theme, Between between, float length) {
  const bool level = between == Between::kAboveAndBelow;
  const float thick = theme.Px(kSplitterPoints);
  ImGui::InvisibleButton(id, level ? ImVec2(length, thick) : ImVec2(thick, length));
  const bool active = ImGui::IsItemActive();
  const bool hovered = active || ImGui::IsItemHovered();
  if (hovered) {
    ImGui::SetMouseCursor(level ? ImGuiMouseCursor_ResizeNS : ImGuiMouseCursor_ResizeEW);
  }
  ImVec2 from = ImGui::GetItemRectMin();
  ImVec2 to = ImGui::GetItemRectMax();
  const float line = std::max(1.f, theme.Px(hovered ? 2 : 1));
  float& begin = level ? from.y : from.x;
  float& end = level ? to.y : to.x;
  begin = std::floor((begin + end - line) / 2);
  end = begin + line;
  ImGui::GetWindowDrawList()->AddRectFilled(from, to, hovered ? theme.text_dim : theme.grid);
  const ImVec2 moved = ImGui::GetIO().MouseDelta;
  return active ? (level ? moved.y : moved.x) / theme.scale : 0;
}

}  // namespace trainprof
