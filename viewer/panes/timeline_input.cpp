#include "viewer/panes/timeline_input.h"

#include <fmt/format.h>

#include <cmath>

#include "viewer/navigation/measure.h"
#include "viewer/navigation/ruler.h"
#include "viewer/panes/timeline_names.h"
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr double kZoomPerNotch = 0.8;
constexpr float kScrollPerNotch = 3 * 17;  // points: three lanes
constexpr float kPanPerNotch = 60;
constexpr float kSnapDistance = 6;
constexpr float kSplitterReach = 4;
constexpr float kMostNames = 700;

// An item that takes the mouse where `box` is.
bool Pressable(const char* id, const Box& box, ImGuiButtonFlags buttons) {
  if (box.width() < 1 || box.height() < 1) return false;
  ImGui::SetCursorScreenPos(box.min());
  ImGui::InvisibleButton(id, {box.width(), box.height()}, buttons);
  return true;
}

void DragNamesWidth(PaneContext& context, const TimelineAreas& areas) {
  const float reach = context.theme.Px(kSplitterReach);
  const float x = areas.corner.right;
  if (!Pressable("names width", {x - reach, areas.corner.top, x + reach, areas.names.bottom},
                 ImGuiButtonFlags_MouseButtonLeft)) {
    return;
  }
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  }
  if (!ImGui::IsItemActive()) return;
  const float width = (ImGui::GetIO().MousePos.x - areas.corner.left) / context.theme.scale;
  context.state.settings.names_width = std::clamp(width, kLeastNames, kMostNames);
}

void DragScrollbar(PaneContext& context, const TimelineAreas& areas) {
  DragState& drag = context.cache.timeline.drag;
  if (!Pressable("scroll", areas.scrollbar, ImGuiButtonFlags_MouseButtonLeft)) return;
  const Box thumb = ThumbOf(context, areas);
  const float room = areas.scrollbar.height() - thumb.height();
  const double most =
      static_cast<double>(context.cache.timeline.layout.tracks.height) - areas.scrollbar.height();
  if (!ImGui::IsItemActive() || room <= 0) {
    if (drag.what == Drag::kScroll) drag = {};
    return;
  }
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemActivated()) {
    drag = {.what = Drag::kScroll, .from = {}, .scroll_from = context.state.scroll};
    if (!thumb.Contains(io.MousePos)) {  // jump there
      const float part = (io.MousePos.y - areas.scrollbar.top - thumb.height() / 2) / room;
      drag.scroll_from = part * most / context.theme.scale;
    }
  }
  const float moved = ImGui::GetMouseDragDelta(0, 0).y / room;
  context.state.scroll = drag.scroll_from + moved * most / context.theme.scale;
}

void HandleWheel(PaneContext& context, const TimelineAreas& areas) {
  const ImGuiIO& io = ImGui::GetIO();
  State& state = context.state;
  const Box rows{areas.names.left, areas.names.top, areas.scrollbar.right, areas.time.bottom};
  const bool over_time = areas.time.Contains(io.MousePos) || areas.ruler.Contains(io.MousePos);
  if (!ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem)) return;
  if (over_time && io.MouseWheelH != 0 && !io.KeyShift) {
    PanBy(state, -io.MouseWheelH * context.theme.Px(kPanPerNotch));
  }
  // Some systems turn Shift and the wheel into a horizontal one.
  const float wheel = io.MouseWheel != 0 || !io.KeyShift ? io.MouseWheel : io.MouseWheelH;
  if (wheel == 0) return;
  if (over_time && !io.KeyShift && !io.KeyCtrl) {
    const Scale scale = Scale::Of(state.view, std::max(1, static_cast<int>(areas.time.width())));
    Zoom(state, scale.TimeAt(io.MousePos.x - areas.time.left), std::pow(kZoomPerNotch, wheel));
  } else if (rows.Contains(io.MousePos)) {
    state.scroll -= wheel * kScrollPerNotch;
    state.reveal.reset();
  }
}

// A drag of the right or the middle button moves what is shown along with the mouse.
void HandlePan(PaneContext& context) {
  const ImGuiIO& io = ImGui::GetIO();
  const bool pans = ImGui::IsMouseDragging(1) || ImGui::IsMouseDragging(2);
  if (!ImGui::IsItemActive() || !pans) return;
  context.cache.timeline.drag.what = Drag::kPan;
  PanBy(context.state, -io.MouseDelta.x);
  context.state.scroll -= io.MouseDelta.y / context.theme.scale;
  ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeAll);
}

// An edge of an event of the row's lanes near the mouse, else the moment under it.
TraceTime Snapped(PaneContext& context, const TimelineFrame& frame, ImVec2 at) {
  const TraceTime t = frame.TimeAt(at.x);
  const ShownRow* row = frame.RowAt(at);
  if (row == nullptr || row->row.form != RowForm::kLanes || !row->ready) return t;
  const double ns_per_px =
      static_cast<double>(context.state.view.Length().ns) / frame.scale.width_px;
  const auto reach = static_cast<int64_t>(context.theme.Px(kSnapDistance) * ns_per_px);
  const std::vector<Lane>& lanes = context.state.document->store().LanesOf(row->row.line);
  return SnapToEdge(lanes, t, Duration{reach}).value_or(t);
}

// A block of idle time, or of busy time of which nothing else is known, is a range of time.
void SelectBlock(PaneContext& context, const ShownLane& shown, const Lane& lane, size_t block) {
  context.cache.timeline.range_line = shown.line;
  SelectRange(context.state, lane.interval(block));
}

void SelectTarget(PaneContext& context, const Target& target, TraceTime at) {
  State& state = context.state;
  state.message.clear();
  if (target.row != nullptr && target.row->row.deeper > 0 && target.lane == nullptr) {
    state.unfolded.insert(target.row->row.line);
    return;
  }
  if (target.lane == nullptr || target.hit.Empty()) {
    state.selected.reset();
    state.range.reset();
    return;
  }
  const size_t count = target.hit.last - target.hit.first;
  if (target.hit.folded && count > 1) {
    state.message = fmt::format("{} events here: a double-click shows them",
                                Grouped(static_cast<int64_t>(count)));
    return;
  }
  const ShownLane& shown = *target.lane;
  const Lane& lane = LaneOf(state.document->store(), shown);
  const size_t hit = target.hit.first;
  if (lane.table(hit) == Table::kIdle) return SelectBlock(context, shown, lane, hit);
  std::optional<EventRef> event =
      EventRef{state.lines().lines()[shown.line].rank, lane.table(hit), lane.row(hit)};
  if (event->table == Table::kBusy) {  // a block may be many kernels: that under the mouse
    const Interval block = lane.interval(hit);
    at = std::clamp(at, block.begin, std::max(block.begin, block.end - Nanoseconds(1)));
    event = DeviceOpAt(state.lines(), shown.line, lane.category(hit), at);
    if (!event) return SelectBlock(context, shown, lane, hit);
  }
  state.selected = event;  // it is in sight: nothing is to be revealed
}

void ZoomToTarget(PaneContext& context, const Target& target) {
  State& state = context.state;
  if (target.lane == nullptr) return;
  if (target.hit.Empty()) {
    if (!target.gap) return;
    Show(state, *target.gap);
    state.message = "A gap of " + ShortText(target.gap->Length());
    return;
  }
  const Lane& lane = LaneOf(state.document->store(), *target.lane);
  Show(state, {lane.interval(target.hit.first).begin, lane.interval(target.hit.last - 1).end});
}

void HandleLeft(PaneContext& context, const TimelineFrame& frame) {
  const ImGuiIO& io = ImGui::GetIO();
  DragState& drag = context.cache.timeline.drag;
  if (ImGui::IsItemActivated() && ImGui::IsMouseDown(0)) {
    if (ImGui::IsMouseDoubleClicked(0)) {
      drag = {};
      return ZoomToTarget(context, TargetAt(context, frame, io.MousePos));
    }
    drag = {.what = Drag::kRange, .from = Snapped(context, frame, io.MousePos)};
    return;
  }
  if (drag.what != Drag::kRange) return;
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(0)) {
    if (!drag.moved) {
      const ShownRow* row = frame.RowAt(io.MouseClickedPos[0]);
      context.cache.timeline.range_line =
          row == nullptr ? std::nullopt : std::optional(row->row.line);
    }
    drag.moved = true;
    const TraceTime to = Snapped(context, frame, io.MousePos);
    SelectRange(context.state, {std::min(drag.from, to), std::max(drag.from, to)});
  }
  if (ImGui::IsItemActive()) return;
  if (!drag.moved) {
    SelectTarget(context, TargetAt(context, frame, io.MousePos), frame.TimeAt(io.MousePos.x));
  }
  drag = {};
}

void HandleNames(PaneContext& context, const TimelineFrame& frame) {
  Box names = frame.areas.names;
  names.right -= context.theme.Px(kSplitterReach);
  if (!Pressable("names", names, ImGuiButtonFlags_MouseButtonLeft)) return;
  if (!ImGui::IsItemHovered()) return;
  const NamesHit hit = HitNames(context, frame, ImGui::GetIO().MousePos);
  if (hit.row == nullptr) return;
  State& state = context.state;
  const uint32_t line = hit.row->row.line;
  state.hovered_line = line;
  const bool pinned = state.pinned.contains(line);
  if (ImGui::IsItemClicked(0)) {
    if (hit.on_pin) return TogglePinned(state, line);
    if (hit.on_fold) {
      state.unfolded.erase(line);
    } else if (hit.row->row.can_collapse) {
      ToggleCollapsed(state, line);
    }
    return;
  }
  const char* collapse = hit.row->row.collapsed ? "click: open" : "click: collapse";
  const char* what = hit.on_pin                  ? (pinned ? "click: unpin" : "click: pin on top")
                     : hit.on_fold               ? "click: show fewer levels"
                     : hit.row->row.can_collapse ? collapse
                                                 : "";
  ImGui::BeginTooltip();
  Text(TrackName(context, line));
  if (*what != '\0') TextIn(context.theme.text_dim, what);
  ImGui::EndTooltip();
}

}  // namespace

void HandleScrolling(PaneContext& context, const TimelineAreas& areas) {
  DragNamesWidth(context, areas);
  DragScrollbar(context, areas);
  HandleWheel(context, areas);
}

Target TargetAt(PaneContext& context, const TimelineFrame& frame, ImVec2 at) {
  Target target;
  target.row = frame.RowAt(at);
  target.lane = frame.LaneAt(at);
  if (target.row == nullptr || target.lane == nullptr) return target;
  LaneStore& store = context.state.document->store();
  // A strip has two lanes in one place: what it hits of either.
  for (size_t i = target.row->first_lane; i < target.row->last_lane; ++i) {
    const ShownLane& shown = frame.lanes[i];
    if (at.y < shown.top || at.y >= shown.bottom) continue;
    const Lane& lane = LaneOf(store, shown);
    const Hit hit = HitTest(lane, frame.scale, at.x - frame.areas.time.left);
    if (!hit.Empty() || i == target.row->first_lane) {
      target.lane = &shown;
      target.hit = hit;
    }
    if (hit.Empty()) target.gap = GapAt(lane, frame.TimeAt(at.x));
  }
  return target;
}

void HandlePointer(PaneContext& context, const TimelineFrame& frame) {
  State& state = context.state;
  state.hovered_time.reset();
  state.hovered_line.reset();
  HandleNames(context, frame);
  const Box time{frame.areas.ruler.left + context.theme.Px(kSplitterReach), frame.areas.ruler.top,
                 frame.areas.time.right, frame.areas.time.bottom};
  if (!Pressable("time", time,
                 ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight |
                     ImGuiButtonFlags_MouseButtonMiddle)) {
    return;
  }
  const bool hovered = ImGui::IsItemHovered();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  HandlePan(context);
  HandleLeft(context, frame);
  DragState& drag = context.cache.timeline.drag;
  if (drag.what == Drag::kPan && !ImGui::IsItemActive()) drag = {};
  if (!hovered) return;
  state.hovered_time = frame.TimeAt(mouse.x);
  if (const ShownRow* row = frame.RowAt(mouse)) state.hovered_line = row->row.line;
  if (drag.what == Drag::kNone) {
    DrawTooltip(context, frame, TargetAt(context, frame, mouse), mouse);
  }
}

}  // namespace trainprof
