// What one frame of the timeline shows, and where on the screen: made first, then drawn, and asked
// what lies under the mouse.
#pragma once

#include <imgui.h>

#include <optional>
#include <string>
#include <vector>

#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"

namespace trainprof {

// Pixels of the screen.
struct Box {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;

  ImVec2 min() const { return {left, top}; }
  ImVec2 max() const { return {right, bottom}; }
  float width() const { return right - left; }
  float height() const { return bottom - top; }
  bool Contains(ImVec2 p) const { return p.x >= left && p.x < right && p.y >= top && p.y < bottom; }
};

// The pane's parts: names at the left, time at the right of them, a ruler above both, pinned rows
// below it, then all others, which scroll.
struct TimelineAreas {
  Box corner;  // above the names
  Box ruler;
  Box names;      // both kinds of rows
  Box time;       // the same
  Box pinned;     // names and time of rows that stay
  Box tracks;     // and of those that scroll
  Box scrollbar;  // right of the tracks
};

// A strip shows two lanes in one place: the idle time over the busy time, as high as its share.
enum class LaneLook : uint8_t { kPlain, kIdle, kStripBusy, kStripIdle };

struct ShownLane {
  uint32_t line = 0;
  Form form{};
  uint32_t depth = 0;
  float top = 0;
  float bottom = 0;
  LaneLook look = LaneLook::kPlain;

  // Idle time, which says how much there is of it by its height.
  bool IsHatched() const { return look == LaneLook::kIdle || look == LaneLook::kStripIdle; }
};

struct ShownRow {
  TrackRow row;
  float top = 0;
  float bottom = 0;
  bool is_pinned = false;
  bool ready = false;     // lanes or series are made
  size_t first_lane = 0;  // those in sight: [first_lane, last_lane) of the frame's lanes
  size_t last_lane = 0;
};

inline constexpr float kLeastNames = 90;  // points: the names' column

struct TimelineFrame {
  TimelineAreas areas;
  int32_t lane_height = 0;
  Scale scale;
  std::vector<ShownRow> rows;  // pinned ones first
  std::vector<ShownLane> lanes;
  size_t pinned_lanes = 0;  // of them, the first ones

  float XOf(TraceTime t) const { return areas.time.left + scale.PixelOf(t); }
  TraceTime TimeAt(float x) const { return scale.TimeAt(x - areas.time.left); }
  // What of the screen a row may draw on.
  const Box& ClipOf(const ShownRow& row) const {
    return row.is_pinned ? areas.pinned : areas.tracks;
  }
  const ShownRow* RowAt(ImVec2 p) const;
  const ShownLane* LaneAt(ImVec2 p) const;
};

// What a shown lane shows; valid until the store is trimmed.
inline const Lane& LaneOf(LaneStore& store, const ShownLane& lane) {
  return store.LaneOf(lane.line, lane.form, lane.depth);
}

TimelineAreas MakeAreas(const PaneContext& context, ImVec2 min, ImVec2 max);
RowHeights HeightsOf(const Theme& theme);
// Makes the layout anew where something changed; scrolls to what was to be revealed; keeps the
// scrolling within its limits. What was to be revealed within a line waits for the line's lanes.
void UpdateLayout(PaneContext& context, TimelineAreas& areas);
// The rows and lanes in sight. Rows whose lanes are being made on a thread are not ready; then
// cache.timeline.pending is set.
TimelineFrame MakeTimelineFrame(PaneContext& context, const TimelineAreas& areas);

// Which shown lanes show an event.
class PlaceFinder {
 public:
  PlaceFinder(State& state, const EventRef& event);
  // Its own lane, as far as that is made, or a strip in its place.
  bool IsOn(const ShownLane& lane) const;
  // Of what a GPU did, the row that says when the GPU was busy.
  bool IsPartOf(const ShownLane& lane) const;

 private:
  const Lines& lines_;
  EventRef event_;
  uint32_t line_ = kNoLine;
  uint32_t depth_ = kNoLine;  // not known, or nowhere
};

// What an event is called, cut to what a line of text can show.
std::string EventName(const Lines& lines, const EventRef& event);
// A line's name as the list of tracks shows it: cut, a pinned one with its rank.
const std::string& TrackName(PaneContext& context, uint32_t line);

}  // namespace trainprof
