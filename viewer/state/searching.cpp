// Searching for events, and going from hit to hit.
#include <utility>

#include "viewer/state/actions.h"

namespace trainprof {
namespace {

// What is searched at once: a millisecond or two, where every event is a hit.
constexpr size_t kMostEffortAtOnce = 30'000;

void Take(State& state, Hits hits) {
  SearchState& search = state.search;
  std::optional<EventRef> current;
  if (search.current) current = search.hits.events[*search.current];
  search.hits = std::move(hits);
  search.current = current ? FindHit(state.lines(), search.hits, *current) : std::nullopt;
  if (search.go != 0) ShowHit(state, std::exchange(search.go, 0));
}

void Begin(State& state) {
  SearchState& search = state.search;
  search.due = false;
  if (EffortFor(state.lines(), search.query) <= kMostEffortAtOnce) {
    return Take(state, Search(state.lines(), search.query));
  }
  search.found = std::make_shared<std::atomic<size_t>>(0);
  search.job.Start([document = state.document, lines = state.document->shared_lines(),
                    query = search.query,
                    found = search.found] { return Search(*lines, query, found.get()); });
}

}  // namespace

void RunSearch(State& state, std::string_view wanted) {
  const std::string text(wanted);
  BackgroundJob<Hits> former = std::move(state.search.job);
  former.Cancel();
  state.search = SearchState{};
  SearchState& search = state.search;
  search.job = std::move(former);
  search.text = text;
  state.message.clear();  // what the former search said
  if (!state.HasLines()) return;
  Result<Query> query = ParseQuery(text);
  if (!query.ok()) {
    search.error = query.error();
    return;
  }
  search.query = std::move(query).value();
  search.due = !search.query.Empty();
  UpdateSearch(state);
}

void UpdateSearch(State& state) {
  SearchState& search = state.search;
  std::optional<Hits> hits = search.job.Take();
  if (search.job.busy()) return;
  search.found.reset();
  if (hits) Take(state, std::move(*hits));
  if (search.due && state.HasLines()) Begin(state);
}

void ShowHit(State& state, int direction) {
  if (!state.HasLines()) return;
  state.message.clear();
  SearchState& search = state.search;
  const std::vector<EventRef>& events = search.hits.events;
  if (events.empty()) {
    if (search.busy()) search.go = direction;
    state.message = search.busy()         ? "Searching ..."
                    : search.text.empty() ? "Nothing is searched for"
                                          : "No hits";
    return;
  }
  const size_t count = events.size();
  if (search.current) {
    search.current = (*search.current + (direction > 0 ? 1 : count - 1)) % count;
  } else {
    const TraceTime edge = direction > 0 ? state.view.begin - Nanoseconds(1) : state.view.end;
    search.current = direction > 0 ? NextHit(state.lines(), search.hits, edge)
                                   : PreviousHit(state.lines(), search.hits, edge);
  }
  Select(state, events[*search.current]);
}

}  // namespace trainprof
