// How far loading has come; why it ended early. A bar of one line once there is something to see.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trace/formats/importer.h"
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr float kLoadingPoints = 560;

// Where the share is not known a part of the bar runs to and fro.
void Bar(const Theme& theme, float share, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme.grid);
  float begin = 0;
  float end = std::clamp(share, 0.F, 1.F);
  if (share < 0) {
    constexpr float kLength = 0.2F;
    const double seconds = ImGui::GetTime();
    begin = (1 - kLength) * static_cast<float>(0.5 - 0.5 * std::cos(2 * seconds));
    end = begin + kLength;
  }
  draw.AddRectFilled({at.x + begin * size.x, at.y}, {at.x + end * size.x, at.y + size.y},
                     theme.Of(Category::kCompute));
  ImGui::Dummy(size);
}

std::string Counted(const LoadProgress& progress) {
  std::string text = fmt::format("{} {}", Grouped(static_cast<int64_t>(progress.events)),
                                 progress.events == 1 ? "event" : "events");
  if (progress.ranks > 0) {
    text += fmt::format(", {} {} read, {} analysed", progress.ranks,
                        progress.ranks == 1 ? "rank" : "ranks", progress.analysed);
  }
  return text;
}

// The whole window is free: nothing can be shown yet, or ever.
void DrawLarge(PaneContext& context, const LoadProgress& progress) {
  State& state = context.state;
  const Theme& theme = context.theme;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = std::min(theme.Px(kLoadingPoints), room.x - theme.Px(16));
  ImGui::SetCursorPos(
      {ImGui::GetCursorPosX() + (room.x - width) / 2, ImGui::GetCursorPosY() + room.y * 0.25F});
  ImGui::BeginChild("loading", {width, std::max(1.F, ImGui::GetContentRegionAvail().y)}, false,
                    ImGuiWindowFlags_NoNav);
  {
    const FontScope font(theme.bold_title);
    CutText(progress.done ? "This could not be opened" : "Opening");
  }
  CutText(state.document->path().string());
  ImGui::Dummy({0, theme.Px(8)});
  if (progress.done) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme.error);
    WrappedText(progress.error.empty() ? "There is no event in it." : progress.error);
    ImGui::PopStyleColor();
    ImGui::Dummy({0, theme.Px(8)});
    WrappedText(
        "What can be opened: the folder that trainprof run wrote (also while it runs), a trace "
        "that torch.profiler exported (" +
        TraceNames() + "), a folder of such traces, one a rank.");
    ImGui::Dummy({0, theme.Px(8)});
    if (ImGui::Button("Try again")) Open(state, std::filesystem::path(state.document->path()));
    ImGui::SameLine();
    if (ImGui::Button("Close")) Close(state);
  } else {
    Bar(theme, static_cast<float>(progress.share), {width, theme.Px(8)});
    WrappedText(progress.text.empty() ? "beginning ..." : progress.text);
    TextIn(theme.text_dim, Counted(progress));
    ImGui::Dummy({0, theme.Px(8)});
    if (ImGui::Button("Cancel")) state.document->Cancel();
  }
  ImGui::EndChild();
}

// Ranks are on screen while others load; or not all of them could be.
void DrawLine(PaneContext& context, const LoadProgress& progress) {
  State& state = context.state;
  const Theme& theme = context.theme;
  const float line = ImGui::GetFrameHeight();
  const float spacing = ImGui::GetStyle().ItemSpacing.x;
  const char* const label = progress.done ? "Load again" : "Cancel";
  const float button = ImGui::CalcTextSize(label).x + 2 * ImGui::GetStyle().FramePadding.x;
  const float bar = progress.done ? 0 : theme.Px(120);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float end = at.x + ImGui::GetContentRegionAvail().x;
  if (!progress.done) {
    ImGui::SetCursorScreenPos({at.x, at.y + (line - theme.Px(8)) / 2});
    Bar(theme, static_cast<float>(progress.share), {bar, theme.Px(8)});
  }
  ImGui::SetCursorScreenPos({at.x + bar + (bar > 0 ? spacing : 0), at.y});
  ImGui::AlignTextToFramePadding();
  const std::string text =
      progress.done
          ? "Not everything was loaded: " + progress.error
          : (progress.text.empty() ? Counted(progress) : progress.text + "; " + Counted(progress));
  ImGui::PushStyleColor(ImGuiCol_Text, progress.done ? theme.warning : theme.text);
  CutText(text, end - button - spacing - ImGui::GetCursorScreenPos().x);
  ImGui::PopStyleColor();
  ImGui::SameLine();
  ImGui::SetCursorScreenPos({end - button, at.y});
  if (!ImGui::Button(label)) return;
  if (progress.done) {
    Open(state, std::filesystem::path(state.document->path()));
  } else {
    state.document->Cancel();
  }
}

}  // namespace

void DrawLoading(PaneContext& context) {
  State& state = context.state;
  if (!state.document) return;
  const LoadProgress progress = state.document->progress();
  if (!state.HasLines()) return DrawLarge(context, progress);
  if (!progress.done || !progress.error.empty()) return DrawLine(context, progress);
}

}  // namespace trainprof
