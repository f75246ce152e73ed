#include "analysis/graph/hand_overs.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/graph/latencies.h"
#include "analysis/host/call_sites.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

struct Place {
  uint32_t thread = 0;
  uint32_t item = 0;
};

struct End {
  TraceTime at;
  Place place;
};

struct Candidate {
  Place place;  // that goes on
  HandOver from;
  int64_t pause_ns = 0;
};

// Of both sides the thread and what the item is called.
using Pair = std::tuple<uint32_t, StringId, uint32_t, StringId>;

StringId NameOf(const Trace& trace, const HostItems& items, const HostItem& item) {
  if (item.kind == NodeKind::kCall) return trace.api.name[item.index];
  return trace.ranges.name[items.inputs[item.index].range];
}

// Whether a thread was in a range that it began in its pause, and stayed there longer than it takes to be on
// its way again: it was at work.
bool WasAtWork(const Trace& trace, TrackId thread, TraceTime at, const Interval& pause) {
  const Row range = InnermostRange(trace.ranges, thread, at);
  return range != kNoRow && trace.ranges.begin[Index(range)] > pause.begin &&
         std::min(trace.ranges.end[Index(range)], pause.end) > at + kHostPause;
}

bool Vary(std::vector<int64_t> values, int64_t most) {
  const auto quantile = [&](size_t quarter) {
    const auto at = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) * quarter / 4);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  };
  const int64_t upper = quantile(3);
  return upper - quantile(1) > most;
}

}  // namespace

HandOvers::HandOvers(const Trace& trace, const HostItems& items) {
  if (items.threads.size() < 2) return;
  std::vector<End> ends;
  for (uint32_t t = 0; t < items.threads.size(); ++t) {
    const std::vector<HostItem>& of_thread = items.threads[t].items;
    for (uint32_t i = 0; i < of_thread.size(); ++i) {
      CancelPoint(i);
      if (of_thread[i].kind == NodeKind::kStep) continue;
      ends.push_back({items.Times(trace, of_thread[i]).end, {t, i}});
    }
  }
  std::stable_sort(ends.begin(), ends.end(),
                   [](const End& a, const End& b) { return a.at < b.at; });
  // Of another thread the last that ended within, its end not before `within.begin`.
  const auto last_within = [&](uint32_t thread, const Interval& within) -> const End* {
    auto end = std::partition_point(ends.begin(), ends.end(),
                                    [&](const End& e) { return e.at <= within.end; });
    while (end != ends.begin() && (end - 1)->at > within.begin) {
      --end;
      if (end->place.thread != thread) return &*end;
    }
    return nullptr;
  };
  std::map<Pair, std::vector<Candidate>> pairs;
  for (uint32_t t = 0; t < items.threads.size(); ++t) {
    const std::vector<HostItem>& of_thread = items.threads[t].items;
    TraceTime at{INT64_MAX};  // its first item waits for nothing that is known
    for (uint32_t i = 0; i < of_thread.size(); ++i) {
      CancelPoint(i);
      const HostItem& item = of_thread[i];
      if (item.kind == NodeKind::kStep) continue;
      const Interval times = items.Times(trace, item);
      const bool is_input = item.kind == NodeKind::kInput;
      const Interval pause = is_input ? times : Interval{at, times.begin};
      at = times.end;
      if (pause.Length() < kThreadPause) continue;
      const End* const end = last_within(t, pause);
      if (end == nullptr) continue;
      if (!is_input && WasAtWork(trace, items.threads[t].track, end->at, pause)) continue;
      const HostItem& other = items.threads[end->place.thread].items[end->place.item];
      // The other one began before this one goes on: so it stands before it in the graph.
      pairs[{end->place.thread, NameOf(trace, items, other), t, NameOf(trace, items, item)}]
          .push_back({{t, i},
                      {end->place.thread, end->place.item, (pause.end - end->at).ns},
                      pause.Length().ns});
    }
  }
  for (const auto& [pair, candidates] : pairs) {
    if (candidates.size() < kLeastTimes) continue;
    std::vector<int64_t> lags;
    std::vector<int64_t> pauses;
    for (const Candidate& candidate : candidates) {
      lags.push_back(candidate.from.lag_ns);
      pauses.push_back(candidate.pause_ns);
    }
    const auto middle = pauses.begin() + static_cast<ptrdiff_t>(pauses.size() / 2);
    std::nth_element(pauses.begin(), middle, pauses.end());
    if (Vary(std::move(lags), *middle / 10)) continue;
    for (const Candidate& candidate : candidates) {
      found_[Key(candidate.place.thread, candidate.place.item)] = candidate.from;
    }
  }
}

}  // namespace trainprof
