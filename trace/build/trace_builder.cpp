// Columns are filled in arrival order; Build() makes one permutation a table and applies it.
#include "trace/build/trace_builder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <type_traits>
#include <utility>

#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/parallel.h"
#include "trace/base/sort_runs.h"
#include "trace/build/canonical_order.h"
#include "trace/build/communication_join.h"
#include "trace/build/launch_join.h"
#include "trace/build/missing_rows.h"
#include "trace/build/queue_full.h"
#include "trace/build/sync_join.h"

namespace trainprof {
namespace {

// 146 years in ns: the difference of any two times within +-kFarthestNs is a valid Duration.
constexpr int64_t kFarthestNs = (int64_t{1} << 62) - 1;

int64_t Clamped(int64_t ns, Quality& quality) {
  if (ns >= -kFarthestNs && ns <= kFarthestNs) return ns;
  quality.Count("time_out_of_range", QualitySeverity::kWarning, 1,
                "a time more than 146 years from the trace's base; clamped");
  return ns < 0 ? -kFarthestNs : kFarthestNs;
}

Event AtOnce(Event event) {
  event.end = event.begin;
  return event;
}

// One value is the usual count, where the rows of a recording alternate.
template <class Column>
void Append(Column& column, size_t count, typename Column::value_type value) {
  if (count == 1) return column.push_back(value);
  column.resize(column.size() + count, value);
}

// Each row to its place. Read in order and written to as many places at once as there are tracks: the other way round
// each line of memory is fetched once for each track that has a row in it. Through `scratch`, which all columns of a
// table share: new memory costs more than a copy.
template <class T>
void Permute(std::vector<T>& column, const std::vector<uint32_t>& place,
             std::vector<uint64_t>& scratch) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  std::memcpy(scratch.data(), column.data(), column.size() * sizeof(T));
  const auto* from = reinterpret_cast<const char*>(scratch.data());
  for (size_t row = 0; row < place.size(); ++row) {
    CancelPoint(row);
    std::memcpy(&column[place[row]], from + row * sizeof(T), sizeof(T));
  }
}

// Of two rows of one track: begins earlier, or is longer.
bool StandsBefore(const EventColumns& table, uint32_t a, uint32_t b) {
  if (table.begin[a] != table.begin[b]) return table.begin[a] < table.begin[b];
  return table.end(a) > table.end(b);
}

bool IsSorted(const EventColumns& table) {
  for (uint32_t row = 1; row < table.size(); ++row) {
    CancelPoint(row);
    if (table.track[row] < table.track[row - 1]) return false;
    if (table.track[row] == table.track[row - 1] && StandsBefore(table, row, row - 1)) return false;
  }
  return true;
}

// Less where StandsBefore: compared without a branch.
unsigned __int128 KeyOf(const EventColumns& table, uint32_t row) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  return static_cast<unsigned __int128>(static_cast<uint64_t>(table.begin[row].ns) ^ kSign) << 64 |
         ~static_cast<uint64_t>(int64_t{table.duration[row]});
}

// The place of each row in the order of (track, begin, longer first), ties as they came: buckets by track, each sorted
// unless its rows came in order. They come in a few runs, as a rule. `track_begin` is filled already.
std::vector<uint32_t> SortedPlaces(const EventColumns& table) {
  const size_t tracks = table.track_begin.size() - 1;
  std::vector<uint32_t> place(table.size());
  std::vector<uint32_t> next = table.track_begin;
  std::vector<uint32_t> last(tracks, UINT32_MAX);  // the track's row before this one
  std::vector<bool> is_sorted(tracks, true);
  for (uint32_t row = 0; row < table.size(); ++row) {
    CancelPoint(row);
    const size_t track = Index(table.track[row]);
    place[row] = next[track]++;
    if (last[track] != UINT32_MAX && StandsBefore(table, row, last[track]))
      is_sorted[track] = false;
    last[track] = row;
  }
  if (std::find(is_sorted.begin(), is_sorted.end(), false) == is_sorted.end()) return place;
  std::vector<std::vector<uint32_t>> rows(tracks);
  for (size_t track = 0; track < tracks; ++track) {
    if (!is_sorted[track]) {
      rows[track].reserve(table.track_begin[track + 1] - table.track_begin[track]);
    }
  }
  for (uint32_t row = 0; row < table.size(); ++row) {
    if (const size_t track = Index(table.track[row]); !is_sorted[track]) rows[track].push_back(row);
  }
  for (size_t track = 0; track < tracks; ++track) {
    std::vector<uint32_t> sorted = std::move(rows[track]);
    SortRuns(sorted, [&](uint32_t row) { return KeyOf(table, row); });
    for (uint32_t at = table.track_begin[track]; const uint32_t row : sorted) place[row] = at++;
  }
  return place;
}

template <class T>
void SortRows(T& table, size_t track_count) {
  table.track_begin.assign(track_count + 1, 0);
  for (TrackId track : table.track) ++table.track_begin[Index(track) + 1];
  std::partial_sum(table.track_begin.begin(), table.track_begin.end(), table.track_begin.begin());
  if (IsSorted(table)) return;
  const std::vector<uint32_t> place = SortedPlaces(table);
  std::vector<uint64_t> scratch;
  AssignLarge(scratch, table.size());
  ForEachStored(table, [&](auto& column) { Permute(column, place, scratch); });
}

// Closest range that encloses each. Returns how many overlap others without nesting.
int64_t FindParents(RangeTable& ranges) {
  ReserveLarge(ranges.parent, ranges.size());
  ranges.parent.assign(ranges.size(), kNoRow);
  std::vector<uint32_t> open;
  int64_t overlaps = 0;
  for (uint32_t row = 0; row < ranges.size(); ++row) {
    CancelPoint(row);
    if (!open.empty() && ranges.track[open.back()] != ranges.track[row]) open.clear();
    while (!open.empty() && ranges.end(open.back()) <= ranges.begin[row]) open.pop_back();
    // A range that runs past its would-be parent is a sibling that overlaps, not a child.
    size_t depth = open.size();
    while (depth > 0 && ranges.end(open[depth - 1]) < ranges.end(row)) --depth;
    if (depth < open.size()) ++overlaps;
    if (depth > 0) ranges.parent[row] = Row{open[depth - 1]};
    open.resize(depth);
    open.push_back(row);
  }
  return overlaps;
}

void Rebase(Trace& trace) {
  int64_t first = INT64_MAX;
  ForEachTable(trace, [&](Table, const EventColumns& table) {
    for (TraceTime t : table.begin) first = std::min(first, t.ns);
  });
  if (first == INT64_MAX) return;
  const auto shift = [&](TraceTime& t) { t.ns -= first; };
  ForEachTable(trace, [&](Table, EventColumns& table) {
    CancelPoint();
    for (TraceTime& t : table.begin) shift(t);
  });
  for (OtherEvent& other : trace.others) shift(other.begin);
  for (Gap& gap : trace.gaps) {
    shift(gap.interval.begin);
    shift(gap.interval.end);
  }
  trace.base_ns = Clamped(trace.base_ns, trace.quality) + first;
}

// Of sorted tables.
Interval Extent(const Trace& trace) {
  bool any = false;
  Interval extent{};
  for (const EventColumns* table : {static_cast<const EventColumns*>(&trace.ranges),
                                    static_cast<const EventColumns*>(&trace.api),
                                    static_cast<const EventColumns*>(&trace.device_ops)}) {
    for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
      const auto [first, last] = table->rows_of(TrackId{track});
      // The profiler's own rows ("PyTorch Profiler (0)") are no activity.
      if (first == last || trace.tracks[track].kind == TrackKind::kOther) continue;
      if (!any) extent = {table->begin[first], table->end(first)};
      any = true;
      extent.begin = std::min(extent.begin, table->begin[first]);
      for (uint32_t row = first; row < last; ++row) {
        extent.end = std::max(extent.end, table->end(row));
      }
    }
  }
  return extent;
}

}  // namespace

FrameId TraceBuilder::AddFrame(const FrameText& frame) {
  StringId file = Intern(frame.file);
  if (const auto named = file_names_.find(file); named != file_names_.end()) file = named->second;
  return trace_.stacks.AddFrame({.function = Intern(frame.function),
                                 .file = file,
                                 .line = frame.line,
                                 .module = Intern(frame.module),
                                 .offset = frame.offset},
                                [&] { return IsUserFrame(frame); });
}

void TraceBuilder::NameFile(std::string_view file, std::string_view name) {
  file_names_[Intern(file)] = Intern(name);
}

ProcessId TraceBuilder::FindOrAddProcess(int64_t pid) {
  const ProcessId next{static_cast<uint32_t>(trace_.processes.size())};
  const auto [it, is_new] = process_of_pid_.try_emplace(pid, next);
  if (is_new) trace_.processes.push_back({.pid = pid});
  return it->second;
}

ProcessId TraceBuilder::FindProcess(int64_t pid) const {
  const auto it = process_of_pid_.find(pid);
  return it == process_of_pid_.end() ? kNoProcess : it->second;
}

TrackId TraceBuilder::FindOrAddThread(ProcessId process, int64_t tid) {
  const TrackId next{static_cast<uint32_t>(trace_.tracks.size())};
  const auto [it, is_new] = track_of_[TrackKey(process, TrackKind::kThread)].try_emplace(tid, next);
  if (is_new) trace_.tracks.push_back({.process = process, .tid = tid});
  return it->second;
}

TrackId TraceBuilder::FindOrAddStream(ProcessId process, int64_t device_id, int64_t stream) {
  const DeviceId device = FindOrAddDevice(device_id);
  const TrackId id = FindOrAddStream(process, stream);
  Track& track = trace_.tracks[Index(id)];
  if (track.device == kNoDevice) track.device = device;
  if (track.device == device) return id;
  // Streams of several devices have the same numbers.
  const TrackId next{static_cast<uint32_t>(trace_.tracks.size())};
  const auto [it, is_new] = stream_of_.try_emplace({process, device, stream}, next);
  if (is_new) {
    trace_.tracks.push_back(
        {.kind = TrackKind::kStream, .process = process, .tid = stream, .device = device});
  }
  return it->second;
}

TrackId TraceBuilder::FindOrAddStream(ProcessId process, int64_t stream) {
  const TrackId next{static_cast<uint32_t>(trace_.tracks.size())};
  const auto [it, is_new] =
      track_of_[TrackKey(process, TrackKind::kStream)].try_emplace(stream, next);
  if (is_new) {
    trace_.tracks.push_back({.kind = TrackKind::kStream, .process = process, .tid = stream});
  }
  return it->second;
}

TrackId TraceBuilder::FindThread(ProcessId process, int64_t tid) const {
  return FindTrack(process, TrackKind::kThread, tid);
}

TrackId TraceBuilder::FindStream(ProcessId process, int64_t stream) const {
  return FindTrack(process, TrackKind::kStream, stream);
}

TrackId TraceBuilder::FindTrack(ProcessId process, TrackKind kind, int64_t number) const {
  const auto tracks = track_of_.find(TrackKey(process, kind));
  if (tracks == track_of_.end()) return kNoTrack;
  const auto it = tracks->second.find(number);
  return it == tracks->second.end() ? kNoTrack : it->second;
}

DeviceId TraceBuilder::FindOrAddDevice(int64_t device_id) {
  const DeviceId next{static_cast<uint32_t>(trace_.devices.size())};
  const auto [it, is_new] = device_of_.try_emplace(device_id, next);
  if (is_new) trace_.devices.push_back({.id = device_id});
  return it->second;
}

size_t TraceBuilder::HashConfig::operator()(const LaunchConfig& config) const {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(&config), sizeof config});
}

LaunchConfigId TraceBuilder::FindOrAddLaunchConfig(const LaunchConfig& config) {
  const size_t mix = config.grid[0] * 0x9E3779B1u ^ config.grid[1] * 0x85EBCA77u ^
                     config.block[0] * 0xC2B2AE3Du ^
                     static_cast<uint32_t>(config.registers_per_thread) * 0x27D4EB2Fu;
  LaunchConfigId& recent = recent_configs_[(mix >> 16) % recent_configs_.size()];
  if (Index(recent) < trace_.launch_configs.size() &&
      trace_.launch_configs[Index(recent)] == config) {
    return recent;
  }
  const LaunchConfigId next{static_cast<uint32_t>(trace_.launch_configs.size())};
  const auto [it, is_new] = launch_config_of_.try_emplace(config, next);
  if (is_new) trace_.launch_configs.push_back(config);
  return recent = it->second;
}

CollectiveId TraceBuilder::AddCollective(const Collective& collective) {
  trace_.collectives.push_back(collective);
  return CollectiveId{static_cast<uint32_t>(trace_.collectives.size() - 1)};
}

AllocationId TraceBuilder::AddAllocation(const Allocation& allocation) {
  trace_.allocations.push_back(allocation);
  return AllocationId{static_cast<uint32_t>(trace_.allocations.size() - 1)};
}

void TraceBuilder::PushTimes(EventColumns& table, TraceTime begin, TraceTime end) {
  const TraceTime kept{Clamped(begin.ns, quality())};
  table.begin.push_back(kept);
  table.duration.push_back(std::max<int64_t>(0, Clamped(end.ns, quality()) - kept.ns));
  if (end < begin) {
    quality().Count("negative_duration", QualitySeverity::kWarning, 1,
                    "an event that ends before it begins; kept with duration 0");
  }
}

template <class T, class... Own>
void TraceBuilder::PushMany(T& table, const CommonFields& common, std::span<const EventTimes> times,
                            Own... own) {
  for (const EventTimes& t : times) {
    PushTimes(table, t.begin, t.end);
    table.correlation.push_back(t.correlation);
  }
  Append(table.name, times.size(), common.name);
  Append(table.track, times.size(), common.track);
  Append(table.args, times.size(), common.args);
  Append(table.category, times.size(), common.category);
  (Append(table.*own.first, times.size(), own.second), ...);
}

void TraceBuilder::AddRange(const Event& event, RangeKind kind) {
  AddRow(trace_.ranges, event, kind, event.category, event.stack);
}

void TraceBuilder::AddApi(const Event& event, ApiKind kind, int64_t correlation) {
  AddRow(trace_.api, event, kind, event.category, correlation, event.stack);
}

void TraceBuilder::AddDeviceOp(const Event& event, DeviceOpKind kind, CopyDirection direction,
                               int64_t bytes, int64_t correlation, const DeviceOpDetails& details) {
  AddRow(trace_.device_ops, event, kind, event.category, direction, bytes, correlation,
         details.source, details.target, details.launch_config, details.collective);
}

void TraceBuilder::AddApis(const CommonFields& common, ApiKind kind,
                           std::span<const EventTimes> times) {
  PushMany(trace_.api, common, times, std::pair(&ApiTable::kind, kind),
           std::pair(&ApiTable::stack, common.stack));
}

void TraceBuilder::AddDeviceOps(const CommonFields& common, DeviceOpKind kind,
                                CopyDirection direction, int64_t bytes,
                                std::span<const EventTimes> times, const DeviceOpDetails& details) {
  PushMany(trace_.device_ops, common, times, std::pair(&DeviceOpTable::kind, kind),
           std::pair(&DeviceOpTable::direction, direction), std::pair(&DeviceOpTable::bytes, bytes),
           std::pair(&DeviceOpTable::source, details.source),
           std::pair(&DeviceOpTable::target, details.target),
           std::pair(&DeviceOpTable::launch_config, details.launch_config),
           std::pair(&DeviceOpTable::collective, details.collective));
}

void TraceBuilder::AddInstant(const Event& event, char scope, AllocationId allocation) {
  AddRow(trace_.instants, AtOnce(event), event.category, scope, event.stack, allocation);
}

void TraceBuilder::AddCounter(const Event& event) {
  AddRow(trace_.counters, AtOnce(event), event.category);
}

void TraceBuilder::AddFlow(const Event& event, int64_t id, char phase, char bind) {
  AddRow(trace_.flows, AtOnce(event), event.category, id, phase, bind);
}

void TraceBuilder::AddOther(const OtherEvent& event) {
  const TraceTime begin{Clamped(event.begin.ns, quality())};
  trace_.others.push_back({begin, event.json, event.has_time});
}

void TraceBuilder::AddGap(const Gap& gap) {
  const TraceTime begin{Clamped(gap.interval.begin.ns, quality())};
  const TraceTime end{Clamped(gap.interval.end.ns, quality())};
  trace_.gaps.push_back({{begin, std::max(begin, end)}, gap.process, gap.reason, gap.kind});
}

void TraceBuilder::AddOpening(const Opening& opening) {
  if (opening.stack == kNoStack) return;
  const auto key = std::tuple(opening.process, opening.name, opening.stack);
  if (known_openings_.insert(key).second) trace_.openings.push_back(opening);
}

void TraceBuilder::Expect(const ExpectedRows& rows) {
  room_ahead_ = std::make_unique<RoomAhead>();
  const auto expect = [&]<class T>(T& table, size_t more) {
    const size_t count = table.size() + more;
    ForEachColumn(table, [&](auto& column) {
      if constexpr (requires { column.Expect(count); }) {
        column.Expect(count);
      } else {
        ReserveLarge(column, count);
      }
      VisitStored(column, [&](auto& stored) { room_ahead_->Add(stored); });
    });
  };
  expect(trace_.ranges, rows.ranges);
  expect(trace_.api, rows.calls);
  expect(trace_.device_ops, rows.device_ops);
  room_ahead_->Start();
}

void TraceBuilder::ExpectTimes(double times) try {
  const auto rows = [&](size_t now) {
    constexpr double kMost = 1e12;
    return static_cast<size_t>(std::min(static_cast<double>(now) * times, kMost));
  };
  ForEachTable(trace_, [&]<class T>(Table, T& table) {
    ForEachColumn(table, [&](auto& column) {
      if constexpr (requires { column.Expect(0); }) {
        column.Expect(rows(column.size()));
      } else {
        ReserveLarge(column, rows(column.size()));
      }
    });
  });
  trace_.args.ExpectTimes(times);
} catch (const std::bad_alloc&) {
  // More than there is: what has no room yet grows step by step.
}

size_t TraceBuilder::size_bytes() const {
  constexpr size_t kTrackBytes = 400;  // with its hash table and its process, measured
  constexpr size_t kConfigNodeBytes = sizeof(LaunchConfig) + 40;  // in launch_config_of_
  size_t bytes = trace_.strings.size_bytes() + trace_.name_facts.size_bytes() +
                 trace_.args.size_bytes() + trace_.stacks.size_bytes();
  ForEachTable(trace_, [&]<class T>(Table, const T& table) {
    ForEachColumn(table, [&](const auto& column) { bytes += StoredBytes(column); });
    bytes += table.begin.capacity() * sizeof(Row);  // what is computed of each row
  });
  return bytes + trace_.others.capacity() * sizeof(OtherEvent) +
         trace_.launch_configs.capacity() * (sizeof(LaunchConfig) + kConfigNodeBytes) +
         trace_.collectives.capacity() * sizeof(Collective) +
         trace_.allocations.capacity() * sizeof(Allocation) + trace_.tracks.size() * kTrackBytes +
         trace_.gaps.capacity() * sizeof(Gap) + trace_.openings.capacity() * sizeof(Opening);
}

int64_t TraceBuilder::SortTables(EqualRows equal_rows) {
  const RowOrder by_content(trace_);
  size_t rows = 0;
  int64_t overlaps = 0;
  std::vector<std::pair<size_t, std::function<void()>>> job_of;  // by rows
  ForEachTable(trace_, [&]<class T>(Table, T& table) {
    rows += table.size();
    job_of.emplace_back(table.size(), [&] {
      SortRows(table, trace_.tracks.size());
      if (equal_rows == EqualRows::kByContent) OrderEqualRows(by_content, table);
      if constexpr (std::is_same_v<T, RangeTable>) overlaps = FindParents(table);
    });
  });
  // The longest first: begun last, it would keep one core alone.
  std::stable_sort(job_of.begin(), job_of.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::function<void()>> jobs;
  for (auto& [size, job] : job_of) jobs.push_back(std::move(job));
  constexpr size_t kWorthThreads = 1 << 16;  // rows that take longer to sort than threads to start
  if (rows >= kWorthThreads) {
    RunAll(jobs);
  } else {
    for (const auto& job : jobs) job();
  }
  return overlaps;
}

Trace TraceBuilder::Build(bool rebase, EqualRows equal_rows) && {
  Trace& t = trace_;
  room_ahead_.reset();
  ForEachTable(t, []<class T>(Table, T& table) {
    ForEachStored(table, [](auto& rows) { ReturnRoom(rows); });
  });
  t.args.ReturnRoom();
  if (equal_rows == EqualRows::kByContent) OrderTracks(t);
  const int64_t overlaps = SortTables(equal_rows);
  OrderReferredTo(t);
  CancelPoint();
  t.quality.Count("overlapping_ranges", QualitySeverity::kInfo, overlaps,
                  "ranges of one thread that overlap without nesting");
  JoinLaunches(t);
  JoinSyncs(t);
  JoinQueueFull(t);
  t.name_facts.Cover(t.strings);
  JoinCommunication(t);
  CountMissingRows(t);
  if (rebase) Rebase(t);
  CancelPoint();
  t.extent = Extent(t);
  return std::move(trace_);
}

}  // namespace trainprof
