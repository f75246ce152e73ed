// The timeline: ruler, tracks and their lanes.
#include "viewer/panes/timeline_frame.h"
#include "viewer/panes/timeline_input.h"
#include "viewer/panes/timeline_keys.h"
#include "viewer/panes/timeline_lanes.h"
#include "viewer/panes/timeline_marks.h"
#include "viewer/panes/timeline_names.h"
#include "viewer/panes/timeline_range.h"
#include "viewer/panes/timeline_ruler.h"
#include "viewer/panes/timeline_series.h"

namespace trainprof {
namespace {

// Lanes and series of lines that are out of sight are kept as long as all take less.
constexpr size_t kMostLaneBytes = size_t{1} << 30;

void DrawNothingFound(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  if (!frame.rows.empty()) return;
  const ImVec2 at{frame.areas.tracks.left + context.theme.Px(8),
                  frame.areas.tracks.top + context.theme.Px(8)};
  const bool filtered = context.cache.timeline.layout.filtered_out > 0;
  draw->AddText(at, context.theme.text_dim,
                filtered ? "no track of that name" : "the trace holds no events");
}

void DrawContent(PaneContext& context, ImVec2 min, ImVec2 max) {
  TimelineCache& cache = context.cache.timeline;
  cache.pending = false;
  TimelineAreas areas = MakeAreas(context, min, max);
  UpdateLayout(context, areas);
  HandleRowKeys(context, areas);
  HandleScrolling(context, areas);
  areas = MakeAreas(context, min, max);
  UpdateLayout(context, areas);
  TimelineFrame frame = MakeTimelineFrame(context, areas);
  HandlePointer(context, frame);
  frame.scale = Scale::Of(context.state.view, frame.scale.width_px);

  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(min, max, context.theme.panel);
  const Ruler ruler = RulerOf(context, frame);
  DrawBackground(context, draw, frame, ruler);
  DrawSeriesRows(context, draw, frame);
  DrawNames(context, draw, frame);
  DrawLanes(context, draw, frame);
  DrawVeil(context, draw, frame);
  DrawHits(context, draw, frame);
  DrawSeriesScales(context, draw, frame);
  DrawSelected(context, draw, frame);
  DrawRuler(context, draw, frame, ruler);
  DrawBookmarks(context, draw, frame);
  DrawRange(context, draw, frame);
  DrawCursor(context, draw, frame);
  DrawScrollbar(context, draw, frame);
  DrawFilter(context, areas.corner);
  DrawNothingFound(context, draw, frame);
  context.state.document->store().Trim(kMostLaneBytes);
}

}  // namespace

void DrawTimeline(PaneContext& context) {
  if (!context.state.HasLines()) return;
  const ImVec2 size = ImGui::GetContentRegionAvail();
  if (size.x < 1 || size.y < 1) return;
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoScrollbar |
                                      ImGuiWindowFlags_NoScrollWithMouse |
                                      ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_NoNav;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  const bool visible = ImGui::BeginChild("timeline", size, false, kFlags);
  ImGui::PopStyleVar();
  if (visible) {
    const ImVec2 min = ImGui::GetWindowPos();
    DrawContent(context, min, {min.x + size.x, min.y + size.y});
  }
  ImGui::EndChild();
}

}  // namespace trainprof
