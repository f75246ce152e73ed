// Where each event of a trace stands in a Chrome trace: its pid and tid, and, for events that
// overlap without nesting, a lane beside: complete events must nest on a track (Perfetto drops
// those that do not), and devices really run kernels of one stream side by side.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

class ChromeLanes {
 public:
  struct Place {
    int64_t pid = 0;
    int64_t tid = 0;
  };
  // A lane beside a track, to be named.
  struct Lane {
    TrackId track{};
    int64_t tid = 0;
    uint32_t number = 0;  // 1 is the first beside the track
  };

  // O(n log n) in the complete events.
  explicit ChromeLanes(const Trace& trace);

  Place PlaceOf(TrackId track) const { return places_[Index(track)]; }
  // The tid of a row: its track's, or a lane's.
  int64_t TidOf(Table table, uint32_t row, TrackId track) const {
    if (!moved_.empty()) {
      const auto it = moved_.find(Key(table, row));
      if (it != moved_.end()) return it->second;
    }
    return places_[Index(track)].tid;
  }
  // The tid at which an arrow finds the event that begins at `time` on the track.
  int64_t TidAt(TrackId track, TraceTime time) const;
  const std::vector<Lane>& lanes() const { return lanes_; }

 private:
  struct Span {
    TraceTime begin;
    TraceTime end;
    Table table;
    uint32_t row;
    TrackId track;
  };

  static uint64_t Key(Table table, uint32_t row) { return uint64_t(table) << 32 | row; }
  static uint64_t TimeKey(TrackId track, TraceTime time) {
    return uint64_t{Index(track)} * 0x9E3779B97F4A7C15ull ^ static_cast<uint64_t>(time.ns);
  }
  static std::vector<Span> SpansOf(const Trace& trace, const std::vector<TrackId>& tracks);
  static void Append(const EventColumns& table, Table which, TrackId track,
                     std::vector<Span>& spans);
  static bool NestWithin(const std::vector<Span>& spans);
  void Assign(const std::vector<Span>& spans);
  int64_t LaneTid(TrackId track, uint32_t lane);

  std::vector<Place> places_;                       // by track
  std::unordered_map<uint64_t, int64_t> moved_;     // row -> tid, for rows beside their track
  std::unordered_map<uint64_t, int64_t> moved_at_;  // (track, begin) -> tid of such a row
  std::vector<Lane> lanes_;
  std::set<std::pair<int64_t, int64_t>> used_;  // (pid, tid) of tracks and lanes
};

}  // namespace trainprof
