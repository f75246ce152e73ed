// Which lines the timeline has: rank > host threads > GPU > its streams, copies, why it was idle,
// its memory > counters. Made once a job from counts alone; a line's lanes are made when it is
// looked at (viewer/timeline/lane_store.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/job/lateness.h"
#include "viewer/timeline/lane.h"
#include "viewer/timeline/series.h"

namespace trainprof {

// One rank's data; all must outlive what is made of them.
struct RankView {
  const Trace* trace = nullptr;
  // Its steps and device_steps count. Null, or without steps: the rank's lane is empty.
  const RankAnalysis* analysis = nullptr;
  // AccountDevices(trace, analysis->device_steps). Null: made with the lines, of a rank with an
  // analysis. Without accounts the lanes kGpu and kIdle are empty.
  const std::vector<DeviceAccount>* accounts = nullptr;
  // AccountHost(trace, analysis->steps). Null: made when somebody asks.
  const HostAccount* host = nullptr;

  bool operator==(const RankView&) const = default;
};

enum class LineKind : uint8_t {
  kRank,  // its lane: the steps
  kThread,
  kGpu,  // its lane: when it was busy, and with what
  kStream,
  kStreamRanges,  // annotations on the stream
  kStreamSyncs,
  kCopies,  // of all streams of the GPU
  kIdle,    // why the GPU was idle
  kMemory,
  kCounter,
};

inline constexpr uint32_t kNoLine = UINT32_MAX;
// Events nested deeper are left out of the lanes, and counted.
inline constexpr uint32_t kDeepestLane = 1000;

struct Line {
  LineKind kind{};
  uint8_t level = 0;  // of indentation: 0 rank, 1 thread or GPU, 2 what belongs to a GPU
  uint32_t rank = 0;  // index into the ranks
  uint32_t parent = kNoLine;
  TrackId track = kNoTrack;
  DeviceId device = kNoDevice;
  uint32_t series = 0;    // kMemory, kCounter: index into SeriesOf(rank)
  uint32_t lanes = 1;     // 0: a series
  uint32_t too_deep = 0;  // events beyond kDeepestLane
};

// What an event is, in the whole job.
struct EventRef {
  uint32_t rank = 0;
  Table table{};
  Row row = kNoRow;

  bool operator==(const EventRef&) const = default;
};

// All ranks share one axis of time, which counts from `base_ns()`; a row's time on it is
// `trace time + Shift(rank)`. Immutable: for any thread.
class Lines {
 public:
  // O(events), and O(n log n) in the tracks. Tracks without an event get no line. The lines of
  // `before`, which is of the first of these traces, are taken over in O(lines): they keep their
  // index whatever is known of their ranks now.
  explicit Lines(std::vector<RankView> ranks, const Lines* before = nullptr);

  std::span<const Line> lines() const { return lines_; }
  std::string NameOf(uint32_t line) const;
  std::span<const RankView> ranks() const { return ranks_; }
  const Trace& TraceOf(uint32_t line) const { return *ranks_[lines_[line].rank].trace; }
  const JobClock& clock() const { return clock_; }
  Duration Shift(uint32_t rank) const { return clock_.shift[rank]; }
  int64_t base_ns() const { return clock_.base_ns; }
  // False: the ranks began more than an hour apart; each then begins at time 0.
  bool aligned() const { return clock_.aligned; }
  Interval extent() const { return extent_; }  // of all ranks; never empty

  std::span<const SeriesId> SeriesOf(uint32_t rank) const { return series_[rank]; }
  // The line that a row is on, or kNoLine. O(1), for what is no operation on a stream O(lines).
  uint32_t LineOf(const EventRef& event) const;
  // Of tables of events and kSteps only. O(1).
  Interval TimeOf(const EventRef& event) const;
  std::string_view NameOf(const EventRef& event) const;
  std::span<const DeviceAccount> AccountsOf(uint32_t rank) const;

 private:
  friend class LineMaker;
  void MakeAccounts();
  void PlaceOnAxis();

  std::vector<RankView> ranks_;
  JobClock clock_;
  std::vector<std::vector<SeriesId>> series_;
  std::vector<bool> several_processes_;  // by rank: its threads' names say of which process
  // Per rank and track: its line; of a stream that of its operations.
  std::vector<std::vector<uint32_t>> line_of_track_;
  std::vector<uint32_t> line_of_rank_;
  std::vector<Line> lines_;
  std::vector<std::vector<DeviceAccount>> accounts_;  // of ranks that came without
  Interval extent_;
};

}  // namespace trainprof
