#include "trace/recording/read/reader.h"

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <optional>

#include "trace/base/utf8.h"
#include "trace/build/trace_builder.h"
#include "trace/formats/io/memory_limit.h"
#include "trace/recording/files/clock_log.h"
#include "trace/recording/files/host_file.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/read/host_counters.h"
#include "trace/recording/read/segment_decoder.h"
#include "trace/recording/read/tick_converter.h"
#include "trace/recording/segments/segment_reader.h"
#include "trace/recording/segments/segment_scan.h"
#include "trace/recording/wire/facts.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

// Of a rank, or of a process without one: what its files' headers and directories say.
struct OpenedFolder {
  RankFolder folder;
  std::vector<SegmentReader> segments;
  Quality quality;
  std::string first_error;
};

// A machine, until its next boot, and a clock: what samples can be pooled over.
using ClockKey = std::pair<std::string, ClockKind>;

struct Recording {
  fs::path run_dir;  // empty: segments without one
  std::optional<ControlInfo> control;
  std::vector<OpenedFolder> folders;
  std::map<ClockKey, std::vector<ClockSample>> clocks;  // by ticks
  HostSamples host;
  std::vector<std::string> errors;  // of files that concern all ranks
};

Error NotEnoughMemory(const fs::path& path) {
  return {path.string() + ": takes more than the " + std::to_string(ReadableMemoryBytes() >> 20) +
          " MiB of memory that it may take. Read one of its ranks, or read it on a machine with "
          "more memory"};
}

ClockKey KeyOf(const SegmentInfo& info) { return {info.boot_id, info.clock_kind}; }

// So many segments keep their file open from the begin to their decoding, so that one which is
// sealed meanwhile is read as it was.
constexpr size_t kMostOpenFiles = 64;

Result<SegmentReader> OpenSegment(fs::path path, Quality& quality) {
  std::error_code error;
  // Sealed since the folder was listed.
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) {
    path.replace_extension(kSealedSuffix);
  }
  return SegmentReader::Open(path, quality);
}

OpenedFolder OpenSegmentsOf(RankFolder folder, size_t& open_files) {
  OpenedFolder opened;
  if (!folder.error.empty()) {
    opened.quality.Count("unreadable_segment", QualitySeverity::kDataLoss, 1, folder.error);
    opened.first_error = folder.error;
  }
  for (const fs::path& path : folder.segments) {
    Result<SegmentReader> segment = OpenSegment(path, opened.quality);
    if (!segment.ok()) {
      opened.quality.Count("unreadable_segment", QualitySeverity::kDataLoss, 1, segment.error());
      if (opened.first_error.empty()) opened.first_error = segment.error();
      continue;
    }
    if (open_files == 0) {
      segment.value().CloseFile();
    } else {
      --open_files;
    }
    opened.segments.push_back(std::move(segment).value());
  }
  opened.folder = std::move(folder);
  return opened;
}

bool ComesBefore(const ClockSample& a, const ClockSample& b) { return a.ticks < b.ticks; }

// The samples that are known before any record is read: those of headers and directories, and the
// supervisor's.
void PoolClocks(Recording& recording) {
  for (const OpenedFolder& folder : recording.folders) {
    for (const SegmentReader& segment : folder.segments) {
      const SegmentInfo& info = segment.info();
      std::vector<ClockSample>& samples = recording.clocks[KeyOf(info)];
      samples.push_back(info.opened);
      if (info.clean_exit) samples.push_back(info.closed);
      for (const Chunk& chunk : segment.chunks()) samples.push_back(chunk.opened);
    }
  }
  // The supervisor runs on the machine of the ranks, and does not name it: its samples serve where
  // there is one machine only, or TickConverter sets them aside as contradicting.
  const ClockLogContents log = ReadClockLog(recording.run_dir);
  for (auto& [key, samples] : recording.clocks) {
    const bool is_alone = recording.clocks.size() == 1;
    if (is_alone && log.kind == key.second) {
      samples.insert(samples.end(), log.clocks.begin(), log.clocks.end());
    }
    if (is_alone && recording.control && recording.control->clock_kind == key.second) {
      samples.push_back(recording.control->created);
    }
    std::stable_sort(samples.begin(), samples.end(), ComesBefore);
  }
}

// A folder's clocks: each machine's samples, and those among the folder's own records. Ranks of one
// machine differ by less than TickConverter::Error().
std::map<ClockKey, TickConverter> ClocksOf(const Recording& recording, const OpenedFolder& folder,
                                           const std::vector<SegmentScan>& scans) {
  std::map<ClockKey, std::vector<ClockSample>> own;
  for (size_t i = 0; i < scans.size(); ++i) {
    std::vector<ClockSample>& samples = own[KeyOf(folder.segments[i].info())];
    samples.insert(samples.end(), scans[i].clocks.begin(), scans[i].clocks.end());
  }
  std::map<ClockKey, TickConverter> clocks;
  for (auto& [key, samples] : own) {
    std::stable_sort(samples.begin(), samples.end(), ComesBefore);
    const std::vector<ClockSample>& pooled = recording.clocks.at(key);
    std::vector<ClockSample> all(pooled.size() + samples.size());
    std::merge(pooled.begin(), pooled.end(), samples.begin(), samples.end(), all.begin(),
               ComesBefore);
    clocks.emplace(key, TickConverter(key.second, std::move(all)));
  }
  return clocks;
}

// Time 0 of all traces of a run: when it was created, else its first segment.
ClockSample BaseOf(const Recording& recording) {
  if (recording.control && recording.control->created.monotonic_ns > 0) {
    return recording.control->created;
  }
  ClockSample base{0, INT64_MAX, 0, 0};
  for (const OpenedFolder& folder : recording.folders) {
    for (const SegmentReader& segment : folder.segments) {
      const ClockSample& opened = segment.info().opened;
      if (opened.monotonic_ns < base.monotonic_ns) base = opened;
    }
  }
  return base.monotonic_ns == INT64_MAX ? ClockSample{} : base;
}

void AddEnvironment(const OpenedFolder& folder, const std::map<ClockKey, TickConverter>& clocks,
                    Trace& trace) {
  if (folder.segments.empty()) return;
  const SegmentInfo& info = folder.segments.front().info();
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) trace.environment.emplace_back(name, std::move(value));
  };
  bool repaired = false;
  add(fact::kHost, RepairUtf8(info.host, &repaired));
  add(fact::kCommand, RepairUtf8(info.command, &repaired));
  add(fact::kRecordingOptions, RepairUtf8(info.options, &repaired));
  add(fact::kProcesses, std::to_string(folder.segments.size()));
  const TickConverter& clock = clocks.at(KeyOf(info));
  add(fact::kClock,
      std::string(info.clock_kind == ClockKind::kTsc ? "time stamp counter" : "CLOCK_MONOTONIC") +
          ", error at most " + std::to_string(clock.Error().ns) + " ns");
}

// Who gets which samples of the host: the folders, in their order.
std::vector<HostAudience> AudiencesOf(const std::vector<OpenedFolder>& folders) {
  std::vector<HostAudience> audiences;
  for (const OpenedFolder& folder : folders) {
    HostAudience& audience = audiences.emplace_back();
    audience.rank = folder.folder.rank;
    for (const SegmentReader& segment : folder.segments) {
      const SegmentInfo& info = segment.info();
      audience.boot_id = info.boot_id;
      audience.processes.emplace_back(info.pid, info.process_start);
    }
  }
  return audiences;
}

void CountRunLosses(const Recording& recording, Trace& trace) {
  for (const std::string& error : recording.errors) {
    trace.quality.Count("unreadable_file", QualitySeverity::kWarning, 1, error);
  }
  if (!recording.control || recording.control->failed_processes == 0) return;
  trace.quality.Count("process_not_recorded", QualitySeverity::kDataLoss,
                      recording.control->failed_processes, recording.control->failure);
  trace.quality.Count("dropped_events", QualitySeverity::kDataLoss,
                      static_cast<int64_t>(recording.control->lost_events),
                      "of processes that could not open a segment");
}

ExpectedRows RowsOf(const OpenedFolder& folder, const std::vector<SegmentScan>& scans) {
  ExpectedRows all;
  for (size_t i = 0; i < scans.size(); ++i) {
    const ExpectedRows rows = recording::RowsOf(folder.segments[i], scans[i]);
    all.ranges += rows.ranges;
    all.calls += rows.calls;
    all.device_ops += rows.device_ops;
  }
  return all;
}

// Tells how far a folder is: its records are read twice, its rows once.
class Meter {
 public:
  Meter(const OpenedFolder& folder, ReadProgress progress, const Trace& trace,
        const OnProgress& on_progress)
      : progress_(progress), trace_(trace), on_progress_(on_progress) {
    for (const SegmentReader& segment : folder.segments) {
      for (const Chunk& chunk : segment.chunks()) {
        all_ += chunk.payload_bytes * (chunk.kind == ChunkKind::kRecords ? 2 : 1);
      }
    }
    Add(0);
  }

  void Add(uint64_t bytes) {
    CheckMemory(most_memory_);
    if (!on_progress_) return;
    read_ += bytes;
    if (all_ > 0) progress_.share = static_cast<double>(read_) / static_cast<double>(all_);
    progress_.events = trace_.ranges.size() + trace_.api.size() + trace_.device_ops.size();
    on_progress_(progress_);
  }

 private:
  ReadProgress progress_;
  const Trace& trace_;
  const OnProgress& on_progress_;
  const uint64_t most_memory_ = ReadableMemoryBytes();
  uint64_t all_ = 0;
  uint64_t read_ = 0;
};

// Reads the records of a folder for what must be known before they are decoded.
std::vector<SegmentScan> ScanFolder(OpenedFolder& folder, const OnPayload& on_payload) {
  std::vector<SegmentScan> scans;
  for (SegmentReader& segment : folder.segments) {
    if (!segment.OpenFile()) {
      Result<SegmentReader> again = OpenSegment(segment.path(), folder.quality);
      if (again.ok()) segment = std::move(again).value();
    }
    scans.push_back(ScanSegment(segment, folder.quality, on_payload));
  }
  return scans;
}

Trace MakeTrace(const Recording& recording, OpenedFolder& folder, ReadProgress progress,
                const OnProgress& on_progress) {
  TraceBuilder builder;
  Trace& trace = builder.trace();
  Meter meter(folder, progress, trace, on_progress);
  const OnPayload on_payload = [&](uint64_t bytes) { meter.Add(bytes); };
  const std::vector<SegmentScan> scans = ScanFolder(folder, on_payload);
  const std::map<ClockKey, TickConverter> clocks = ClocksOf(recording, folder, scans);
  trace.source = SourceKind::kRecording;
  trace.path = folder.folder.path.string();
  trace.rank = std::max(folder.folder.rank, 0);
  trace.rank_known = folder.folder.rank >= 0;
  for (const OpenedFolder& any : recording.folders) {
    trace.world_size = std::max<int64_t>(trace.world_size, any.folder.rank + 1);
  }
  trace.quality = folder.quality;
  const ClockSample base = BaseOf(recording);
  trace.base_ns = base.realtime_ns;
  AddEnvironment(folder, clocks, trace);
  CountRunLosses(recording, trace);
  builder.Expect(RowsOf(folder, scans));
  for (size_t i = 0; i < scans.size(); ++i) {
    SegmentReader& segment = folder.segments[i];
    const TickConverter& clock = clocks.at(KeyOf(segment.info()));
    if (!clock.RateIsKnown()) {
      trace.quality.Count("unknown_clock_rate", QualitySeverity::kWarning, 1,
                          segment.path().filename().string() +
                              ": only one clock sample; durations are in ticks, not in ns");
    }
    DecodeSegment(segment, scans[i], clock, {base.monotonic_ns}, on_payload, builder);
    segment.CloseFile();
  }
  recording.host.AddTo(static_cast<size_t>(&folder - recording.folders.data()), base.monotonic_ns,
                       builder);
  return std::move(builder).Build();
}

// Where there is such a file of the run and it cannot be read, why.
void NoteUnreadable(const char* name, Recording& recording) {
  const fs::path path = recording.run_dir / name;
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) return;
  const Result<RecordedFile> file = OpenRecorded(path, Links::kFollow);
  if (!file.ok()) recording.errors.push_back(file.error());
}

// The folders that `path` stands for, and the run directory they belong to.
Recording Locate(const fs::path& path) {
  Recording recording;
  std::error_code error;
  std::vector<RankFolder> folders;
  if (fs::is_directory(path, error)) {
    folders = RankFoldersIn(path);
    recording.run_dir = path;
    if (folders.empty() && !ReadControl(path)) {
      const fs::path folder = Resolved(path);
      recording.run_dir = folder.parent_path();
      for (RankFolder& sibling : RankFoldersIn(recording.run_dir)) {
        if (fs::equivalent(sibling.path, folder, error)) folders.push_back(std::move(sibling));
      }
      if (folders.empty() && !SegmentsIn(folder).empty()) {
        folders.push_back({folder, -1, SegmentsIn(folder)});
      }
    }
  } else if (const fs::path segment = Resolved(path); IsSegmentFile(segment)) {
    recording.run_dir = segment.parent_path().parent_path();
    folders.push_back({segment.parent_path(), -1, {segment}});
  }
  recording.control = ReadControl(recording.run_dir);
  for (const char* name : {kControlFile, kClockFile}) NoteUnreadable(name, recording);
  size_t open_files = kMostOpenFiles;
  for (RankFolder& folder : folders) {
    recording.folders.push_back(OpenSegmentsOf(std::move(folder), open_files));
  }
  return recording;
}

Error NothingToRead(const fs::path& path, const Recording& recording) {
  for (const OpenedFolder& folder : recording.folders) {
    if (!folder.first_error.empty()) return {folder.first_error};
  }
  std::string why = path.string() + ": no process of this run has recorded anything. ";
  if (recording.control && !recording.control->failure.empty()) {
    return {why + "The first failure: " + recording.control->failure};
  }
  return {
      why +
      "Processes record NVTX ranges and, once CUDA is set up, GPU work: does the program use NVTX "
      "(the PyPI package nvtx, nvtxRangePushA), and did it get that far? `trainprof doctor` "
      "says what this machine can record"};
}

}  // namespace

bool LooksLikeRecording(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return ReadControl(path).has_value() || !RankFoldersIn(path).empty() ||
           !SegmentsIn(Resolved(path)).empty();
  }
  const fs::path resolved = Resolved(path);
  if (!IsSegmentFile(resolved)) return false;
  uint64_t magic = 0;
  const Result<RecordedFile> file = OpenRecorded(resolved, Links::kRefuse);
  return file.ok() && ReadFully(file.value().fd.get(), 0, &magic, sizeof magic) &&
         (magic == kSegmentMagic || magic == kSealedMagic);
}

Result<std::vector<RankTrace>> ReadRecording(const fs::path& path) {
  std::vector<RankTrace> ranks;
  const Result<void> visited = VisitRecording(path, [&](RankTrace rank) -> Result<void> {
    ranks.push_back(std::move(rank));
    return {};
  });
  if (!visited.ok()) return Error{visited.error()};
  return ranks;
}

namespace {

// A run that recorded nothing else still has samples of its processes and machine.
std::optional<Trace> HostAlone(const Recording& recording) {
  const HostSamples samples = HostSamples::Alone(recording.run_dir);
  if (samples.first() == nullptr) return std::nullopt;
  TraceBuilder builder;
  Trace& trace = builder.trace();
  trace.source = SourceKind::kRecording;
  trace.path = recording.run_dir.string();
  const ClockSample base = BaseOf(recording);
  trace.base_ns = base.realtime_ns;
  bool repaired = false;
  trace.environment.emplace_back(fact::kHost, RepairUtf8(samples.first()->host(), &repaired));
  CountRunLosses(recording, trace);
  samples.AddTo(0, base.monotonic_ns, builder);
  Trace built = std::move(builder).Build();
  bool any = false;
  ForEachTable(built, [&](Table, const auto& table) {
    if (table.size() == 0) return;
    const auto [begin, end] = std::minmax_element(table.begin.begin(), table.begin.end());
    built.extent.begin = any ? std::min(built.extent.begin, *begin) : *begin;
    built.extent.end = any ? std::max(built.extent.end, *end) : *end;
    any = true;
  });
  if (!any) return std::nullopt;
  return built;
}

Result<void> VisitAll(const fs::path& path,
                      const std::function<Result<void>(RankTrace rank)>& visit,
                      const OnProgress& on_progress) {
  Recording recording = Locate(path);
  const bool readable =
      std::any_of(recording.folders.begin(), recording.folders.end(),
                  [](const OpenedFolder& folder) { return !folder.segments.empty(); });
  if (!readable) {
    // Segments that cannot be read are an error, and no quiet run.
    std::optional<Trace> host;
    if (recording.folders.empty() && recording.control) host = HostAlone(recording);
    if (!host) return NothingToRead(path, recording);
    return visit({-1, recording.run_dir.filename().string(), std::move(*host)});
  }
  PoolClocks(recording);
  for (OpenedFolder& folder : recording.folders) {
    if (folder.folder.rank >= 0 || folder.segments.empty()) continue;
    folder.folder.rank = folder.segments.front().info().rank;
  }
  recording.host = HostSamples(recording.run_dir, AudiencesOf(recording.folders));
  ReadProgress progress{.folders = recording.folders.size()};
  for (OpenedFolder& folder : recording.folders) {
    Result<void> visited = visit({folder.folder.rank, folder.folder.path.filename().string(),
                                  MakeTrace(recording, folder, progress, on_progress)});
    if (!visited.ok()) return visited;
    ++progress.folder;
  }
  return {};
}

}  // namespace

Result<void> VisitRecording(const fs::path& path,
                            const std::function<Result<void>(RankTrace rank)>& visit,
                            const OnProgress& on_progress) {
  try {
    return VisitAll(path, visit, on_progress);
  } catch (const std::bad_alloc&) {
    return NotEnoughMemory(path);
  }
}

}  // namespace trainprof::recording
