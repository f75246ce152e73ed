// Puts the rows of one segment (rows.h) into a rank's trace: what devices did, and the calls that
// asked for it. Names of kinds and arguments are Kineto's, so that rules and exports need to know
// one vocabulary.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "trace/build/trace_builder.h"
#include "trace/recording/read/call_stacks.h"
#include "trace/recording/read/correlation_set.h"
#include "trace/recording/segments/segment_reader.h"
#include "trace/recording/segments/segment_scan.h"
#include "trace/recording/wire/rows.h"

namespace trainprof::recording {

class DeviceDecoder {
 public:
  // Keeps references. Adds the segment's devices to the trace, which has its gaps.
  DeviceDecoder(const SegmentInfo& info, const SegmentScan& scan, HostTime base, ProcessId process,
                CallStacks& stacks, TraceBuilder& builder);

  // One chunk of rows, with all strings of its writer. False: its rows are none of ours.
  bool Add(const Chunk& chunk, const RowRuns& runs, const WriterStrings& names);
  // After a writer's last chunk.
  void EndWriter();
  // After the last writer: what needs all rows, and what was lost. `end`: the last time seen in the
  // segment.
  void Finish(TraceTime end);

  bool any() const { return device_rows_ + call_rows_ > 0; }

 private:
  static constexpr StringId kUnnamed{UINT32_MAX};
  // A row that was salvaged from a killed process may be there twice.
  using RowKey = std::tuple<int, int64_t, int64_t, uint32_t, uint32_t, uint32_t, uint64_t>;
  static RowKey KeyOf(const DeviceRow& row);
  static RowKey KeyOf(const CallRow& row);
  struct EventRecord {  // cudaEventRecord, as a wait refers to it
    uint32_t correlation = 0;
    uint32_t stream = 0;
    uint32_t device = 0;
  };
  struct Launch {
    TraceTime begin;
    uint32_t correlation = 0;
    TrackId thread{};
    bool of_graph = false;
  };

  // Rows of a chunk that look the same.
  struct Run {
    std::span<const int64_t> begin_ns;
    std::span<const int64_t> end_ns;
    std::span<const uint32_t> correlation;

    size_t size() const { return begin_ns.size(); }
    template <class RowType>
    void Fill(size_t i, RowType& row) const {
      row.begin_ns = begin_ns[i];
      row.end_ns = end_ns[i];
      row.correlation = correlation[i];
    }
  };
  template <class RowType, class Visit>
  bool ForEachRun(const Chunk& chunk, const RowRuns& runs, std::optional<RowType>& last,
                  Visit visit);
  template <class RowType>
  bool IsRepeated(const RowType& row) const {
    return earlier_correlations_.Contains(row.correlation) && earlier_.contains(KeyOf(row));
  }
  // What rows have in common that differ in their times and correlation alone: a kernel's or a
  // call's, as far as it is known.
  struct Look {
    CommonFields common{.name = kUnnamed};
    LaunchConfigId launch_config = kNoLaunchConfig;
    ApiKind kind{};
    CaptureEdge capture{};
    bool launches_host_function = false;
    bool name_is_lost = false;
  };

  DeviceId FindOrAddDevice(const ScannedDevice& found);
  DeviceId DeviceOf(uint32_t ordinal);
  void AddDeviceRow(const DeviceRow& row, const WriterStrings& names);
  bool CountDeviceWork(const DeviceRow& row);
  bool SpansAPausesEnd(const DeviceRow& row);
  // `row` has the look of all rows of the run; its times are written over.
  void AddKernels(Look& look, DeviceRow& row, const Run& run, const WriterStrings& names);
  LaunchConfigId ConfigOf(const DeviceRow& row);
  LaunchConfigId ConfigOfKernel(const DeviceRow& row);
  void AddCopy(const DeviceRow& row);
  void AddRareCopyArgs(const DeviceRow& row, int64_t bytes);
  void AddMemset(const DeviceRow& row);
  void AddGraph(const DeviceRow& row);
  void AddOverhead(const DeviceRow& row);
  void AddSync(const DeviceRow& row);
  EventRecord RecordWaitedFor(const DeviceRow& wait) const;
  void AddMemory(const DeviceRow& row);
  void AddCalls(Look& look, CallRow& row, const Run& run, const WriterStrings& names);
  // It will be that row of api.
  void NoteCall(const CallRow& row, const Look& look, size_t place);
  std::vector<Launch> Launches() const;
  int64_t TakeCaptured(std::vector<Launch>& launches) const;
  void NoteFailure(StringId call, uint32_t result, size_t calls);
  ArgsId CallArgs(const CallRow& row);
  void AddDeviceOp(const DeviceRow& row, StringId name, DeviceOpKind kind, CopyDirection direction,
                   int64_t bytes, const DeviceOpDetails& details);
  void AddFacts();
  void CountLosses();
  void CountOddities();
  void CountFailedCalls();
  void CountMissingKernels();
  void CountUntimedHostFunctions();
  void AddGap(TraceTime begin, TraceTime end);
  std::string CauseOfMissingKernels() const;
  std::string Fact(const char* name) const;
  int64_t CuptiVersion() const;  // its own number, e.g. 130301; 0 where it is not recorded

  TrackId Stream(uint32_t device, uint32_t context, uint32_t stream);
  // Any number: the builder clamps what is no time.
  TraceTime At(int64_t monotonic_ns) const {
    return {static_cast<int64_t>(static_cast<uint64_t>(monotonic_ns) -
                                 static_cast<uint64_t>(base_.ns))};
  }
  static int64_t CorrelationOf(uint32_t correlation) {
    return correlation == 0 ? kNoCorrelation : int64_t{correlation};
  }
  template <class RowType>
  EventTimes TimesOf(const RowType& row) const {
    return {At(row.begin_ns), At(std::max(row.begin_ns, row.end_ns)),
            CorrelationOf(row.correlation)};
  }
  Event EventOf(const DeviceRow& row, StringId name, TrackId track);
  StringId NameOf(uint32_t id, const WriterStrings& names, bool* is_lost);
  void CountLostNames(size_t rows);
  void CountWiped(size_t rows);
  StringId KernelName(StringId mangled);
  void Arg(std::string_view key, int64_t value);
  void Arg(std::string_view key, double value);
  void Arg(std::string_view key, StringId value);
  ArgsId TakeArgs();
  double OccupancyOf(const DeviceRow& row) const;

  const SegmentInfo& info_;
  const SegmentScan& scan_;
  const HostTime base_;
  const ProcessId process_;
  CallStacks& stacks_;
  TraceBuilder& builder_;

  std::map<uint32_t, DeviceId> device_of_ordinal_;
  std::map<std::tuple<uint32_t, uint32_t>, TrackId> stream_of_;  // ordinal, stream
  std::unordered_map<StringId, StringId> demangled_;
  std::vector<Look> looks_;        // of the chunk that is being added
  std::vector<EventTimes> times_;  // of the run that is being added
  std::map<std::tuple<uint8_t, MemoryKind, MemoryKind>, StringId> copy_names_;  // by detail
  std::vector<trainprof::Arg> args_;

  std::vector<DeviceRow> syncs_;
  std::vector<DeviceRow> memory_;
  std::map<uint64_t, EventRecord> event_of_sync_;  // by sync id
  std::map<std::pair<uint32_t, uint32_t>, std::map<uint32_t, EventRecord>>
      events_;                                                 // (event, context), then correlation
  std::map<std::pair<uint32_t, bool>, int64_t> memory_total_;  // by ordinal; of the host or not
  std::map<uint32_t, uint32_t> allocating_thread_;             // correlation -> tid
  const uint32_t first_call_;                                  // row of api
  CorrelationSet launched_;                                    // calls that start work on a device
  std::vector<uint32_t> failed_launches_;                      // rows of api
  std::vector<Launch> host_launches_;                          // that start a host function
  CorrelationSet answered_;                                    // what devices did
  CorrelationSet host_functions_;                              // that have their time
  CorrelationSet in_flight_;  // what they did when the program ended

  std::optional<DeviceRow> last_device_row_;  // of the present writer
  std::optional<CallRow> last_call_;
  std::set<RowKey> earlier_;
  CorrelationSet earlier_correlations_;  // which few rows can be in it
  uint64_t device_rows_ = 0;
  uint64_t call_rows_ = 0;
  uint64_t zero_start_ = 0;
  uint64_t reversed_ = 0;
  uint64_t straddling_ = 0;
  std::vector<Interval> pauses_;        // in which devices are not recorded
  int64_t last_device_ns_ = INT64_MIN;  // the latest end of a row
  int64_t last_call_ns_ = INT64_MIN;
  // Calls that begin (+1) or end (-1) a capture, by correlation.
  std::map<uint32_t, int64_t> capture_edges_;
  uint64_t sync_calls_ = 0;                                   // that wait for a device
  std::map<std::pair<StringId, uint32_t>, size_t> failures_;  // by call and result
};

}  // namespace trainprof::recording
