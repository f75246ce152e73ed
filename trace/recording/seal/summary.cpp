// What each process left in a recording: from the sealed segments' own summaries, else by a scan.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "trace/recording/files/recorded_json.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/seal/sealer.h"
#include "trace/recording/segments/segment_liveness.h"
#include "trace/recording/segments/segment_reader.h"
#include "trace/recording/segments/segment_scan.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

void AddScan(const SegmentReader& segment, ProcessSummary& process) {
  Quality quality;
  SegmentScan scan = ScanSegment(segment, quality);
  process.events = scan.events;
  for (auto& [tid, name] : scan.threads) process.threads.push_back({tid, std::move(name)});
}

// False when the text is not what the sealer writes.
bool AddSealedInfo(const std::string& text, ProcessSummary& process) {
  const auto json = ParseRecorded(text);
  if (!json.is_object() || !json.contains("events") || !json["events"].is_number_unsigned() ||
      !json.contains("threads") || !json["threads"].is_array()) {
    return false;
  }
  std::vector<ThreadSummary> threads;
  for (const auto& thread : json["threads"]) {
    if (!thread.is_object() || !thread.contains("tid") || !thread["tid"].is_number_integer() ||
        !thread.contains("name") || !thread["name"].is_string()) {
      return false;
    }
    threads.push_back({thread["tid"].get<int64_t>(), thread["name"].get<std::string>()});
  }
  process.events = json["events"].get<uint64_t>();
  process.threads = std::move(threads);
  return true;
}

ProcessSummary Describe(const SegmentReader& segment, bool ended, const RankFolder& folder) {
  const SegmentInfo& info = segment.info();
  ProcessSummary process;
  process.pid = info.pid;
  process.parent_pid = info.parent_pid;
  process.rank = info.rank;
  process.folder = folder.path.filename().string();
  process.file = segment.path().filename().string();
  process.command = info.command;
  process.bytes = segment.file_bytes();
  process.dropped_detail = info.dropped_detail;
  process.dropped_all = info.dropped_all;
  process.sealed = segment.sealed();
  process.clean_exit = info.clean_exit;
  process.ended = ended;
  process.failure = info.failure;
  if (!segment.sealed() || !AddSealedInfo(segment.sealed_info(), process)) {
    AddScan(segment, process);
  }
  return process;
}

// Beside its parent: a loader worker. With a rank: a rank. Else just a process.
void NameRoles(std::vector<ProcessSummary>& processes) {
  std::set<std::pair<std::string, int64_t>> present;
  for (const ProcessSummary& p : processes) present.emplace(p.folder, p.pid);
  for (ProcessSummary& p : processes) {
    const bool beside_parent =
        p.parent_pid != p.pid && present.count({p.folder, p.parent_pid}) != 0;
    p.role = beside_parent ? "worker" : p.rank >= 0 ? "rank" : "process";
  }
}

}  // namespace

Result<RecordingSummary> SummarizeRecording(const fs::path& run_dir) {
  RecordingSummary summary;
  const std::optional<ControlInfo> control = ReadControl(run_dir);
  if (control) {
    summary.lost_events = control->lost_events;
    summary.failed_processes = control->failed_processes;
    summary.failure = control->failure;
  }
  const std::vector<RankFolder> folders = RankFoldersIn(run_dir);
  if (!control && folders.empty()) {
    return Error{run_dir.string() + ": not a recording: it has no " + kControlFile +
                 " and no folder with segments"};
  }
  for (const RankFolder& folder : folders) {
    for (const fs::path& path : folder.segments) {
      const bool ended = path.extension() == kSealedSuffix || !MayBeAlive(path);
      Quality quality;
      Result<SegmentReader> segment = SegmentReader::Open(path, quality);
      if (!segment.ok()) continue;  // ReadRecording counts and names it
      summary.processes.push_back(Describe(segment.value(), ended, folder));
      summary.total_bytes += summary.processes.back().bytes;
      if (!segment.value().sealed()) ++summary.left_raw;
    }
  }
  NameRoles(summary.processes);
  return summary;
}

}  // namespace trainprof::recording
