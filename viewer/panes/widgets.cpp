#include "viewer/panes/widgets.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainprof {
namespace {

// Enough to know a name by; the rest is copied, not read.
constexpr size_t kMostWrapped = 1200;
constexpr size_t kMostOnALine = 4096;  // characters that any screen has room for
constexpr float kTooltipWidth = 480;   // points at a font of 13 pixels

bool IsInsideCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

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
  ImGui::PushTextWrapPos(0);
  Text(text.substr(0, shown));
  if (shown < whole)
    Text(fmt::format("... and {} more characters", Grouped(static_cast<int64_t>(whole - shown))));
  ImGui::PopTextWrapPos();
}

void CutText(std::string_view text, float width) {
  if (width <= 0) width = std::max(1.0F, ImGui::GetContentRegionAvail().x);
  const std::string_view all = FitText(text, width);
  if (all.size() == text.size()) return Text(text);
  const float dots = ImGui::CalcTextSize("...").x;
  const std::string cut = std::string(FitText(text, width - dots)) + "...";
  Text(cut);
  Tooltip(text);
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

bool CopyButton(PaneContext& context, const char* id, std::string_view text, const char* label) {
  if (!WordButton(id, label)) return false;
  ImGui::SetClipboardText(std::string(text).c_str());
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
