// No file is open: how to open one, and how to record one.
#include <algorithm>

#include "trace/formats/importer.h"
#include "viewer/panes/cache.h"
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr float kWelcomePoints = 560;
constexpr float kDropPoints = 110;
constexpr size_t kRecentShown = 8;

void Heading(const Theme& theme, const char* text) {
  ImGui::Dummy({0, theme.Px(12)});
  TextIn(theme.text_dim, text);
}

// A frame that says where a file may be dropped; the window's system delivers it.
void DropZone(const Theme& theme, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size(width, theme.Px(kDropPoints));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme.panel, theme.Px(6));
  draw.AddRect(at, {at.x + size.x, at.y + size.y}, theme.text_dim, theme.Px(6), 0, theme.Px(1));
  const auto centred = [&](ImU32 color, float y, std::string_view text) {
    const std::string_view fits = FitText(text, size.x - theme.Px(16));
    const char* const end = fits.data() + fits.size();
    const float x = at.x + (size.x - ImGui::CalcTextSize(fits.data(), end).x) / 2;
    draw.AddText({x, at.y + y}, color, fits.data(), end);
  };
  const float line = ImGui::GetTextLineHeight();
  const float top = (size.y - 2.4F * line) / 2;
  centred(theme.text, top, "Drop a recording or a trace here");
  centred(theme.text_dim, top + 1.4F * line, "a run's folder, a folder of ranks, " + TraceNames());
  ImGui::Dummy(size);
}

// Asks for a path. True when it is to be opened.
void PathInput(PaneContext& context, float width) {
  PaneInputs& cache = context.cache.inspector.inputs;
  char path[4096] = {};
  cache.path_prompt.copy(path, sizeof path - 1);
  const float button = ImGui::CalcTextSize("Open").x + 4 * ImGui::GetStyle().FramePadding.x;
  ImGui::SetNextItemWidth(width - button - ImGui::GetStyle().ItemSpacing.x);
  const bool entered = ImGui::InputTextWithHint("##path", "path of a recording or a trace", path,
                                                sizeof path, ImGuiInputTextFlags_EnterReturnsTrue);
  cache.path_prompt = path;
  ImGui::SameLine();
  const bool pressed = ImGui::Button("Open");
  if ((entered || pressed) && path[0] != 0) Open(context.state, std::filesystem::path(path));
}

void Recent(PaneContext& context) {
  State& state = context.state;
  std::optional<std::filesystem::path> wanted;
  const size_t shown = std::min(kRecentShown, state.settings.recent.size());
  for (size_t i = 0; i < shown; ++i) {
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::Selectable("##recent")) wanted = state.settings.recent[i];
    ImGui::SameLine(0, 0);
    CutText(state.settings.recent[i].string());
    ImGui::PopID();
  }
  if (wanted) Open(state, *wanted);  // which changes the list
}

}  // namespace

void DrawWelcome(PaneContext& context) {
  State& state = context.state;
  const Theme& theme = context.theme;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = std::min(theme.Px(kWelcomePoints), room.x - theme.Px(16));
  const float left = (room.x - width) / 2;
  ImGui::SetCursorPos({ImGui::GetCursorPosX() + left, ImGui::GetCursorPosY() + room.y * 0.08F});
  ImGui::BeginChild("welcome", {width, std::max(1.F, ImGui::GetContentRegionAvail().y)}, false,
                    ImGuiWindowFlags_NoNav);
  {
    const FontScope font(theme.bold_title);
    Text("trainprof");
  }
  WrappedText("Says in milliseconds per step what slows a training run down, and where.");
  ImGui::Dummy({0, theme.Px(8)});
  DropZone(theme, width);
  ImGui::Dummy({0, theme.Px(4)});
  PathInput(context, width);
  if (!state.demo.empty()) {
    Heading(theme, "No trace at hand?");
    if (ImGui::Button("Open the demo trace")) Open(state, state.demo);
  }
  Heading(theme, "Record a run of your own");
  constexpr std::string_view kRecord = "trainprof run -- python train.py";
  {
    const FontScope font(theme.mono);
    CutText(kRecord, width - theme.Px(70));
  }
  ImGui::SameLine();
  CopyButton(context, "record", kRecord);
  if (!state.settings.recent.empty()) {
    Heading(theme, "Recent");
    Recent(context);
  }
  ImGui::EndChild();
}

}  // namespace trainprof
