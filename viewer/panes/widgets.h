// Texts and small controls that panes share. Every text may come from a trace: none is a format
// string, and any may be 10^5 characters long.
#pragma once

#include <imgui.h>

#include <string>
#include <string_view>

#include "viewer/panes/panes.h"

namespace trainprof {

// The first `most` bytes, cut between characters; all when it is shorter. Ends at a line break.
std::string_view FirstOf(std::string_view text, size_t most);
// The longest begin of the text's first line that is at most `width` pixels wide. O(width).
std::string_view FitText(std::string_view text, float width);

void Text(std::string_view text);
void TextIn(ImU32 color, std::string_view text);
// Of any length: breaks lines, but no numbers, and says how much it leaves out.
void WrappedText(std::string_view text);
// One line, at most `width` pixels; what does not fit is in the tooltip, or `whole` if that is
// given. 0: the space that is left.
void CutText(std::string_view text, float width = 0, std::string_view whole = {});
// What a hovering pointer sees of the last item.
void Tooltip(std::string_view text);

// Scrolls the current window, which has no rows to go to, as the keys of a pane say.
void ScrollByKeys(const PaneContext& context, KeyPane pane);

// Copies `text`; says so in state.message.
bool CopyButton(PaneContext& context, const char* id, std::string_view text,
                const char* label = "copy");
// A button of our own word that stands in a line of text.
bool WordButton(const char* id, const char* word, bool enabled = true);
// Button that is as wide as its text: `label` may come from a trace.
bool TextButton(const char* id, std::string_view label, bool enabled = true);

// A line around the windows that are begun while it lives: they lie over others.
class BorderScope {
 public:
  explicit BorderScope(const Theme& theme) {
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, theme.Px(1));
    ImGui::PushStyleVar(ImGuiStyleVar_PopupBorderSize, theme.Px(1));
    ImGui::PushStyleColor(ImGuiCol_Border, theme.text_dim);
  }
  ~BorderScope() {
    ImGui::PopStyleColor();
    ImGui::PopStyleVar(2);
  }
  BorderScope(const BorderScope&) = delete;
  BorderScope& operator=(const BorderScope&) = delete;
};

// A font for as long as it lives; null: the current one.
class FontScope {
 public:
  explicit FontScope(ImFont* font) : pushed_(font != nullptr) {
    if (pushed_) ImGui::PushFont(font);
  }
  ~FontScope() {
    if (pushed_) ImGui::PopFont();
  }
  FontScope(const FontScope&) = delete;
  FontScope& operator=(const FontScope&) = delete;

 private:
  bool pushed_;
};

// "12,345,678"
std::string Grouped(int64_t number);
// "1.5 GiB", "812 B"
std::string BytesText(int64_t bytes);

}  // namespace trainprof
