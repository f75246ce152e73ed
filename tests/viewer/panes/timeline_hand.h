// A hand over the timeline of an open job: where things are on the screen.
#pragma once

#include <chrono>
#include <thread>

#include "tests/viewer/open_job.h"
#include "tests/viewer/ui_driver.h"
#include "viewer/panes/timeline_frame.h"

namespace trainprof::testing {

class TimelineHand {
 public:
  explicit TimelineHand(State& state, ImVec2 size = {1600, 700}, ThemeName theme = ThemeName::kDark,
                        float scale = 1)
      : state_(state),
        ui_(
            size, [this](const Theme& t) { Draw(t); }, theme, scale) {
    ui_.Frames(2);
    Settle();
  }

  // Until nothing is being made on a thread any more.
  void Settle() {
    while (cache_.timeline.pending || state_.document->store().busy() || state_.search.busy()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      UpdateSearch(state_);
      ui_.Frames();
    }
  }

  UiDriver& ui() { return ui_; }
  TimelineCache& cache() { return cache_.timeline; }
  const TimelineAreas& areas() const { return areas_; }

  float XOf(TraceTime t) const {
    const auto width = static_cast<int32_t>(areas_.time.width());
    return areas_.time.left + Scale::Of(state_.view, width).PixelOf(t);
  }
  // The middle of a lane.
  float YOf(uint32_t line, uint32_t depth = 0) const {
    const RowList& tracks = cache_.timeline.layout.tracks;
    const TrackRow& row = tracks.rows.at(tracks.Find(line));
    const auto lane = static_cast<float>(HeightsOf(ui_.theme()).lane);
    const double scrolled = state_.scroll * ui_.theme().scale;
    return areas_.tracks.top + static_cast<float>(static_cast<double>(row.top) - scrolled) +
           lane * (static_cast<float>(depth) + 0.5f);
  }
  ImVec2 At(uint32_t line, uint32_t depth, TraceTime t) const { return {XOf(t), YOf(line, depth)}; }
  // On the middle of an event.
  ImVec2 At(const EventRef& event) {
    const LaneStore::Place place = state_.document->store().PlaceOf(event);
    const Interval time = state_.lines().TimeOf(event);
    return {(XOf(time.begin) + XOf(time.end)) / 2, YOf(place.line, place.lane)};
  }
  ImVec2 OnName(uint32_t line) const { return {areas_.names.left + 60, YOf(line)}; }
  ImVec2 OnPin(uint32_t line) const { return {areas_.names.right - 14, YOf(line)}; }
  uint32_t Line(LineKind kind) const {
    const std::span<const trainprof::Line> lines = state_.lines().lines();
    for (uint32_t i = 0; i < lines.size(); ++i) {
      if (lines[i].kind == kind) return i;
    }
    return kNoLine;
  }

 private:
  void Draw(const Theme& theme) {
    PaneContext context{state_, theme, cache_};
    const ImVec2 min = ImGui::GetCursorScreenPos();
    const ImVec2 size = ImGui::GetContentRegionAvail();
    DrawTimeline(context);
    areas_ = MakeAreas(context, min, {min.x + size.x, min.y + size.y});
    UpdateLayout(context, areas_);
  }

  State& state_;
  PaneCache cache_;
  TimelineAreas areas_;
  UiDriver ui_;
};

}  // namespace trainprof::testing
