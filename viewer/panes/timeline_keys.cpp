#include "viewer/panes/timeline_keys.h"

#include <algorithm>

#include "viewer/state/actions.h"

namespace trainprof {
namespace {

// The row that the keyboard is on: that of the selected event before it was on any.
size_t RowOfKeys(const State& state, const RowList& tracks) {
  if (state.keys.line) return tracks.Find(*state.keys.line);
  if (!state.selected) return tracks.rows.size();
  return tracks.Find(state.lines().LineOf(*state.selected));
}

void GoToRow(PaneContext& context, const RowList& tracks, const TimelineAreas& areas) {
  State& state = context.state;
  const size_t now = RowOfKeys(state, tracks);
  const auto last = static_cast<int64_t>(tracks.rows.size()) - 1;
  // From nowhere to the first one, whichever way.
  const int64_t wanted =
      now == tracks.rows.size() ? 0 : static_cast<int64_t>(now) + int64_t{state.keys.rows};
  const TrackRow& row = tracks.rows[static_cast<size_t>(std::clamp<int64_t>(wanted, 0, last))];
  state.keys.line = row.line;
  const double scale = context.theme.scale;
  const double top = static_cast<double>(row.top) / scale;
  const double bottom = static_cast<double>(row.bottom()) / scale;
  const double height = areas.tracks.height() / scale;
  if (bottom > state.scroll + height) state.scroll = bottom - height;
  if (top < state.scroll) state.scroll = top;
}

// The first event in view, of the outermost ones; `,` and `.` go on from there.
void SelectOnRow(PaneContext& context, const TrackRow& row) {
  State& state = context.state;
  LaneStore& store = state.document->store();
  if (row.form == RowForm::kStrip) return ToggleCollapsed(state, row.line);
  if (row.form == RowForm::kSeries || !store.Ask(row.line)) return;
  const Lane& lane = store.LanesOf(row.line)[0];
  size_t i = lane.FirstBeginningAt(state.view.begin);
  const auto in_view = [&] { return i < lane.size() && lane.interval(i).begin < state.view.end; };
  if (!in_view()) i = lane.FirstEndingAfter(state.view.begin);
  if (!in_view()) {
    state.message = "Nothing of this track is in view";
    return;
  }
  std::optional<EventRef> event = store.RefOf(row.line, 0, i);
  if (event->table == Table::kBusy) {
    event = DeviceOpAt(state.lines(), row.line, lane.category(i), lane.interval(i).begin);
  }
  if (event && event->table != Table::kIdle) return Select(state, *event);
  context.cache.timeline.range_line = row.line;
  SelectRange(state, lane.interval(i));
}

}  // namespace

void HandleRowKeys(PaneContext& context, const TimelineAreas& areas) {
  State& state = context.state;
  const KeyFocus& keys = state.keys;
  const RowList& tracks = context.cache.timeline.layout.tracks;
  if (keys.pane != KeyPane::kTimeline || tracks.rows.empty()) return;
  if (keys.rows != 0) GoToRow(context, tracks, areas);
  if (keys.pages != 0) {
    state.scroll += keys.pages * 0.9 * areas.tracks.height() / context.theme.scale;
  }
  if (!keys.enter) return;
  const size_t row = RowOfKeys(state, tracks);
  if (row < tracks.rows.size()) SelectOnRow(context, tracks.rows[row]);
}

}  // namespace trainprof
