#include "viewer/panes/widgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "trace/io/printable.h"

namespace trainprof {
namespace {

// Enough to know a name by; the rest is copied, not read.
constexpr size_t kMostWrapped = 1200;
constexpr size_t kMostOnALine = 4096;  // characters that any screen has room for
constexpr float kTooltipWidth = 480;   // points at a font of 13 pixels

bool IsInsideCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Where a line of which `fits` bytes fit is broken: at a blank, else behind a mark between two
// parts of a name or sentence, but not within a number; else where it no longer fits. At least 1.
size_t BreakOf(std::string_view line, size_t fits) {
  for (size_t at = fits; at > fits / 3; --at) {
    if (line[at] == ' ') return at;
    const bool in_number = std::isdigit(static_cast<unsigned char>(line[at])) != 0;
    if (!in_number && std::string_view(".,;:/").find(line[at - 1]) != std::string_view::npos) {
      return at;
    }
  }
  size_t at = std::max<size_t>(fits, 1);
  while (at < line.size() && IsInsideCharacter(line[at])) ++at;
  return at;
}

std::string Broken(std::string_view text, float width) {
  std::string lines;
  while (true) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t fits = FitText(line, width).size();
    const size_t end = fits < line.size() ? BreakOf(line, fits) : line.size();
    lines += line.substr(0, end);
    text.remove_prefix(end);
    if (text.empty()) return lines;
    if (text.front() == '\n' || text.front() == ' ') text.remove_prefix(1);
    lines += '\n';
  }
}

const char* EndOf(std::string_view text) { return text.data() + text.size(); }

}  // namespace

std::string_view FirstOf(std::string_view text, size_t most) {
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.size() <= most) return text;
  while (most > 0 && IsInsideCharacter(text[most])) --most;
  return text.substr(0, most);
}

std::string_view FitText(std::string_view text, float width) {
  text = text.substr(0, kMostOnALine);
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.empty() || width <= 0) return {};
  const char* rest = nullptr;
  ImGui::GetFont()->CalcTextSizeA(ImGui::GetFontSize(), width, -1, text.data(), EndOf(text), &rest);
  return text.substr(0, static_cast<size_t>(rest - text.data()));
}

void Text(std::string_view text) { ImGui::TextUnformatted(text.data(), EndOf(text)); }

void TextIn(ImU32 color, std::string_view text) {
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  Text(text);
  ImGui::PopStyleColor();
}

void WrappedText(std::string_view text) {
  const size_t whole = text.size();
  size_t shown = std::min(whole, kMostWrapped);
  while (shown > 0 && shown < whole && IsInsideCharacter(text[shown])) --shown;
  Text(Broken(text.substr(0, shown), std::max(1.F, ImGui::GetContentRegionAvail().x)));
  if (shown < whole)
    CutText(
        fmt::format("... and {} more characters", Grouped(static_cast<int64_t>(whole - shown))));
}

void CutText(std::string_view text, float width, std::string_view whole) {
  if (whole.empty()) whole = text;
  if (width <= 0) width = std::max(1.0F, ImGui::GetContentRegionAvail().x);
  const std::string_view all = FitText(text, width);
  if (all.size() == text.size()) {
    Text(text);
    if (whole.size() > text.size()) Tooltip(whole);
    return;
  }
  const float dots = ImGui::CalcTextSize("...").x;
  const std::string cut = std::string(FitText(text, width - dots)) + "...";
  Text(cut);
  Tooltip(whole);
}

void Tooltip(std::string_view text) {
  if (!ImGui::IsItemHovered()) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(kTooltipWidth * ImGui::GetFontSize() / 13);
  size_t shown = std::min(text.size(), kMostWrapped);
  while (shown > 0 && shown < text.size() && IsInsideCharacter(text[shown])) --shown;
  Text(text.substr(0, shown));
  if (shown < text.size()) Text("...");
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void ScrollByKeys(const PaneContext& context, KeyPane pane) {
  const KeyFocus& keys = context.state.keys;
  if (keys.pane != pane || (keys.rows == 0 && keys.pages == 0)) return;
  const float by = static_cast<float>(keys.rows) * ImGui::GetTextLineHeightWithSpacing() +
                   static_cast<float>(keys.pages) * 0.9F * ImGui::GetWindowHeight();
  ImGui::SetScrollY(std::clamp(ImGui::GetScrollY() + by, 0.F, ImGui::GetScrollMaxY()));
}

bool CopyButton(PaneContext& context, const char* id, std::string_view text, const char* label) {
  if (!WordButton(id, label)) return false;
  // It will be pasted into a terminal, sooner or later.
  ImGui::SetClipboardText(SeveralLines(text).c_str());
  context.state.message = "copied to the clipboard";
  return true;
}

bool WordButton(const char* id, const char* word, bool enabled) {
  ImGui::PushID(id);
  ImGui::BeginDisabled(!enabled);
  const bool pressed = ImGui::SmallButton(word);
  ImGui::EndDisabled();
  ImGui::PopID();
  return pressed;
}

bool TextButton(const char* id, std::string_view label, bool enabled) {
  label = FirstOf(label, kMostOnALine);
  ImGui::PushID(id);
  ImGui::BeginDisabled(!enabled);
  // ImGui takes what follows a ## for an id, and a trace's texts may hold that.
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float padding = ImGui::GetStyle().FramePadding.x;
  const float width = ImGui::CalcTextSize(label.data(), EndOf(label)).x;
  const bool pressed = ImGui::Button("##button", {width + 2 * padding, ImGui::GetTextLineHeight()});
  const ImU32 color = ImGui::GetColorU32(ImGuiCol_Text);
  ImGui::GetWindowDrawList()->AddText({at.x + padding, at.y}, color, label.data(), EndOf(label));
  ImGui::EndDisabled();
  ImGui::PopID();
  return pressed;
}

std::string Grouped(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t first = digits.front() == '-' ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string BytesText(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024 && bytes > -1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (value /= 1024; (value >= 1024 || value <= -1024) && unit < 3; ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace trainprof
