// Builds a Trace from events in any order: sorts each table by (track, begin, longer first), finds
// parents, joins device operations to the calls that launched them, and counts what does not fit.
//
//   TraceBuilder builder;
//   ProcessId process = builder.FindOrAddProcess(4711);
//   TrackId thread = builder.FindOrAddThread(process, 4711);
//   builder.AddRange({.begin = TraceTime{0}, .end = TraceTime{10}, .name = builder.Intern("step"),
//                     .track = thread}, RangeKind::kUserAnnotation);
//   Trace trace = std::move(builder).Build();
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

#include "trace/base/large_columns.h"
#include "trace/symbols/user_frames.h"
#include "trace/tables/trace.h"

namespace trainprof {

// The fields that every event has. `end` is ignored for points in time.
struct Event {
  TraceTime begin;
  TraceTime end;
  StringId name = kEmptyString;
  TrackId track{};
  StringId category = kEmptyString;
  ArgsId args = kNoArgs;
  StackId stack = kNoStack;  // of ranges, calls and points in time
};

// Many events that differ in this alone, and what they have in common.
struct EventTimes {
  TraceTime begin;
  TraceTime end;
  int64_t correlation = kNoCorrelation;
};
struct CommonFields {
  StringId name = kEmptyString;
  TrackId track{};
  StringId category = kEmptyString;
  ArgsId args = kNoArgs;
  StackId stack = kNoStack;
};

// What a device operation may lack.
struct DeviceOpDetails {
  MemoryKind source = MemoryKind::kUnknown;
  MemoryKind target = MemoryKind::kUnknown;
  LaunchConfigId launch_config = kNoLaunchConfig;
  CollectiveId collective = kNoCollective;
};

// How many rows are to come, about.
struct ExpectedRows {
  size_t ranges = 0;
  size_t calls = 0;
  size_t device_ops = 0;
};

// How rows of one track stand that begin and end together: as they came, where the source's order
// means something, or by what they say (trace/build/canonical_order.h).
enum class EqualRows : uint8_t { kAsTheyCame, kByContent };

class TraceBuilder {
 public:
  // Header fields (source, path, rank, environment, quality, ...) are set here directly; the tables
  // are filled through the Add functions only.
  Trace& trace() { return trace_; }
  StringId Intern(std::string_view text) { return trace_.strings.Intern(text); }
  ArgsId AddArgs(std::span<const Arg> args) { return trace_.args.Add(args); }
  LaunchConfigId FindOrAddLaunchConfig(const LaunchConfig& config);
  CollectiveId AddCollective(const Collective& collective);
  AllocationId AddAllocation(const Allocation& allocation);
  Quality& quality() { return trace_.quality; }
  // What a name says, kept for the trace that is built.
  NameFacts Facts(StringId name) {
    if (Index(name) >= trace_.name_facts.covered()) trace_.name_facts.Cover(trace_.strings);
    return trace_.Facts(name);
  }
  // Whether a frame is the user's is decided here, once for each.
  FrameId AddFrame(const FrameText& frame);
  // Frames of that file, from here on, have the name that their user knows it by.
  void NameFile(std::string_view file, std::string_view name);
  StackId AddStack(FrameId frame, StackId caller) { return trace_.stacks.Add(frame, caller); }

  ProcessId FindOrAddProcess(int64_t pid);
  TrackId FindOrAddThread(ProcessId process, int64_t tid);
  // A track of device `device_id` (added when new): stream `stream` in the source's `process`. A
  // thread and a stream of the same number are two tracks: kineto's device 0 and its pid 0 share
  // them; so are streams of one number on two devices.
  TrackId FindOrAddStream(ProcessId process, int64_t device_id, int64_t stream);
  // The same for a stream whose device is not known yet; a new one gets kNoDevice.
  TrackId FindOrAddStream(ProcessId process, int64_t stream);
  DeviceId FindOrAddDevice(int64_t device_id);
  // kNoProcess, kNoTrack when there is none.
  ProcessId FindProcess(int64_t pid) const;
  TrackId FindThread(ProcessId process, int64_t tid) const;
  TrackId FindStream(ProcessId process, int64_t stream) const;
  Process& process(ProcessId id) { return trace_.processes[Index(id)]; }
  Track& track(TrackId id) { return trace_.tracks[Index(id)]; }
  Device& device(DeviceId id) { return trace_.devices[Index(id)]; }

  // end < begin is stored as begin and counted (negative_duration); a time beyond +-146 years is
  // clamped and counted (time_out_of_range), so that differences of stored times never overflow.
  void AddRange(const Event& event, RangeKind kind);
  void AddApi(const Event& event, ApiKind kind, int64_t correlation);
  void AddDeviceOp(const Event& event, DeviceOpKind kind, CopyDirection direction, int64_t bytes,
                   int64_t correlation, const DeviceOpDetails& details = {});
  // The same for many at once.
  void AddApis(const CommonFields& common, ApiKind kind, std::span<const EventTimes> times);
  void AddDeviceOps(const CommonFields& common, DeviceOpKind kind, CopyDirection direction,
                    int64_t bytes, std::span<const EventTimes> times,
                    const DeviceOpDetails& details = {});
  void AddInstant(const Event& event, char scope, AllocationId allocation = kNoAllocation);
  void AddCounter(const Event& event);
  void AddFlow(const Event& event, int64_t id, char phase, char bind);
  // Any table of trace(): `own` are the values of its OwnColumns, in their order.
  template <class T, class... Own>
  void AddRow(T& table, const Event& event, Own... own) {
    PushTimes(table, event.begin, event.end);
    table.name.push_back(event.name);
    table.track.push_back(event.track);
    table.args.push_back(event.args);
    std::apply([&](auto&... column) { (column.push_back(own), ...); }, T::OwnColumns(table));
  }
  void AddOther(const OtherEvent& event);
  void AddGap(const Gap& gap);
  void AddOpening(const Opening& opening);  // without a stack, or there already: not
  // Makes room, so that tables of millions of rows need not grow step by step.
  void Expect(const ExpectedRows& rows);
  // All tables will have about so many times the rows that they have now. Memory is taken only as
  // rows are written: a guess may be too high or too low.
  void ExpectTimes(double times);
  // About how much memory the tables take. O(tables).
  size_t size_bytes() const;

  // Sorts (several tables at a time), joins, checks. O(n log n), O(n) per track that came in order.
  // Times are shifted so that
  // the earliest is 0 when `rebase` is set; base_ns then moves with them. With
  // EqualRows::kByContent tracks are numbered anew, too: nothing depends on the order of arrival.
  // Can be cancelled.
  Trace Build(bool rebase = false, EqualRows equal_rows = EqualRows::kAsTheyCame) &&;

 private:
  // Threads and streams of one process are told apart by the key's lowest bit.
  static uint64_t TrackKey(ProcessId process, TrackKind kind) {
    return uint64_t{Index(process)} << 1 | (kind == TrackKind::kStream ? 1u : 0u);
  }
  TrackId FindTrack(ProcessId process, TrackKind kind, int64_t number) const;
  void PushTimes(EventColumns& table, TraceTime begin, TraceTime end);
  template <class T, class... Own>
  void PushMany(T& table, const CommonFields& common, std::span<const EventTimes> times,
                Own... own);
  // Returns how many ranges overlap others.
  int64_t SortTables(EqualRows equal_rows);

  Trace trace_;
  std::unordered_map<StringId, StringId> file_names_;
  std::unordered_map<int64_t, ProcessId> process_of_pid_;
  std::unordered_map<uint64_t, std::unordered_map<int64_t, TrackId>> track_of_;
  // Streams whose number another device of the process had first.
  std::map<std::tuple<ProcessId, DeviceId, int64_t>, TrackId> stream_of_;
  std::unordered_map<int64_t, DeviceId> device_of_;
  struct HashConfig {
    size_t operator()(const LaunchConfig& config) const;
  };
  std::unordered_map<LaunchConfig, LaunchConfigId, HashConfig> launch_config_of_;
  std::set<std::tuple<ProcessId, StringId, StackId>> known_openings_;
  std::array<LaunchConfigId, 256> recent_configs_{};  // by a short hash
  std::unique_ptr<RoomAhead> room_ahead_;
};

}  // namespace trainprof
