#include "analysis/graph/hand_overs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "analysis/graph/ended_last.h"
#include "analysis/graph/latencies.h"
#include "analysis/host/call_sites.h"
#include "analysis/host/cpu_use.h"
#include "trace/base/cancel.h"
#include "trace/base/parallel.h"

namespace trainprof {
namespace {

struct Place {
  uint32_t thread = 0;
  uint32_t item = 0;
};

// A stretch before an item, or a wait for input, in which its thread may have waited for another one.
struct Pause {
  uint32_t item = 0;
  Interval time;
};

struct Candidate {
  Place place;  // that goes on
  HandOver from;
  int64_t pause_ns = 0;
  int64_t silence_ns = 0;  // of the other thread, behind what it ended
};

// Of so few the distances must all lie together: a quartile of three says nothing.
constexpr size_t kFew = 8;
// A thread goes on within this part of the time that the other then stands still: three times by chance
// once in 500.
constexpr int64_t kSoon = 8;

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
         std::min(trace.ranges.end(Index(range)), pause.end) > at + kHostPause;
}

// Long enough to have waited; ascending. Before the first item of a thread there is none that is known.
std::vector<Pause> PausesOf(const Trace& trace, const HostItems& items, const HostThread& thread) {
  std::vector<Pause> pauses;
  TraceTime at{INT64_MAX};
  for (uint32_t i = 0; i < thread.items.size(); ++i) {
    CancelPoint(i);
    const HostItem& item = thread.items[i];
    if (item.kind == NodeKind::kStep) continue;
    const Interval times = items.Times(trace, item);
    const Interval pause = item.kind == NodeKind::kInput ? times : Interval{at, times.begin};
    at = times.end;
    if (!pause.Empty() && pause.Length() >= kThreadPause) pauses.push_back({i, pause});
  }
  return pauses;
}

int64_t Quantile(std::vector<int64_t>& values, size_t quarter) {
  const auto at = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) * quarter / 4);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

int64_t SilenceOf(const std::vector<Candidate>& candidates) {
  std::vector<int64_t> silences;
  for (const Candidate& candidate : candidates) silences.push_back(candidate.silence_ns);
  return Quantile(silences, 2);
}

// Who waits goes on soon. Behind a thread that does something every now and then, a logger, others go on at
// any time until it does so again.
bool GoOnSoon(const std::vector<Candidate>& candidates) {
  std::vector<int64_t> lags;
  std::vector<int64_t> pauses;
  for (const Candidate& candidate : candidates) {
    lags.push_back(candidate.from.lag_ns);
    pauses.push_back(candidate.pause_ns);
  }
  if (Quantile(lags, 3) - Quantile(lags, 1) > Quantile(pauses, 2) / 10) return false;
  const int64_t late =
      candidates.size() < kFew ? *std::max_element(lags.begin(), lags.end()) : Quantile(lags, 3);
  return late <= std::max(SilenceOf(candidates) / kSoon, kHostPause.ns);
}

// And a thread that hands over stands still behind that as nowhere else; two thirds of what looks the same may be
// something else: it waits for others as well. `silences`: ascending, of all that it did under that name.
bool StopsWhereItHandsOver(const std::vector<int64_t>& silences, int64_t silence, size_t times) {
  const auto as_long = std::lower_bound(silences.begin(), silences.end(), silence / 2);
  return 3 * times >= static_cast<size_t>(silences.end() - as_long);
}

}  // namespace

HandOvers::HandOvers(const Trace& trace, const HostItems& items) {
  if (items.threads.size() < 2) return;
  std::vector<std::vector<Pause>> pauses(items.threads.size());
  std::vector<std::function<void()>> jobs;
  for (uint32_t t = 0; t < items.threads.size(); ++t) {
    jobs.emplace_back([&, t] { pauses[t] = PausesOf(trace, items, items.threads[t]); });
  }
  RunAll(jobs);
  size_t count = 0;
  for (const std::vector<Pause>& of_thread : pauses) count += of_thread.size();
  if (count == 0) return;
  const EndedLast ended(trace, items, count);
  const auto silence_behind = [&](const Place& place) {
    const std::vector<HostItem>& of_thread = items.threads[place.thread].items;
    const TraceTime end = items.Times(trace, of_thread[place.item]).end;
    for (size_t next = place.item + 1; next < of_thread.size(); ++next) {
      if (of_thread[next].kind == NodeKind::kStep) continue;
      return std::max<int64_t>(0, (items.Times(trace, of_thread[next]).begin - end).ns);
    }
    return std::max<int64_t>(0, (trace.extent.end - end).ns);
  };
  using Pairs = std::map<Pair, std::vector<Candidate>>;
  const auto find = [&](uint32_t t, Pairs& pairs) {
    EndedLast::Near near;
    size_t asked = 0;
    for (const auto& [i, pause] : pauses[t]) {
      CancelPoint(asked++);
      const auto end = ended.Within(t, pause, near);
      if (!end || NeverWaited(trace.cpu_times, items.threads[t].track, pause)) continue;
      const HostItem& item = items.threads[t].items[i];
      if (item.kind != NodeKind::kInput &&
          WasAtWork(trace, items.threads[t].track, end->at, pause)) {
        continue;
      }
      const HostItem& other = items.threads[end->thread].items[end->item];
      // The other one began before this one goes on: so it stands before it in the graph.
      pairs[{end->thread, NameOf(trace, items, other), t, NameOf(trace, items, item)}].push_back(
          {{t, i},
           {end->thread, end->item, (pause.end - end->at).ns},
           pause.Length().ns,
           silence_behind({end->thread, end->item})});
    }
  };
  std::vector<Pairs> found(items.threads.size());
  jobs.clear();
  for (uint32_t t = 0; t < found.size(); ++t) jobs.emplace_back([&, t] { find(t, found[t]); });
  RunAll(jobs);
  Pairs pairs;  // each of one thread that goes on
  for (Pairs& of_thread : found) pairs.merge(of_thread);
  std::erase_if(pairs, [](const auto& pair) {
    return pair.second.size() < kLeastTimes || !GoOnSoon(pair.second);
  });
  std::map<std::tuple<uint32_t, StringId, uint32_t>, size_t> times;
  for (const auto& [pair, candidates] : pairs) {
    times[{std::get<0>(pair), std::get<1>(pair), std::get<2>(pair)}] += candidates.size();
  }
  // By thread and name, ascending; of names that may hand over.
  std::vector<std::map<StringId, std::vector<int64_t>>> silences(items.threads.size());
  for (const auto& [pair, candidates] : pairs) {
    silences[std::get<0>(pair)].try_emplace(std::get<1>(pair));
  }
  const auto find_silences = [&](uint32_t thread) {
    const std::vector<HostItem>& of_thread = items.threads[thread].items;
    for (uint32_t i = 0; i < of_thread.size(); ++i) {
      CancelPoint(i);
      if (of_thread[i].kind == NodeKind::kStep) continue;
      const auto of_name = silences[thread].find(NameOf(trace, items, of_thread[i]));
      if (of_name == silences[thread].end()) continue;
      of_name->second.push_back(silence_behind({thread, i}));
    }
    for (auto& [name, of_name] : silences[thread]) std::sort(of_name.begin(), of_name.end());
  };
  jobs.clear();
  for (uint32_t t = 0; t < silences.size(); ++t) {
    if (!silences[t].empty()) jobs.emplace_back([&, t] { find_silences(t); });
  }
  RunAll(jobs);
  for (const auto& [pair, candidates] : pairs) {
    const auto& [from, name, to, item] = pair;
    if (!StopsWhereItHandsOver(silences[from][name], SilenceOf(candidates),
                               times[{from, name, to}])) {
      continue;
    }
    for (const Candidate& candidate : candidates) {
      found_[Key(candidate.place.thread, candidate.place.item)] = candidate.from;
    }
  }
}

}  // namespace trainprof
