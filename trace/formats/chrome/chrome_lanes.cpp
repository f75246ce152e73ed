// Lanes are filled greedily: an event goes to the first lane in which it nests.
#include "trace/formats/chrome/chrome_lanes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "trace/base/parallel.h"

namespace trainprof {
namespace {

// Lanes of stream 7 are 1000007, 2000007, ...: beyond real streams, as kineto does for sync rows.
constexpr int64_t kLaneStride = 1'000'000;
// Deeper overlap than this is no real device; the rest then shares the last lane.
constexpr size_t kMaxLanes = 64;

}  // namespace

ChromeLanes::ChromeLanes(const Trace& trace) {
  places_.reserve(trace.tracks.size());
  std::map<std::pair<int64_t, int64_t>, std::vector<TrackId>> tracks_at;
  for (uint32_t i = 0; i < trace.tracks.size(); ++i) {
    const Track& track = trace.tracks[i];
    Place place{trace.processes[Index(track.process)].pid, track.tid};
    // Kineto's way, which HTA expects: a device is a process of its number. Imports have it
    // already.
    if (!HasChromeWords(trace) && track.device != kNoDevice) {
      place.pid = trace.devices[Index(track.device)].id;
    }
    places_.push_back(place);
    used_.emplace(place.pid, place.tid);
    tracks_at[{place.pid, place.tid}].push_back(TrackId{i});
  }
  // Of each place its rows, where they do not all nest.
  std::vector<std::vector<Span>> overlapping(tracks_at.size());
  std::vector<std::function<void()>> jobs;
  for (const auto& at : tracks_at) {
    jobs.emplace_back([&, &tracks = at.second, &overlap = overlapping[jobs.size()]] {
      std::vector<Span> spans = SpansOf(trace, tracks);
      if (!NestWithin(spans)) overlap = std::move(spans);
    });
  }
  RunAll(jobs);
  for (const std::vector<Span>& spans : overlapping) Assign(spans);
}

// In the order of begin, longer first.
std::vector<ChromeLanes::Span> ChromeLanes::SpansOf(const Trace& trace,
                                                    const std::vector<TrackId>& tracks) {
  std::vector<Span> spans;
  for (TrackId track : tracks) {
    ForEachEventTable(trace, [&]<class T>(Table which, const T& table) {
      // Points in time overlap nothing.
      if constexpr (!std::is_same_v<T, InstantTable>) Append(table, which, track, spans);
    });
  }
  return spans;
}

// Whether one lane is enough.
bool ChromeLanes::NestWithin(const std::vector<Span>& spans) {
  std::vector<TraceTime> open;
  for (const Span& span : spans) {
    while (!open.empty() && open.back() <= span.begin) open.pop_back();
    if (!open.empty() && open.back() < span.end) return false;
    open.push_back(span.end);
  }
  return true;
}

// Appends the track's rows and merges them into the order of begin, longer first.
void ChromeLanes::Append(const EventColumns& table, Table which, TrackId track,
                         std::vector<Span>& spans) {
  const auto before = [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  };
  const auto old_size = static_cast<ptrdiff_t>(spans.size());
  const auto [first, last] = table.rows_of(track);
  for (uint32_t row = first; row < last; ++row) {
    spans.push_back({table.begin[row], table.end(row), which, row, track});
  }
  std::inplace_merge(spans.begin(), spans.begin() + old_size, spans.end(), before);
}

void ChromeLanes::Assign(const std::vector<Span>& spans) {
  std::vector<std::vector<TraceTime>> open(1);  // per lane: ends of the events that are open
  std::vector<int64_t> lane_tid(1);
  for (const Span& span : spans) {
    size_t lane = 0;
    for (;; ++lane) {
      if (lane == open.size()) {
        open.emplace_back();
        lane_tid.push_back(LaneTid(span.track, static_cast<uint32_t>(lane)));
      }
      std::vector<TraceTime>& ends = open[lane];
      while (!ends.empty() && ends.back() <= span.begin) ends.pop_back();
      if (ends.empty() || ends.back() >= span.end || lane + 1 == kMaxLanes) break;
    }
    open[lane].push_back(span.end);
    if (lane == 0) continue;
    moved_[Key(span.table, span.row)] = lane_tid[lane];
    moved_at_[TimeKey(span.track, span.begin)] = lane_tid[lane];
  }
}

// A tid that nobody else in the process has.
int64_t ChromeLanes::LaneTid(TrackId track, uint32_t lane) {
  const Place place = places_[Index(track)];
  // Unsigned: a hostile tid may be near the end of the range.
  auto tid = static_cast<uint64_t>(place.tid) + uint64_t{kLaneStride} * lane;
  while (!used_.emplace(place.pid, static_cast<int64_t>(tid)).second) tid += kLaneStride;
  lanes_.push_back({track, static_cast<int64_t>(tid), lane});
  return static_cast<int64_t>(tid);
}

int64_t ChromeLanes::TidAt(TrackId track, TraceTime time) const {
  if (!moved_at_.empty()) {
    const auto it = moved_at_.find(TimeKey(track, time));
    if (it != moved_at_.end()) return it->second;
  }
  return places_[Index(track)].tid;
}

}  // namespace trainprof
