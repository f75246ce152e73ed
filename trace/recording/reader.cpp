#include "trace/recording/reader.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>

#include "trace/recording/clock_log.h"
#include "trace/recording/host_counters.h"
#include "trace/recording/run_directory.h"
#include "trace/recording/segment_decoder.h"
#include "trace/recording/segment_reader.h"
#include "trace/recording/segment_scan.h"
#include "trace/recording/tick_converter.h"
#include "trace/trace_builder.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

struct LoadedSegment {
  SegmentReader reader;
  SegmentScan scan;
};

struct LoadedFolder {
  RankFolder folder;
  std::vector<LoadedSegment> segments;
  Quality quality;
  std::string first_error;
};

// A machine, until its next boot, and a clock: what samples can be pooled over.
using ClockKey = std::pair<std::string, ClockKind>;

struct Recording {
  fs::path run_dir;  // empty: segments without one
  std::optional<ControlInfo> control;
  std::vector<LoadedFolder> folders;
  std::map<ClockKey, std::unique_ptr<TickConverter>> clocks;
  HostSamples host;
};

ClockKey KeyOf(const SegmentInfo& info) { return {info.boot_id, info.clock_kind}; }

// So many segments keep their file open from the scan to the decoding, so that one which is sealed
// meanwhile is still read whole.
constexpr size_t kMostOpenFiles = 64;

LoadedFolder LoadFolder(RankFolder folder, size_t& open_files) {
  LoadedFolder loaded;
  for (fs::path path : folder.segments) {
    std::error_code error;
    // Sealed since the folder was listed.
    if (!fs::exists(path, error)) path.replace_extension(kSealedSuffix);
    Result<SegmentReader> reader = SegmentReader::Open(path, loaded.quality);
    if (!reader.ok()) {
      loaded.quality.Count("unreadable_segment", QualitySeverity::kDataLoss, 1, reader.error());
      if (loaded.first_error.empty()) loaded.first_error = reader.error();
      continue;
    }
    SegmentScan scan = ScanSegment(reader.value(), loaded.quality);
    if (open_files == 0) {
      reader.value().CloseFile();
    } else {
      --open_files;
    }
    loaded.segments.push_back({std::move(reader).value(), std::move(scan)});
  }
  loaded.folder = std::move(folder);
  return loaded;
}

void BuildClocks(Recording& recording) {
  std::map<ClockKey, std::vector<ClockSample>> samples;
  for (const LoadedFolder& folder : recording.folders) {
    for (const LoadedSegment& segment : folder.segments) {
      auto& of_machine = samples[KeyOf(segment.reader.info())];
      of_machine.insert(of_machine.end(), segment.scan.clocks.begin(), segment.scan.clocks.end());
    }
  }
  // The supervisor runs on the machine of the ranks, and does not name it: its samples serve where
  // there is one machine only, or TickConverter sets them aside as contradicting.
  const ClockLogContents log = ReadClockLog(recording.run_dir);
  for (auto& [key, of_machine] : samples) {
    if (samples.size() == 1 && log.kind == key.second) {
      of_machine.insert(of_machine.end(), log.samples.begin(), log.samples.end());
    }
    if (samples.size() == 1 && recording.control && recording.control->clock_kind == key.second) {
      of_machine.push_back(recording.control->created);
    }
    recording.clocks[key] = std::make_unique<TickConverter>(key.second, std::move(of_machine));
  }
}

// Time 0 of all traces of a run: when it was created, else its first segment.
ClockSample BaseOf(const Recording& recording) {
  if (recording.control && recording.control->created.monotonic_ns > 0) {
    return recording.control->created;
  }
  ClockSample base{0, INT64_MAX, 0, 0};
  for (const LoadedFolder& folder : recording.folders) {
    for (const LoadedSegment& segment : folder.segments) {
      const ClockSample& opened = segment.reader.info().opened;
      if (opened.monotonic_ns < base.monotonic_ns) base = opened;
    }
  }
  return base.monotonic_ns == INT64_MAX ? ClockSample{} : base;
}

void AddEnvironment(const Recording& recording, const LoadedFolder& folder, Trace& trace) {
  if (folder.segments.empty()) return;
  const SegmentInfo& info = folder.segments.front().reader.info();
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) trace.environment.emplace_back(name, std::move(value));
  };
  bool repaired = false;
  add("host", RepairUtf8(info.host, &repaired));
  add("command", RepairUtf8(info.command, &repaired));
  add("recording options", RepairUtf8(info.options, &repaired));
  add("processes", std::to_string(folder.segments.size()));
  const TickConverter& clock = *recording.clocks.at(KeyOf(info));
  add("clock",
      std::string(info.clock_kind == ClockKind::kTsc ? "time stamp counter" : "CLOCK_MONOTONIC") +
          ", error at most " + std::to_string(clock.Error().ns) + " ns");
}

// Who gets which samples of the host: the folders, in their order.
std::vector<HostAudience> AudiencesOf(const std::vector<LoadedFolder>& folders) {
  std::vector<HostAudience> audiences;
  for (const LoadedFolder& folder : folders) {
    HostAudience& audience = audiences.emplace_back();
    audience.rank = folder.folder.rank;
    for (const LoadedSegment& segment : folder.segments) {
      const SegmentInfo& info = segment.reader.info();
      audience.boot_id = info.boot_id;
      audience.processes.emplace_back(info.pid, info.process_start);
    }
  }
  return audiences;
}

void CountRunLosses(const Recording& recording, Trace& trace) {
  if (!recording.control || recording.control->failed_processes == 0) return;
  trace.quality.Count("process_not_recorded", QualitySeverity::kDataLoss,
                      recording.control->failed_processes, recording.control->failure);
  trace.quality.Count("dropped_events", QualitySeverity::kDataLoss,
                      static_cast<int64_t>(recording.control->lost_events),
                      "of processes that could not open a segment");
}

ExpectedRows RowsOf(const LoadedFolder& folder) {
  ExpectedRows all;
  for (const LoadedSegment& segment : folder.segments) {
    const ExpectedRows rows = recording::RowsOf(segment.reader, segment.scan);
    all.ranges += rows.ranges;
    all.calls += rows.calls;
    all.device_ops += rows.device_ops;
  }
  return all;
}

Trace MakeTrace(const Recording& recording, LoadedFolder& folder, int world_size) {
  TraceBuilder builder;
  Trace& trace = builder.trace();
  trace.source = SourceKind::kRecording;
  trace.path = folder.folder.path.string();
  trace.rank = std::max(folder.folder.rank, 0);
  trace.rank_known = folder.folder.rank >= 0;
  trace.world_size = world_size;
  trace.quality = folder.quality;
  const ClockSample base = BaseOf(recording);
  trace.base_ns = base.realtime_ns;
  AddEnvironment(recording, folder, trace);
  CountRunLosses(recording, trace);
  builder.Expect(RowsOf(folder));
  for (LoadedSegment& segment : folder.segments) {
    const TickConverter& clock = *recording.clocks.at(KeyOf(segment.reader.info()));
    if (!clock.RateIsKnown()) {
      trace.quality.Count("unknown_clock_rate", QualitySeverity::kWarning, 1,
                          segment.reader.path().filename().string() +
                              ": only one clock sample; durations are in ticks, not in ns");
    }
    DecodeSegment(segment.reader, segment.scan, clock, {base.monotonic_ns}, builder);
    segment.reader.CloseFile();
  }
  recording.host.AddTo(static_cast<size_t>(&folder - recording.folders.data()), base.monotonic_ns,
                       builder);
  return std::move(builder).Build();
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
      fs::path folder = path.filename().empty() ? path.parent_path() : path;
      recording.run_dir = fs::absolute(folder, error).parent_path();
      for (RankFolder& sibling : RankFoldersIn(recording.run_dir)) {
        if (fs::equivalent(sibling.path, folder, error)) folders.push_back(std::move(sibling));
      }
      if (folders.empty() && !SegmentsIn(folder).empty()) {
        folders.push_back({folder, -1, SegmentsIn(folder)});
      }
    }
  } else if (IsSegmentFile(path)) {
    const fs::path absolute = fs::absolute(path, error);
    recording.run_dir = absolute.parent_path().parent_path();
    folders.push_back({absolute.parent_path(), -1, {absolute}});
  }
  recording.control = ReadControl(recording.run_dir);
  size_t open_files = kMostOpenFiles;
  for (RankFolder& folder : folders) {
    recording.folders.push_back(LoadFolder(std::move(folder), open_files));
  }
  return recording;
}

Error NothingToRead(const fs::path& path, const Recording& recording) {
  for (const LoadedFolder& folder : recording.folders) {
    if (!folder.first_error.empty()) return {folder.first_error};
  }
  std::string why = path.string() + ": no process of this run has recorded anything. ";
  if (recording.control && !recording.control->failure.empty()) {
    return {why + "The first failure: " + recording.control->failure};
  }
  return {why +
          "Processes record their NVTX ranges: does the program use NVTX "
          "(torch.cuda.nvtx.range_push, nvtxRangePush), and did it get that far?"};
}

}  // namespace

bool LooksLikeRecording(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return ReadControl(path).has_value() || !RankFoldersIn(path).empty() ||
           !SegmentsIn(path).empty();
  }
  if (!fs::is_regular_file(path, error)) return false;
  uint64_t magic = 0;
  std::ifstream file(path, std::ios::binary);
  return file.read(reinterpret_cast<char*>(&magic), sizeof magic) &&
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

Result<void> VisitRecording(const fs::path& path,
                            const std::function<Result<void>(RankTrace rank)>& visit) {
  Recording recording = Locate(path);
  const bool readable =
      std::any_of(recording.folders.begin(), recording.folders.end(),
                  [](const LoadedFolder& folder) { return !folder.segments.empty(); });
  if (!readable) return NothingToRead(path, recording);
  BuildClocks(recording);
  int highest_rank = 0;
  for (LoadedFolder& folder : recording.folders) {
    if (folder.folder.rank < 0 && !folder.segments.empty()) {
      folder.folder.rank = folder.segments.front().reader.info().rank;
    }
    highest_rank = std::max(highest_rank, folder.folder.rank);
  }
  recording.host = HostSamples(recording.run_dir, AudiencesOf(recording.folders));
  for (LoadedFolder& folder : recording.folders) {
    Result<void> visited = visit({folder.folder.rank, folder.folder.path.filename().string(),
                                  MakeTrace(recording, folder, highest_rank + 1)});
    if (!visited.ok()) return visited;
  }
  return {};
}

}  // namespace trainprof::recording
