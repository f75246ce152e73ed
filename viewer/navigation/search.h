// Finding events: `name:nccl dur>1ms rank:0`.
//
//   gemm             the name contains it; case does not count
//   name:"a b"       the same, with blanks
//   name:            any name
//   dur>1ms dur<=2s  >, >=, <, <= and ns, us, ms or s
//   rank:0           of that rank
//   at:1.5s          begins then, counted from the job's begin
//
// All terms must hold.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/base/result.h"
#include "viewer/timeline/lines.h"

namespace trainprof {

struct Query {
  std::vector<std::string> names;  // in lower case
  Duration shortest{0};
  Duration longest{INT64_MAX};
  std::optional<int64_t> rank;
  std::optional<TraceTime> at;  // on the axis of the lines

  // Whether there is nothing to look for.
  bool Empty() const {
    return names.empty() && shortest.ns == 0 && longest.ns == INT64_MAX && !rank && !at;
  }
};

// An error says which term is wrong and what it may look like.
Result<Query> ParseQuery(std::string_view text);

struct Hits {
  std::vector<EventRef> events;  // by begin, then rank, table and row
  size_t total = 0;              // more than events.size() when there were too many to keep

  // Whether an event is one, kept or not. O(1).
  bool Contain(const Lines& lines, const EventRef& event) const;

  Query query;
  std::vector<std::vector<bool>> named;  // by rank and name; empty where a rank was left out
};
inline constexpr size_t kMostHits = 100'000;

// Of all tables of events. An empty query finds nothing. The first kMostHits
// of each table of each rank are kept. *found, when there is one, says how many it found so far.
// May be cancelled (trace/base/cancel.h). O(EffortFor + h log h) with h hits kept.
Hits Search(const Lines& lines, const Query& query, std::atomic<size_t>* found = nullptr);
// How much there is to look at: events, and characters of names. O(ranks).
size_t EffortFor(const Lines& lines, const Query& query);

// The place of an event among the hits. O(log n).
std::optional<size_t> FindHit(const Lines& lines, const Hits& hits, const EventRef& event);
// The hits that begin within a stretch of time, as indices [first, last). O(log n).
std::pair<size_t, size_t> HitsWithin(const Lines& lines, const Hits& hits, const Interval& when);
// The pixels in which a hit begins, from left to right. O(pixels log n).
std::vector<int32_t> HitPixels(const Lines& lines, const Hits& hits, const Scale& scale);

// The hit to go to from time `t`: the first that begins after it, or from the end the first of
// all; backwards likewise. Nothing without hits. O(log n).
std::optional<size_t> NextHit(const Lines& lines, const Hits& hits, TraceTime t);
std::optional<size_t> PreviousHit(const Lines& lines, const Hits& hits, TraceTime t);

}  // namespace trainprof
