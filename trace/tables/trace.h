// One rank's trace: columnar tables on one timeline, immutable once TraceBuilder has made it.
//
// Processes > tracks. A track is one line of events in time order: a host thread, or a stream of a
// device. Rows of every table are sorted by (track, begin, longer first), so that a track's rows
// are one contiguous run (`rows_of`) and a parent stands before its children. Times are integer
// nanoseconds since `base_ns`. Intervals are half-open.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "trace/base/ids.h"
#include "trace/base/interval_set.h"
#include "trace/base/names.h"
#include "trace/base/narrow_column.h"
#include "trace/base/rare_column.h"
#include "trace/base/string_table.h"
#include "trace/base/time.h"
#include "trace/base/word_column.h"
#include "trace/tables/allocation.h"
#include "trace/tables/args.h"
#include "trace/tables/collective.h"
#include "trace/tables/launch_config.h"
#include "trace/tables/name_facts.h"
#include "trace/tables/quality.h"
#include "trace/tables/stacks.h"

namespace trainprof {

struct Process {
  int64_t pid = 0;  // as in the source; kineto gives each device a "process" whose pid is its id
  StringId name = kEmptyString;
  StringId labels = kEmptyString;
  int64_t sort_index = 0;

  bool operator==(const Process&) const = default;
};

enum class TrackKind : uint8_t { kThread, kStream, kOther };

// How a stream stands to its context's null stream, whose work waits for that of all blocking
// streams and holds back what comes to them later. The numbers are those of CUpti_ActivityStreamFlag.
enum class StreamOrder : uint8_t { kUnknown, kBlocking, kNonBlocking, kNull };
inline constexpr std::string_view kStreamOrderNames[] = {"unknown", "blocking", "non-blocking",
                                                         "null"};
constexpr std::string_view Name(StreamOrder order) {
  return kStreamOrderNames[static_cast<size_t>(order)];
}

struct Track {
  TrackKind kind = TrackKind::kThread;
  ProcessId process{};
  int64_t tid = 0;  // thread id; the stream's number for kStream
  StringId name = kEmptyString;
  int64_t sort_index = 0;
  // kStream only.
  DeviceId device = kNoDevice;
  StreamOrder order = StreamOrder::kUnknown;
  int32_t priority = 0;  // lower numbers go first

  bool operator==(const Track&) const = default;
};

struct Device {
  int64_t id = 0;  // the source's number, e.g. the CUDA ordinal
  StringId name = kEmptyString;
  int64_t total_memory_bytes = 0;  // 0: unknown, as for the rest
  int32_t compute_major = 0;
  int32_t compute_minor = 0;
  int32_t num_sms = 0;
  StringId uuid = kEmptyString;  // hex
  int64_t memory_bytes_per_second = 0;
  int64_t clock_khz = 0;
  bool is_mig_slice = false;

  bool operator==(const Device&) const = default;
};

using CategoryColumn = WordColumn;
using StackColumn = RareColumn<StackId, kNoStack>;

// The columns that all tables share.
struct EventColumns {
  std::vector<TraceTime> begin;
  NarrowColumn duration;  // ns, >= 0
  std::vector<StringId> name;
  std::vector<TrackId> track;
  RareColumn<ArgsId, kNoArgs> args;
  std::vector<uint32_t> track_begin;  // rows of track t: [track_begin[t], track_begin[t + 1])

  size_t size() const { return begin.size(); }
  [[gnu::always_inline]] TraceTime end(size_t i) const { return begin[i] + Duration{duration[i]}; }
  [[gnu::always_inline]] Interval interval(Row i) const { return {begin[Index(i)], end(Index(i))}; }
  // The rows of one track as a pair of row numbers [first, last).
  std::pair<uint32_t, uint32_t> rows_of(TrackId track) const {
    return {track_begin[Index(track)], track_begin[Index(track) + 1]};
  }
  // Whether a row is something that happened: it is drawn, searched and selected by itself.
  static constexpr bool kHoldsEvents = true;
  static constexpr bool kLasts = true;  // false: all durations are 0
  // Of a described table: whether rows stand on streams, or on threads, whatever a file says of one.
  static constexpr bool kOnStreams = false;
  static auto SharedColumns(auto& t) {
    return std::tie(t.begin, t.duration, t.name, t.track, t.args);
  }
  bool operator==(const EventColumns&) const = default;
};

enum class RangeKind : uint8_t {
  kUserAnnotation,  // NVTX, record_function, ProfilerStep
  kCpuOp,           // aten::..., autograd::engine::...
  kPythonFunction,
  kOverhead,       // the profiler's own work
  kGpuAnnotation,  // a user annotation projected on a stream; not device work
  kDeviceRow,      // something on a stream whose kind is not known: perhaps device work
  kOther,
};

// What host threads did: nested ranges.
struct RangeTable : EventColumns {
  std::vector<RangeKind> kind;
  CategoryColumn category;  // the source's own word; an NVTX domain
  StackColumn stack;        // of a Python function: its own frame alone
  std::vector<Row> parent;  // the closest enclosing range on the track, or kNoRow

  static constexpr std::string_view kTitle = "range";
  static auto OwnColumns(auto& t) { return std::tie(t.kind, t.category, t.stack); }
  bool operator==(const RangeTable&) const = default;
};

// Runtime and driver calls on host threads.
struct ApiTable : EventColumns {
  std::vector<ApiKind> kind;
  CategoryColumn category;
  NarrowColumn correlation;
  StackColumn stack;
  RareColumn<int64_t, 0> queue_full_ns;  // how long it waited for room in a device's queue

  static constexpr std::string_view kTitle = "call of the host";
  static auto OwnColumns(auto& t) { return std::tie(t.kind, t.category, t.correlation, t.stack); }
  bool operator==(const ApiTable&) const = default;
};

enum class DeviceOpKind : uint8_t { kKernel, kCopy, kMemset };

// What devices did, on stream tracks.
struct DeviceOpTable : EventColumns {
  std::vector<DeviceOpKind> kind;
  CategoryColumn category;
  std::vector<CopyDirection> direction;  // copies; kUnknown otherwise
  NarrowColumn bytes;                    // copies and memsets; 0 for kernels or when unknown
  NarrowColumn correlation;
  std::vector<MemoryKind> source;  // copies: what they read; kUnknown otherwise
  std::vector<MemoryKind> target;  // copies and memsets: what they write
  std::vector<LaunchConfigId> launch_config;
  RareColumn<CollectiveId, kNoCollective> collective;
  std::vector<Row> launch;  // row of `api` that issued it (same process group, same correlation)

  static constexpr std::string_view kTitle = "device operation";
  static auto OwnColumns(auto& t) {
    return std::tie(t.kind, t.category, t.direction, t.bytes, t.correlation, t.source, t.target,
                    t.launch_config, t.collective);
  }
  // Whether a copy's source or target, or a memset's, is memory of that kind.
  bool Uses(size_t row, MemoryKind memory) const {
    return source[row] == memory || target[row] == memory;
  }
  bool operator==(const DeviceOpTable&) const = default;
};

// The numbers are those of CUpti_ActivitySynchronizationType, but for the last two.
enum class SyncKind : uint8_t {
  kUnknown,
  kEvent,         // the host waits for an event
  kStreamWaits,   // a stream waits for an event
  kStream,        // the host waits for a stream
  kContext,       // the host waits for all streams of a context
  kEventRecord,   // no wait: an event is recorded
  kHostFunction,  // a stream waits for a function that a thread of the host runs meanwhile
};
inline constexpr std::string_view kSyncKindNames[] = {
    "Unknown",      "Event Sync",   "Stream Wait Event", "Stream Sync",
    "Context Sync", "Event Record", "Host Function"};
constexpr std::string_view Name(SyncKind kind) { return kSyncKindNames[static_cast<size_t>(kind)]; }

// Synchronisation rows that the device side reports (cuda_sync), on stream tracks. What is not
// known of the numbers is kNoCorrelation.
struct SyncTable : EventColumns {
  std::vector<StringId> category;
  std::vector<int64_t> correlation;
  std::vector<SyncKind> kind;
  std::vector<int64_t> context;
  std::vector<int64_t> waited_event;   // its number within the context
  std::vector<int64_t> waited_stream;  // on which the event was recorded
  std::vector<int64_t> waited_device;  // whose stream that is, as Device::id
  std::vector<int64_t> waited_record;  // correlation of the call that recorded it
  std::vector<int64_t> waited_thread;  // that runs the host function
  // Of the api rows: the call that waited, or asked the stream to; the one that recorded the event.
  std::vector<Row> call;
  std::vector<Row> record;
  // The stream waited for: its own of a wait for a stream, the event's; kNoTrack where it is not
  // known, all of a context, or none, but the host.
  std::vector<TrackId> awaited;

  static constexpr std::string_view kTitle = "sync";
  static constexpr bool kOnStreams = true;
  static constexpr std::string_view kColumns[] = {"category", "correlation"};
  static auto OwnColumns(auto& t) {
    return std::tie(t.category, t.correlation, t.kind, t.context, t.waited_event, t.waited_stream,
                    t.waited_device, t.waited_record, t.waited_thread);
  }
  bool operator==(const SyncTable&) const = default;
};

// Points in time: marks, allocations.
struct InstantTable : EventColumns {
  CategoryColumn category;
  std::vector<char> scope;  // Chrome's 's': 'g', 'p', 't'; 0 when absent
  StackColumn stack;
  RareColumn<AllocationId, kNoAllocation> allocation;

  static constexpr std::string_view kTitle = "point in time";
  static constexpr bool kLasts = false;
  static auto OwnColumns(auto& t) { return std::tie(t.category, t.scope, t.stack, t.allocation); }
  bool operator==(const InstantTable&) const = default;
};

// What a thread did when its stack was read.
enum class ThreadState : uint8_t { kUnknown, kRunning, kWaiting, kGil };
inline constexpr std::string_view kThreadStateNames[] = {"unknown", "running", "waiting",
                                                         "waiting for the GIL"};
constexpr std::span<const std::string_view> NamesOf(ThreadState) { return kThreadStateNames; }

// Where threads of the host were when somebody looked; named by the innermost function.
struct SampleTable : EventColumns {
  std::vector<StringId> category;
  std::vector<ThreadState> state;
  std::vector<StackId> stack;
  std::vector<int64_t> weight_ns;  // how long the thread was there, as the source says

  // The same, within bounds: a file may say nothing, or anything. No sampler looks less often than
  // that, and sums of so many as fit into memory stay within an int64_t.
  static constexpr int64_t kMostWeightNs = 60'000'000'000;
  int64_t WeightNs(size_t row) const {
    return std::clamp<int64_t>(weight_ns[row], 0, kMostWeightNs);
  }

  static constexpr std::string_view kTitle = "stack sample";
  static constexpr bool kLasts = false;
  static constexpr std::string_view kColumns[] = {"category", "state", "stack", "weight_ns"};
  static auto OwnColumns(auto& t) { return std::tie(t.category, t.state, t.stack, t.weight_ns); }
  bool operator==(const SampleTable&) const = default;
};

// What threads that step used of the CPU since the look before, by the system's account. Where a thread had
// less of the CPU than time went by, and was never interrupted, it waited all the rest; where it never
// waited, it was preempted all the rest.
struct CpuTimeTable : EventColumns {
  std::vector<StringId> category;
  std::vector<int64_t> wall_ns;  // since the look before
  std::vector<int64_t> cpu_ns;
  std::vector<int64_t> waits;          // how often the thread gave the CPU up
  std::vector<int64_t> interruptions;  // how often it was taken from the thread

  static constexpr std::string_view kTitle = "CPU time";
  static constexpr bool kHoldsEvents = false;
  static constexpr bool kLasts = false;
  static constexpr std::string_view kColumns[] = {"category", "wall_ns", "cpu_ns", "waits",
                                                  "interruptions"};
  static auto OwnColumns(auto& t) {
    return std::tie(t.category, t.wall_ns, t.cpu_ns, t.waits, t.interruptions);
  }
  bool operator==(const CpuTimeTable&) const = default;
};

// Counter samples; the values are the args.
struct CounterTable : EventColumns {
  CategoryColumn category;

  static constexpr std::string_view kTitle = "counter sample";
  static constexpr bool kHoldsEvents = false;
  static constexpr bool kLasts = false;
  static auto OwnColumns(auto& t) { return std::tie(t.category); }
  bool operator==(const CounterTable&) const = default;
};

// Ends of arrows between tracks.
struct FlowTable : EventColumns {
  CategoryColumn category;
  NarrowColumn id;
  std::vector<char> phase;  // 's' start, 't' step, 'f' finish
  std::vector<char> bind;   // 'e' when the source says bp:"e", else 0

  static constexpr std::string_view kTitle = "end of an arrow";
  static constexpr bool kHoldsEvents = false;
  static constexpr bool kLasts = false;
  static auto OwnColumns(auto& t) { return std::tie(t.category, t.id, t.phase, t.bind); }
  bool operator==(const FlowTable&) const = default;
};

// Events that fit no other table (async b/n/e, object events, ...): kept as raw JSON, for export.
struct OtherEvent {
  TraceTime begin;
  StringId json = kEmptyString;  // with a time: begins with {"ts":null, which stands for `begin`
  bool has_time = false;

  bool operator==(const OtherEvent&) const = default;
};

// What a gap leaves out: everything, or what devices did and the calls that asked for it.
enum class GapKind : uint8_t { kAll, kDevice };

// A stretch of time in which a process did not record, on purpose.
struct Gap {
  Interval interval;
  ProcessId process{};
  StringId reason = kEmptyString;  // "window", "size bound", "torch.profiler"
  GapKind kind = GapKind::kAll;

  bool operator==(const Gap&) const = default;
};

// Where a row stands: which table of a rank, and which row of it.
enum class Table : uint8_t {
  kRanges,
  kApi,
  kDeviceOps,
  kSyncs,
  kInstants,
  kCounters,
  kFlows,
  kSamples,
  kCpuTimes,
  // Not of the trace but of what an analysis makes of it.
  kIdle,   // a segment of a device's idle time
  kBusy,   // a segment of a device's busy time
  kSteps,  // a step's span
};

// Of kKineto and kChrome the rows carry a JSON file's own words and arguments.
enum class SourceKind : uint8_t { kRecording, kKineto, kChrome, kOther };

struct Trace {
  SourceKind source = SourceKind::kOther;
  std::string format;  // of kOther: its importer's slug
  std::string path;    // where it was read from
  int64_t rank = 0;
  bool rank_known = false;
  int64_t world_size = 1;
  int64_t base_ns = 0;  // what time 0 is in the source's own clock
  Interval extent;      // first begin to last end over ranges, calls and device operations

  StringTable strings;
  NameFactsTable name_facts;  // of strings
  ArgsTable args;
  StackTable stacks;
  std::vector<Process> processes;
  std::vector<Track> tracks;
  std::vector<Device> devices;
  std::vector<LaunchConfig> launch_configs;  // each once
  std::vector<Collective> collectives;
  std::vector<Allocation> allocations;

  RangeTable ranges;
  ApiTable api;
  DeviceOpTable device_ops;
  SyncTable syncs;
  InstantTable instants;
  CounterTable counters;
  FlowTable flows;
  SampleTable samples;
  CpuTimeTable cpu_times;
  std::vector<OtherEvent> others;
  std::vector<Gap> gaps;
  std::vector<Opening>
      openings;  // each once, by process and name; of one name there may be several

  // Facts about the run and the machine, for the report's "environment" (name, value).
  std::vector<std::pair<std::string, std::string>> environment;
  // Top-level members of an imported JSON file other than the events, raw, for export.
  std::vector<std::pair<std::string, std::string>> source_members;
  Quality quality;

  // In the order of Table.
  static auto Tables(auto& t) {
    return std::tie(t.ranges, t.api, t.device_ops, t.syncs, t.instants, t.counters, t.flows,
                    t.samples, t.cpu_times);
  }
  std::string_view Text(StringId id) const { return strings.View(id); }
  ProcessId ProcessOf(TrackId track) const { return tracks[Index(track)].process; }
  // Null where nothing is known of the launch.
  const LaunchConfig* ConfigOf(Row op) const {
    const LaunchConfigId id = device_ops.launch_config[Index(op)];
    return id == kNoLaunchConfig ? nullptr : &launch_configs[static_cast<size_t>(id)];
  }
  // Null where it is none, or the source does not say which.
  const Collective* CollectiveOf(Row op) const {
    const CollectiveId id = device_ops.collective[Index(op)];
    return id == kNoCollective ? nullptr : &collectives[static_cast<size_t>(id)];
  }
  // Null of any other point in time.
  const Allocation* AllocationOf(Row instant) const {
    const AllocationId id = instants.allocation[Index(instant)];
    return id == kNoAllocation ? nullptr : &allocations[static_cast<size_t>(id)];
  }
  [[gnu::always_inline]] NameFacts Facts(StringId id) const { return name_facts.Of(strings, id); }
};

inline bool HasChromeWords(const Trace& trace) {
  return trace.source == SourceKind::kKineto || trace.source == SourceKind::kChrome;
}

// Each table lists its columns once, and the trace its tables. Whatever is done to all of them
// (sorting, making room, removing, copying, measuring) goes through these two, so that a new column
// or table is not forgotten anywhere. What is computed from sorted rows (track_begin, parent,
// launch, queue_full_ns, a sync's call, record and awaited stream) is not listed.

// Calls visit(column): a std::vector or a Rare-, Word- or NarrowColumn.
template <class T, class Visit>
void ForEachColumn(T& table, Visit visit) {
  const auto each = [&](auto&... columns) { (visit(columns), ...); };
  std::apply(each, EventColumns::SharedColumns(table));
  std::apply(each, T::OwnColumns(table));
}

// The same for those columns alone that take memory: visit(std::vector<...>& rows).
template <class T, class Visit>
void ForEachStored(T& table, Visit visit) {
  ForEachColumn(table, [&](auto& column) { VisitStored(column, visit); });
}

// A table that names columns is described: Chrome's JSON and the inspector need no code that knows
// it (docs/extending.md). The named columns, which stand first, are `category`, the source's own
// word for the row, and what may be a number (int64_t), kNoCorrelation where a row has none, the
// row's stack (StackId), or a value whose names NamesOf() lists, the first one for "not known".
template <class T>
concept DescribedTable = requires {
  T::kColumns;
};

template <class T>
concept NamedValue = requires(T value) {
  NamesOf(value);
};
template <NamedValue T>
constexpr std::string_view NameOf(T value) {
  return NamesOf(value)[static_cast<size_t>(value)];
}

// Calls visit(std::string_view name, std::vector<...>& column) for each named column.
template <class T, class Visit>
requires DescribedTable<std::remove_const_t<T>>
void ForEachNamedColumn(T& table, Visit visit) {
  const auto columns = T::OwnColumns(table);
  [&]<size_t... I>(std::index_sequence<I...>) {
    (visit(T::kColumns[I], std::get<I>(columns)), ...);
  }
  (std::make_index_sequence<std::size(T::kColumns)>());
}

// Calls visit(Table, table).
template <class AnyTrace, class Visit>
void ForEachTable(AnyTrace& trace, Visit visit) {
  uint8_t number = 0;
  std::apply([&](auto&... tables) { (visit(Table{number++}, tables), ...); },
             AnyTrace::Tables(trace));
}

// The same for tables of events alone.
template <class AnyTrace, class Visit>
void ForEachEventTable(AnyTrace& trace, Visit visit) {
  ForEachTable(trace, [&](Table number, auto& table) {
    if constexpr (std::decay_t<decltype(table)>::kHoldsEvents) visit(number, table);
  });
}

// The shared columns of a table of events; null for any other.
inline const EventColumns* ColumnsOf(const Trace& trace, Table table) {
  const EventColumns* found = nullptr;
  ForEachEventTable(trace, [&](Table each, const EventColumns& columns) {
    if (each == table) found = &columns;
  });
  return found;
}

// Whether events of the table have a length.
inline bool Lasts(const Trace& trace, Table table) {
  bool lasts = false;
  ForEachEventTable(trace, [&]<class T>(Table each, const T&) {
    if (each == table) lasts = T::kLasts;
  });
  return lasts;
}

}  // namespace trainprof
