#include "viewer/panes/timeline_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "viewer/panes/widgets.h"

namespace trainprof {
namespace {

// In points.
constexpr float kRulerHeight = 36;  // two lines of text
constexpr float kScrollbarWidth = 11;

// Rows that stay may take this much of the height; those that do not fit scroll away.
constexpr double kMostPinned = 0.5;
constexpr size_t kMostNameBytes = 300;
constexpr size_t kMostNamesKept = 10'000;

// Whether what the row shows is there; asks for all that is not.
bool IsReady(LaneStore& store, const TrackRow& row) {
  if (row.form != RowForm::kStrip) return store.Ask(row.line);
  bool ready = true;
  for (const uint32_t line : {row.busy, row.idle}) {
    if (line != kNoLine && !store.Ask(line, Form::kStrip)) ready = false;
  }
  return ready;
}

// Adds the lanes of `line` that lie in `clip`, one below the other from `top` on.
void AddLanes(uint32_t line, uint32_t count, float top, LaneLook look, const Box& clip,
              TimelineFrame& frame) {
  const auto height = static_cast<float>(frame.lane_height);
  const float above = std::max(0.f, (clip.top - top) / height);
  for (auto depth = static_cast<uint32_t>(above); depth < count; ++depth) {
    const float lane_top = top + static_cast<float>(depth) * height;
    if (lane_top >= clip.bottom) break;
    frame.lanes.push_back({line, Form::kLanes, depth, lane_top, lane_top + height, look});
  }
}

void AddRow(PaneContext& context, const TrackRow& row, float top, bool is_pinned,
            TimelineFrame& frame) {
  ShownRow shown{.row = row, .top = top, .bottom = top + static_cast<float>(row.height)};
  shown.is_pinned = is_pinned;
  shown.first_lane = frame.lanes.size();
  const Box& clip = frame.ClipOf(shown);
  const auto kind = context.state.lines().lines()[row.line].kind;
  shown.ready = IsReady(context.state.document->store(), row);
  if (shown.ready && row.form == RowForm::kStrip) {
    for (const uint32_t line : {row.busy, row.idle}) {
      if (line == kNoLine) continue;
      const float bottom = top + static_cast<float>(frame.lane_height);
      const LaneLook look = line == row.idle      ? LaneLook::kStripIdle
                            : row.idle != kNoLine ? LaneLook::kStripBusy
                                                  : LaneLook::kPlain;
      frame.lanes.push_back({line, Form::kStrip, 0, top, bottom, look});
    }
  } else if (shown.ready && row.form == RowForm::kLanes) {
    const LaneLook look = kind == LineKind::kIdle ? LaneLook::kIdle : LaneLook::kPlain;
    AddLanes(row.line, row.lanes, top, look, clip, frame);
  }
  shown.last_lane = frame.lanes.size();
  if (!shown.ready) context.cache.timeline.pending = true;
  frame.rows.push_back(shown);
}

void AddRows(PaneContext& context, const RowList& list, int64_t scroll, bool is_pinned,
             TimelineFrame& frame) {
  const Box& box = is_pinned ? frame.areas.pinned : frame.areas.tracks;
  const auto [first, last] = list.Within(scroll, static_cast<int64_t>(box.height()) + 1);
  for (size_t i = first; i < last; ++i) {
    const float top = box.top + static_cast<float>(list.rows[i].top - scroll);
    AddRow(context, list.rows[i], top, is_pinned, frame);
  }
}

// The lane of the line to reveal that the selected event is on, made visible; else the first one.
// Nothing as long as the lanes are being made.
std::optional<uint32_t> RevealedLane(State& state, uint32_t line) {
  const bool nested = state.lines().lines()[line].lanes > 1;
  if (!nested || !state.selected || state.lines().LineOf(*state.selected) != line) return 0;
  if (!state.document->store().Ask(line)) return std::nullopt;
  const uint32_t lane = state.document->store().PlaceOf(*state.selected).lane;
  if (lane > 0) state.collapsed.erase(line);
  if (lane >= kLanesUnlessUnfolded) state.unfolded.insert(line);
  return lane;
}

void ScrollTo(PaneContext& context, const RowList& tracks, uint32_t line, uint32_t lane,
              float height) {
  const size_t index = tracks.Find(line);
  if (index == tracks.rows.size()) return;
  const TrackRow& row = tracks.rows[index];
  const int32_t lane_height = HeightsOf(context.theme).lane;
  const auto top = static_cast<double>(row.top + int64_t{lane} * lane_height);
  const double bottom = lane == 0 ? static_cast<double>(row.bottom()) : top + lane_height;
  const double scale = context.theme.scale;
  const double shown = context.state.scroll * scale;
  const bool in_sight = top >= shown && bottom <= shown + height;
  // A third from above, so that what it belongs to is in sight, too.
  if (!in_sight) context.state.scroll = (top - height / 3.0) / scale;
}

}  // namespace

const ShownRow* TimelineFrame::RowAt(ImVec2 p) const {
  for (const ShownRow& row : rows) {
    if (p.y >= row.top && p.y < row.bottom && ClipOf(row).Contains(p)) return &row;
  }
  return nullptr;
}

const ShownLane* TimelineFrame::LaneAt(ImVec2 p) const {
  const ShownRow* row = RowAt(p);
  if (row == nullptr) return nullptr;
  for (size_t i = row->first_lane; i < row->last_lane; ++i) {
    if (p.y >= lanes[i].top && p.y < lanes[i].bottom) return &lanes[i];
  }
  return nullptr;
}

RowHeights HeightsOf(const Theme& theme) {
  const auto px = [&](float points) { return static_cast<int32_t>(theme.Px(points) + 0.5f); };
  return {.lane = px(17), .series = px(36), .gap = px(3)};
}

TimelineAreas MakeAreas(const PaneContext& context, ImVec2 min, ImVec2 max) {
  const Theme& theme = context.theme;
  const float most_names = std::max(1.f, (max.x - min.x) / 2);
  const float names = std::clamp(theme.Px(context.state.settings.names_width),
                                 std::min(theme.Px(kLeastNames), most_names), most_names);
  const float split = std::floor(min.x + names);
  const float right = std::max(split + 1, max.x - theme.Px(kScrollbarWidth));
  const float top = std::min(std::floor(min.y + theme.Px(kRulerHeight)), max.y);
  TimelineAreas areas;
  areas.corner = {min.x, min.y, split, top};
  areas.ruler = {split, min.y, right, top};
  areas.names = {min.x, top, split, max.y};
  areas.time = {split, top, right, max.y};
  areas.pinned = {min.x, top, right, top};
  areas.tracks = {min.x, top, right, max.y};
  areas.scrollbar = {right, top, max.x, max.y};
  return areas;
}

void UpdateLayout(PaneContext& context, TimelineAreas& areas) {
  State& state = context.state;
  TimelineCache& cache = context.cache.timeline;
  std::optional<uint32_t> lane = 0;
  if (state.reveal) lane = RevealedLane(state, *state.reveal);
  LayoutChoice choice{.pinned = state.pinned,
                      .collapsed = state.collapsed,
                      .unfolded = state.unfolded,
                      .filter = state.filter,
                      .heights = HeightsOf(context.theme)};
  if (cache.choice != choice) {
    cache.layout = MakeTrackLayout(state.lines(), choice);
    cache.choice = std::move(choice);
  }
  const double most_pinned = areas.tracks.height() * kMostPinned;
  const double pinned = std::min(static_cast<double>(cache.layout.pinned.height), most_pinned);
  areas.pinned.bottom = areas.pinned.top + std::floor(static_cast<float>(pinned));
  areas.tracks.top = areas.pinned.bottom;
  areas.scrollbar.top = areas.tracks.top;
  const RowList& tracks = cache.layout.tracks;
  if (state.reveal) {
    ScrollTo(context, tracks, *state.reveal, lane.value_or(0), areas.tracks.height());
  }
  if (lane) state.reveal.reset();
  const double most = static_cast<double>(tracks.height) - areas.tracks.height();
  state.scroll = std::clamp(state.scroll, 0.0, std::max(0.0, most / context.theme.scale));
}

TimelineFrame MakeTimelineFrame(PaneContext& context, const TimelineAreas& areas) {
  State& state = context.state;
  TimelineCache& cache = context.cache.timeline;
  TimelineFrame frame;
  frame.areas = areas;
  frame.lane_height = HeightsOf(context.theme).lane;
  state.view_width_px = std::max(1, static_cast<int32_t>(areas.time.width()));
  frame.scale = Scale::Of(state.view, state.view_width_px, std::max(2, cache.frame.scale.event_px));
  AddRows(context, cache.layout.pinned, 0, true, frame);
  frame.pinned_lanes = frame.lanes.size();
  const auto scroll = static_cast<int64_t>(state.scroll * context.theme.scale);
  AddRows(context, cache.layout.tracks, scroll, false, frame);
  return frame;
}

PlaceFinder::PlaceFinder(State& state, const EventRef& event)
    : lines_(state.lines()), event_(event), line_(lines_.LineOf(event)) {
  LaneStore& store = state.document->store();
  if (line_ == kNoLine || !store.Has(line_)) return;
  const LaneStore::Place place = store.PlaceOf(event);
  if (place.line != kNoLine) depth_ = place.lane;
}

bool PlaceFinder::IsOn(const ShownLane& lane) const {
  return line_ != kNoLine && lane.line == line_ &&
         (lane.form != Form::kLanes || lane.depth == depth_);
}

bool PlaceFinder::IsPartOf(const ShownLane& lane) const {
  const Line& shown = lines_.lines()[lane.line];
  return line_ != kNoLine && event_.table == Table::kDeviceOps && shown.kind == LineKind::kGpu &&
         shown.rank == event_.rank && shown.device == lines_.lines()[line_].device;
}

std::string EventName(const Lines& lines, const EventRef& event) {
  switch (event.table) {
    case Table::kSteps: {
      const RankAnalysis& analysis = *lines.ranks()[event.rank].analysis;
      return fmt::format("step {}", analysis.steps.steps[Index(event.row)].number);
    }
    case Table::kBusy:
      return "busy";
    case Table::kIdle:
      return "idle";
    default:
      return std::string(FirstOf(lines.NameOf(event), kMostNameBytes));
  }
}

const std::string& TrackName(PaneContext& context, uint32_t line) {
  auto& names = context.cache.timeline.name;
  if (names.size() > kMostNamesKept) names.clear();
  const auto [it, is_new] = names.try_emplace(line);
  if (is_new) it->second = FirstOf(context.state.lines().NameOf(line), kMostNameBytes);
  return it->second;
}

}  // namespace trainprof
