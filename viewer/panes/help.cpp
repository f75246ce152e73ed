// The `?` sheet: the keyboard's table and what the mouse does.
#include <algorithm>

#include "viewer/panes/widgets.h"
#include "viewer/state/shortcuts.h"

namespace trainprof {
namespace {

constexpr float kKeysPoints = 130;
constexpr float kHelpColumnPoints = 380;
constexpr size_t kGroupsAtLeft = 3;

struct MouseUse {
  std::string_view what_is_done;
  std::string_view what_happens;
};

constexpr MouseUse kMouse[] = {
    {"wheel", "zoom at the pointer"},
    {"Shift + wheel", "scroll the tracks"},
    {"middle or right drag", "move the view"},
    {"click", "select the event"},
    {"double-click", "zoom to the event"},
    {"left drag", "select a range; it snaps to events and gaps"},
    {"click on a finding", "zoom to its worst instance"},
};

bool BeginGroup(const Theme& theme, const char* id, std::string_view title) {
  ImGui::Spacing();
  TextIn(theme.text_dim, title);
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable(id, 2, kFlags)) return false;
  ImGui::TableSetupColumn("keys", ImGuiTableColumnFlags_WidthFixed, theme.Px(kKeysPoints));
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthStretch);
  return true;
}

void ShortcutLine(const Theme& theme, std::string_view keys, std::string_view what) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  {
    const FontScope font(theme.mono);
    WrappedText(keys);
  }
  ImGui::TableNextColumn();
  WrappedText(what);
}

void DrawKeys(const Theme& theme, std::span<const ShortcutGroup> groups) {
  int id = 0;
  for (const ShortcutGroup& group : groups) {
    if (group.title.empty()) continue;
    ImGui::PushID(id++);
    if (BeginGroup(theme, "keys", group.title)) {
      for (const Shortcut& shortcut : group.shortcuts)
        ShortcutLine(theme, shortcut.keys, shortcut.what);
      ImGui::EndTable();
    }
    ImGui::PopID();
  }
}

void DrawMouse(const Theme& theme) {
  if (!BeginGroup(theme, "mouse", "Mouse")) return;
  for (const MouseUse& use : kMouse) ShortcutLine(theme, use.what_is_done, use.what_happens);
  ImGui::EndTable();
}

}  // namespace

void DrawHelp(PaneContext& context) {
  State& state = context.state;
  if (!state.help_open) return;
  const Theme& theme = context.theme;
  const ImVec2 display = ImGui::GetIO().DisplaySize;
  const ImVec2 size(std::min(theme.Px(2 * kHelpColumnPoints + 40), display.x * 0.95F),
                    std::min(theme.Px(620), display.y * 0.92F));
  ImGui::SetNextWindowPos({display.x / 2, display.y / 2}, ImGuiCond_Always, {0.5F, 0.5F});
  ImGui::SetNextWindowSize(size);
  ImGui::SetNextWindowFocus();
  const BorderScope border(theme);
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                                      ImGuiWindowFlags_NoCollapse |
                                      ImGuiWindowFlags_NoSavedSettings;
  if (ImGui::Begin("Keys and mouse", &state.help_open, kFlags)) {
    const bool beside = size.x >= theme.Px(1.6F * kHelpColumnPoints);
    const float width = beside ? (size.x - theme.Px(40)) / 2 : 0;
    ImGui::BeginChild("keys", {width, beside ? 0 : size.y * 0.55F});
    // Two columns of about the same height.
    const std::span<const ShortcutGroup> groups = ShortcutGroups();
    const size_t left = beside ? std::min(kGroupsAtLeft, groups.size()) : groups.size();
    DrawKeys(theme, groups.first(left));
    ImGui::EndChild();
    if (beside) ImGui::SameLine();
    ImGui::BeginChild("mouse");
    DrawMouse(theme);
    DrawKeys(theme, groups.subspan(left));
    ImGui::EndChild();
  }
  ImGui::End();
}

}  // namespace trainprof
