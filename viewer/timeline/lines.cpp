#include "viewer/timeline/lines.h"

#include <fmt/format.h>

#include <functional>
#include <tuple>
#include <vector>

#include "trace/base/parallel.h"
#include "viewer/timeline/line_events.h"

namespace trainprof {
namespace {

bool HasRows(const EventColumns& table, TrackId track) {
  const auto [first, last] = table.rows_of(track);
  return first < last;
}

bool HasCopies(const Trace& trace, TrackId stream) {
  const auto [first, last] = trace.device_ops.rows_of(stream);
  for (uint32_t row = first; row < last; ++row) {
    if (trace.device_ops.kind[row] == DeviceOpKind::kCopy) return true;
  }
  return false;
}

bool HasSeveralProcesses(const Trace& trace) {
  ProcessId first = kNoProcess;
  for (const Track& track : trace.tracks) {
    if (track.kind != TrackKind::kThread) continue;
    if (first == kNoProcess) first = track.process;
    if (track.process != first) return true;
  }
  return false;
}

}  // namespace

namespace line_events_internal {

std::vector<uint32_t> CopiesOf(const Trace& trace, DeviceId device) {
  const DeviceOpTable& ops = trace.device_ops;
  // Whether there is another copy, which the cursor then stands at.
  const auto find_copy = [&](Cursor& c) {
    while (c.row < c.end && ops.kind[c.row] != DeviceOpKind::kCopy) CancelPoint(c.row++);
    return c.row < c.end;
  };
  std::vector<Cursor> streams;
  for (uint32_t t = 0; t < trace.tracks.size(); ++t) {
    if (trace.tracks[t].kind != TrackKind::kStream || trace.tracks[t].device != device) continue;
    Cursor stream = CursorOf(ops, Table::kDeviceOps, TrackId{t});
    if (find_copy(stream)) streams.push_back(stream);
  }
  // A heap whose top comes next; where that is the same, the first stream's.
  const auto comes_behind = [](const Cursor& a, const Cursor& b) {
    return ComesBefore(b, a) || (!ComesBefore(a, b) && b.row < a.row);
  };
  std::make_heap(streams.begin(), streams.end(), comes_behind);
  std::vector<uint32_t> rows;
  while (!streams.empty()) {
    CancelPoint(rows.size());
    std::pop_heap(streams.begin(), streams.end(), comes_behind);
    Cursor& stream = streams.back();
    rows.push_back(stream.row++);
    if (find_copy(stream)) {
      std::push_heap(streams.begin(), streams.end(), comes_behind);
    } else {
      streams.pop_back();
    }
  }
  return rows;
}

}  // namespace line_events_internal

using line_events_internal::Cursor;
using line_events_internal::CursorsOf;

// Of each stream, one below the other.
constexpr LineKind kStreamLines[] = {LineKind::kStream, LineKind::kStreamRanges,
                                     LineKind::kStreamSyncs};

// Makes the lines of one rank after the other.
class LineMaker {
 public:
  explicit LineMaker(Lines& lines) : out_(lines) {}

  void AddRank(uint32_t rank) {
    rank_ = rank;
    trace_ = out_.ranks_[rank].trace;
    out_.series_.push_back(FindSeries(*trace_));
    out_.several_processes_.push_back(HasSeveralProcesses(*trace_));
    out_.line_of_track_.emplace_back(trace_->tracks.size(), kNoLine);
    out_.line_of_rank_.push_back(Add({.kind = LineKind::kRank}, kNoLine));
    AddThreads();
    AddDevices();
    AddSeries(LineKind::kCounter, out_.line_of_rank_.back(), nullptr);
    CountLanes();
  }

 private:
  // Of all lines whose events may be nested.
  void CountLanes() {
    constexpr size_t kWorthThreads = 1 << 17;  // events
    std::vector<std::function<void()>> jobs;
    for (const uint32_t line : to_count_) {
      jobs.emplace_back([this, line] { CountLanesOf(out_.lines_[line]); });
    }
    to_count_.clear();
    if (trace_->ranges.size() + trace_->api.size() + trace_->device_ops.size() >= kWorthThreads) {
      RunAll(jobs);
    } else {
      for (const auto& job : jobs) job();
    }
  }

  void CountLanesOf(Line& line) const {
    DepthPlacer placer;
    uint32_t too_deep = 0;
    VisitEvents(out_, line, [&](const Interval& interval, Table, uint32_t) {
      if (placer.Place(interval) == kDeepestLane) ++too_deep;
    });
    line.too_deep = too_deep;
    line.lanes = std::max(placer.lanes(), 1u);
  }

  uint32_t Add(Line line, uint32_t parent) {
    const auto index = static_cast<uint32_t>(out_.lines_.size());
    line.rank = rank_;
    line.parent = parent;
    line.level = parent == kNoLine ? 0 : static_cast<uint8_t>(out_.lines_[parent].level + 1);
    const bool may_nest =
        line.lanes > 0 && line.kind != LineKind::kGpu && line.kind != LineKind::kIdle;
    if (may_nest) to_count_.push_back(index);
    out_.lines_.push_back(line);
    return index;
  }

  // The stepping thread first; then in the order that the source asks for, the profiler's own rows
  // last.
  void AddThreads() {
    std::vector<TrackId> threads;
    for (uint32_t t = 0; t < trace_->tracks.size(); ++t) {
      const TrackId id{t};
      if (trace_->tracks[t].kind == TrackKind::kStream) continue;
      if (!CursorsOf(*trace_, LineKind::kThread, id).empty()) threads.push_back(id);
    }
    const RankAnalysis* const analysis = out_.ranks_[rank_].analysis;
    const TrackId stepping = analysis != nullptr ? analysis->steps.thread : kNoTrack;
    const auto key = [&](TrackId id) {
      const Track& track = trace_->tracks[Index(id)];
      const Process& process = trace_->processes[Index(track.process)];
      return std::tuple(id != stepping, track.kind == TrackKind::kOther, process.sort_index,
                        process.pid, track.sort_index, track.tid, id);
    };
    std::sort(threads.begin(), threads.end(),
              [&](TrackId a, TrackId b) { return key(a) < key(b); });
    const uint32_t parent = out_.line_of_rank_.back();
    for (TrackId id : threads) {
      out_.line_of_track_[rank_][Index(id)] = Add({.kind = LineKind::kThread, .track = id}, parent);
    }
  }

  // Streams of devices in their order, those of no known device last.
  void AddDevices() {
    const size_t devices = trace_->devices.size();
    std::vector<std::vector<TrackId>> streams(devices + 1);
    for (uint32_t t = 0; t < trace_->tracks.size(); ++t) {
      const Track& track = trace_->tracks[t];
      if (track.kind != TrackKind::kStream) continue;
      streams[track.device == kNoDevice ? devices : Index(track.device)].push_back(TrackId{t});
    }
    std::vector<size_t> order(devices + 1);
    for (size_t d = 0; d <= devices; ++d) order[d] = d;
    std::sort(order.begin(), order.end() - 1,
              [&](size_t a, size_t b) { return trace_->devices[a].id < trace_->devices[b].id; });
    for (size_t d : order) {
      const DeviceId device = d == devices ? kNoDevice : DeviceId{static_cast<uint32_t>(d)};
      AddDevice(device, streams[d]);
    }
  }

  void AddDevice(DeviceId device, std::vector<TrackId>& streams) {
    std::erase_if(streams, [&](TrackId id) {
      return std::none_of(std::begin(kStreamLines), std::end(kStreamLines),
                          [&](LineKind kind) { return HasLine(kind, id); });
    });
    const bool has_memory = std::any_of(out_.series_[rank_].begin(), out_.series_[rank_].end(),
                                        [&](const SeriesId& id) { return IsMemoryOf(id, device); });
    if (streams.empty() && !has_memory) return;
    std::sort(streams.begin(), streams.end(), [&](TrackId a, TrackId b) {
      return std::tuple(trace_->tracks[Index(a)].tid, a) <
             std::tuple(trace_->tracks[Index(b)].tid, b);
    });
    const uint32_t gpu = Add({.kind = LineKind::kGpu, .device = device}, out_.line_of_rank_.back());
    const auto any = [&](auto test) { return std::any_of(streams.begin(), streams.end(), test); };
    for (TrackId id : streams) AddStream(id, device, gpu);
    if (any([&](TrackId id) { return HasCopies(*trace_, id); })) {
      Add({.kind = LineKind::kCopies, .device = device}, gpu);
    }
    if (device != kNoDevice && any([&](TrackId id) { return HasRows(trace_->device_ops, id); })) {
      Add({.kind = LineKind::kIdle, .device = device}, gpu);
    }
    AddSeries(LineKind::kMemory, gpu, &device);
  }

  void AddStream(TrackId id, DeviceId device, uint32_t gpu) {
    for (const LineKind kind : kStreamLines) {
      if (!HasLine(kind, id)) continue;
      const uint32_t line = Add({.kind = kind, .track = id, .device = device}, gpu);
      if (kind == LineKind::kStream) out_.line_of_track_[rank_][Index(id)] = line;
    }
  }

  // Points in time alone make no line of a stream.
  bool HasLine(LineKind kind, TrackId stream) const {
    const auto cursors = CursorsOf(*trace_, kind, stream);
    return std::any_of(cursors.begin(), cursors.end(),
                       [](const Cursor& cursor) { return cursor.kind != Table::kInstants; });
  }

  bool IsMemoryOf(const SeriesId& id, DeviceId device) const {
    return id.track == kNoTrack && device != kNoDevice &&
           trace_->devices[Index(device)].id == id.device_id;
  }
  bool IsMemoryOfADevice(const SeriesId& id) const {
    for (uint32_t d = 0; d < trace_->devices.size(); ++d) {
      if (IsMemoryOf(id, DeviceId{d})) return true;
    }
    return false;
  }

  // Memory of `device`; without one the counters and the host's memory.
  void AddSeries(LineKind kind, uint32_t parent, const DeviceId* device) {
    const std::vector<SeriesId>& all = out_.series_[rank_];
    for (uint32_t s = 0; s < all.size(); ++s) {
      const bool wanted = device != nullptr
                              ? IsMemoryOf(all[s], *device)
                              : all[s].track != kNoTrack || !IsMemoryOfADevice(all[s]);
      const LineKind its_kind = all[s].track == kNoTrack ? LineKind::kMemory : kind;
      if (!wanted) continue;
      Add({.kind = its_kind,
           .track = all[s].track,
           .device = device != nullptr ? *device : kNoDevice,
           .series = s,
           .lanes = 0},
          parent);
    }
  }

  Lines& out_;
  uint32_t rank_ = 0;
  const Trace* trace_ = nullptr;
  std::vector<uint32_t> to_count_;  // lines
};

Lines::Lines(std::vector<RankView> ranks, const Lines* before) {
  if (before != nullptr) *this = *before;
  const auto known = static_cast<uint32_t>(ranks_.size());
  ranks_ = std::move(ranks);
  MakeAccounts();
  PlaceOnAxis();
  for (uint32_t rank = known; rank < ranks_.size(); ++rank) LineMaker(*this).AddRank(rank);
}

void Lines::MakeAccounts() {
  accounts_.assign(ranks_.size(), {});
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankView& view = ranks_[rank];
    if (view.accounts != nullptr || view.analysis == nullptr) continue;
    accounts_[rank] = AccountDevices(*view.trace, view.analysis->device_steps);
  }
}

void Lines::PlaceOnAxis() {
  std::vector<int64_t> base_ns;
  for (const RankView& rank : ranks_) base_ns.push_back(rank.trace->base_ns);
  clock_ = ClockOf(base_ns);
  Interval extent{{INT64_MAX}, {INT64_MIN}};
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const Interval own = ranks_[rank].trace->extent;
    extent.begin = std::min(extent.begin, own.begin + Shift(rank));
    extent.end = std::max(extent.end, own.end + Shift(rank));
  }
  extent = Intersect(extent, {{-kMostViewNs}, {kMostViewNs}});
  extent_ = extent.Empty() ? Interval{{0}, {1}} : extent;
}

std::span<const DeviceAccount> Lines::AccountsOf(uint32_t rank) const {
  return ranks_[rank].accounts != nullptr ? *ranks_[rank].accounts : accounts_[rank];
}

uint32_t Lines::LineOf(const EventRef& event) const {
  if (event.table == Table::kSteps) return line_of_rank_[event.rank];
  const EventColumns* table = ColumnsOf(*ranks_[event.rank].trace, event.table);
  if (table == nullptr) return kNoLine;
  const TrackId track = table->track[Index(event.row)];
  uint32_t line = line_of_track_[event.rank][Index(track)];
  const bool on_stream = ranks_[event.rank].trace->tracks[Index(track)].kind == TrackKind::kStream;
  if (!on_stream || event.table == Table::kDeviceOps) return line;
  // A stream's other lines stand behind that of its operations, or, without any, behind the GPU's.
  const LineKind wanted =
      event.table == Table::kSyncs ? LineKind::kStreamSyncs : LineKind::kStreamRanges;
  for (line = line == kNoLine ? 0 : line; line < lines_.size(); ++line) {
    const Line& l = lines_[line];
    if (l.rank == event.rank && l.track == track && l.kind == wanted) return line;
  }
  return kNoLine;
}

Interval Lines::TimeOf(const EventRef& event) const {
  const EventColumns* table = ColumnsOf(*ranks_[event.rank].trace, event.table);
  const Interval time = table != nullptr
                            ? table->interval(event.row)
                            : ranks_[event.rank].analysis->steps.steps[Index(event.row)].span;
  return {time.begin + Shift(event.rank), time.end + Shift(event.rank)};
}

std::string_view Lines::NameOf(const EventRef& event) const {
  const EventColumns* table = ColumnsOf(*ranks_[event.rank].trace, event.table);
  if (table == nullptr) return "step";
  return ranks_[event.rank].trace->Text(table->name[Index(event.row)]);
}

}  // namespace trainprof
