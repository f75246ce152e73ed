// Selecting events, ranges and bookmarks, and going from one to the next.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/tables/category.h"
#include "viewer/navigation/ruler.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

// A row of a table that Lines can place; idle and busy stretches are ranges of time, no events.
bool IsEvent(const EventRef& event) {
  return event.table != Table::kIdle && event.table != Table::kBusy && event.row != kNoRow;
}

bool InView(const State& state, const Interval& time) {
  const Interval shown = Intersect(time, state.view);
  return !shown.Empty() || (time.begin >= state.view.begin && time.begin < state.view.end);
}

}  // namespace

void Select(State& state, const EventRef& event) {
  if (!state.HasLines() || !IsEvent(event)) return;
  state.selected = event;
  const Interval time = state.lines().TimeOf(event);
  if (!InView(state, time)) Show(state, time);
  const uint32_t line = state.lines().LineOf(event);
  if (line != kNoLine) Reveal(state, line);
}

void ZoomToSelection(State& state) {
  if (!state.HasLines()) return;
  if (state.selected) return Show(state, state.lines().TimeOf(*state.selected));
  if (state.range) return Show(state, *state.range);
  state.message = "Nothing is selected";
}

void SelectNeighbour(State& state, int direction) {
  if (!state.HasLines()) return;
  if (!state.selected) {
    state.message = "No event is selected";
    return;
  }
  LaneStore& store = state.document->store();
  const uint32_t line = state.lines().LineOf(*state.selected);
  if (line == kNoLine) return;
  if (!store.Ask(line)) {
    state.message = "The track is still being made";
    return;
  }
  const LaneStore::Place place = store.PlaceOf(*state.selected);
  if (place.line == kNoLine) return;
  const Lane& lane = store.LanesOf(place.line)[place.lane];
  const std::optional<size_t> next =
      direction > 0 ? NextEvent(lane, place.event) : PreviousEvent(lane, place.event);
  if (!next) {
    state.message = direction > 0 ? "This is the track's last event here"
                                  : "This is the track's first event here";
    return;
  }
  Select(state, store.RefOf(place.line, place.lane, *next));
}

void FollowLaunch(State& state) {
  if (!state.HasLines()) return;
  if (!state.selected) {
    state.message = "No event is selected";
    return;
  }
  const LaunchLinks& links = state.document->Links(state.selected->rank);
  const auto other = Follow(links, *state.selected);
  if (!other) {
    state.message = state.selected->table == Table::kDeviceOps
                        ? "The trace does not hold the call that launched this"
                    : state.selected->table == Table::kApi && !links.whole()
                        ? "What this launched is known once the rank is analysed"
                        : "This launched nothing";
    return;
  }
  Select(state, *other);
}

void SelectRange(State& state, const Interval& range) {
  if (range.Empty()) {
    state.range.reset();
  } else {
    state.range = range;
    state.selected.reset();
  }
}

std::optional<EventRef> DeviceOpAt(const Lines& lines, uint32_t gpu, Category category,
                                   TraceTime at) {
  const Line& line = lines.lines()[gpu];
  const Trace& trace = *lines.ranks()[line.rank].trace;
  const TraceTime t = at - lines.Shift(line.rank);
  const DeviceOpTable& ops = trace.device_ops;
  const Categorizer categorizer(trace);
  std::optional<uint32_t> best;
  bool best_fits = false;
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    if (trace.tracks[track].device != line.device) continue;
    const auto [first, last] = ops.rows_of(TrackId{track});
    for (uint32_t row = first; row < last && ops.begin[row] <= t; ++row) {
      if (ops.end(row) <= t) continue;
      const bool fits = categorizer.OfDeviceOp(row) == category;
      const bool later = !best || ops.begin[row] > ops.begin[*best];
      if (best && best_fits != fits ? best_fits : !later) continue;
      best = row;
      best_fits = fits;
    }
  }
  if (!best) return std::nullopt;
  return EventRef{line.rank, Table::kDeviceOps, Row{*best}};
}

void ClearSelection(State& state) {
  state.message.clear();
  if (state.help_open || state.go_to_open || state.open_prompt) {
    state.help_open = state.go_to_open = state.open_prompt = false;
  } else if (state.range) {
    state.range.reset();
  } else if (state.selected) {
    state.selected.reset();
  } else {
    state.finding.reset();
  }
}

void ToggleBookmark(State& state, TraceTime at) {
  if (!state.HasLines()) return;
  // One that is so near that the two could not be told apart is removed instead.
  const Duration near{state.view.Length().ns / 200};
  const auto same =
      std::find_if(state.bookmarks.begin(), state.bookmarks.end(),
                   [&](const Bookmark& b) { return b.at >= at - near && b.at <= at + near; });
  if (same != state.bookmarks.end()) {
    state.bookmarks.erase(same);
    return;
  }
  const auto behind = std::find_if(state.bookmarks.begin(), state.bookmarks.end(),
                                   [&](const Bookmark& b) { return b.at > at; });
  state.bookmarks.insert(behind, {at, ShortText(at - TraceTime{0})});
}

void ShowBookmark(State& state, int direction) {
  if (!state.HasLines() || state.bookmarks.empty()) {
    state.message = "No bookmarks: M sets one";
    return;
  }
  const std::vector<Bookmark>& all = state.bookmarks;
  const TraceTime middle = state.view.begin + Duration{state.view.Length().ns / 2};
  const Bookmark* next = direction > 0 ? &all.front() : &all.back();
  if (direction > 0) {
    const auto later =
        std::find_if(all.begin(), all.end(), [&](const Bookmark& b) { return b.at > middle; });
    if (later != all.end()) next = &*later;
  } else {
    const auto earlier =
        std::find_if(all.rbegin(), all.rend(), [&](const Bookmark& b) { return b.at < middle; });
    if (earlier != all.rend()) next = &*earlier;
  }
  const Duration half{state.view.Length().ns / 2};
  state.history.Leave(state.view);
  state.view = ClampView({next->at - half, next->at + half}, state.lines().extent());
  state.view_chosen = true;
}

}  // namespace trainprof
