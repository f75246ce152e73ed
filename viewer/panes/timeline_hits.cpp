// Marks on the hits of the search.
#include <algorithm>
#include <cmath>

#include "viewer/panes/rect_limits.h"
#include "viewer/panes/timeline_marks.h"

namespace trainprof {
namespace {

constexpr float kMarkPoints = 3;

class HitMarker {
 public:
  HitMarker(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame)
      : context_(context),
        lines_(context.state.lines()),
        search_(context.state.search),
        draw_(draw),
        frame_(frame) {
    if (search_.current) current_ = search_.hits.events[*search_.current];
  }

  // Hits among the events that are drawn as such; of too many the widest.
  void MarkEvents() {
    std::vector<const Rect*> found;
    LaneStore& store = context_.state.document->store();
    const Lane* lane = nullptr;
    uint32_t lane_index = UINT32_MAX;
    for (const Rect& rect : context_.cache.timeline.frame.rects) {
      if (rect.event == kNoEvent) continue;
      const ShownLane& shown = frame_.lanes[rect.lane];
      if (rect.lane != lane_index) lane = &LaneOf(store, shown);
      lane_index = rect.lane;
      const EventRef event{lines_.lines()[shown.line].rank, lane->table(rect.event),
                           lane->row(rect.event)};
      if (event == current_) {
        Mark(rect.lane, rect.left, rect.right, 2);
      } else if (search_.hits.Contain(lines_, event)) {
        found.push_back(&rect);
      }
    }
    if (found.size() > kMostHitMarks) {
      const auto last = found.begin() + kMostHitMarks;
      std::nth_element(found.begin(), last, found.end(), [](const Rect* a, const Rect* b) {
        return a->right - a->left > b->right - b->left;
      });
      found.erase(last, found.end());
    }
    for (const Rect* rect : found) Mark(rect->lane, rect->left, rect->right, 1);
  }

  // Hits that went into a column, where a view holds not too many.
  void MarkShortHits() {
    const auto [first, last] = HitsWithin(lines_, search_.hits, context_.state.view);
    if (last - first > kMostShortHits) return;
    for (size_t hit = first; hit < last; ++hit) {
      const EventRef& event = search_.hits.events[hit];
      const Interval time = lines_.TimeOf(event);
      if (time.Length() >= frame_.scale.event_length) continue;
      if (!IsInSight(lines_.LineOf(event))) continue;
      const PlaceFinder places(context_.state, event);
      for (uint32_t i = 0; i < frame_.lanes.size(); ++i) {
        if (!places.IsOn(frame_.lanes[i])) continue;
        const float left = frame_.scale.PixelOf(time.begin);
        Mark(i, left, left + 2, event == current_ ? 2 : 1);
      }
    }
  }

 private:
  bool IsInSight(uint32_t line) const {
    return std::any_of(frame_.lanes.begin(), frame_.lanes.end(),
                       [&](const ShownLane& lane) { return lane.line == line; });
  }

  // Left and right count from the view's edge.
  void Mark(uint32_t lane, float left, float right, float strength) {
    const Box& time = frame_.areas.time;
    const Box& rows = lane < frame_.pinned_lanes ? frame_.areas.pinned : frame_.areas.tracks;
    const float top = std::max(frame_.lanes[lane].top, rows.top);
    const float height = std::round(context_.theme.Px(kMarkPoints) * strength);
    const float bottom = std::min(frame_.lanes[lane].top + height, rows.bottom);
    const float from = time.left + std::max(left, 0.f);
    const float to = std::min(std::max(time.left + right, from + 2), time.right);
    if (from < to && top < bottom) {
      draw_->AddRectFilled({from, top}, {to, bottom}, context_.theme.text);
    }
  }

  PaneContext& context_;
  const Lines& lines_;
  const SearchState& search_;
  ImDrawList* draw_;
  const TimelineFrame& frame_;
  EventRef current_;  // without one: no event
};

}  // namespace

void DrawHits(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  if (context.state.search.hits.events.empty()) return;
  HitMarker marker(context, draw, frame);
  marker.MarkEvents();
  marker.MarkShortHits();
}

}  // namespace trainprof
