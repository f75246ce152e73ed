// What the supervisor does to a run directory: makes it before the program starts, and seals it
// when the program has ended: trims each dead process's segment to what was committed, compresses
// it, and writes manifest.json. All of it may be left out (the supervisor was killed): the reader
// reads raw segments and recordings without a manifest as well.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trace/base/result.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::recording {

// The supervisor's part of the manifest.
struct RunDescription {
  std::vector<std::string> command;
  std::string trainprof_version;
  std::string host;
  std::string working_directory;
  std::string collector_options;  // TRAINPROF_OPTIONS as handed to the program
  uint64_t max_bytes = kDefaultMaxBytes;
  bool shared = false;                // the group may read it, see access.h
  int64_t start_unix_ns = 0;          // CLOCK_REALTIME
  int64_t end_unix_ns = 0;            // 0: still running
  int64_t program_pid = 0;            // the process that `trainprof run` started
  std::optional<int> exit_code;       // as `trainprof run` returns it
  std::optional<int> signal;          // the signal that ended the program
  std::vector<std::string> warnings;  // what could not be recorded and why, in words
};

struct ThreadSummary {
  int64_t tid = 0;
  std::string name;
};

// What one process left in the recording.
struct ProcessSummary {
  int64_t pid = 0;
  int64_t parent_pid = 0;
  int32_t rank = -1;            // -1: no rank variable was set
  std::string folder;           // rank-00000 or pid-1234
  std::string file;             // the segment's name in that folder
  std::string command;          // its command line, arguments joined by spaces
  std::string role;             // "rank", "worker" (beside its parent), "launcher", "process"
  uint64_t events = 0;          // pushes, starts, marks and rows that are in the recording
  uint64_t bytes = 0;           // of the file now
  uint64_t dropped_detail = 0;  // thinned out as the size bound came near
  uint64_t dropped_all = 0;     // not recorded: the bound was reached, or recording failed
  bool ended = false;           // the process is dead
  bool clean_exit = false;      // it went through exit(), not through a signal or _exit()
  bool sealed = false;
  std::string failure;  // why its recording stopped, empty when it did not
  std::vector<ThreadSummary> threads;
};

struct RecordingSummary {
  std::vector<ProcessSummary> processes;  // by folder, then start
  uint64_t total_bytes = 0;               // of all segments, sealed or raw
  uint64_t lost_events = 0;               // of processes that could not open a segment
  uint32_t failed_processes = 0;          // that many; `failure` is the first one's cause
  std::string failure;
  uint32_t left_raw = 0;  // segments that were not sealed: deadline, disk full or still running
};

// Makes `run_dir` (which must not exist, its parent must), run.ctl and a thin manifest.json.
// A failure names the path and the cause.
Result<void> CreateRun(const std::filesystem::path& run_dir, const RunDescription& run);

// Seals the segments of dead processes until `deadline` (the rest stays raw), writes the final
// manifest.json and, as far as time is left, the symbols of native stacks. Safe to call again.
// Never touches a living process's segment.
Result<RecordingSummary> SealRecording(const std::filesystem::path& run_dir,
                                       const RunDescription& run,
                                       std::chrono::steady_clock::time_point deadline);

// What has been recorded so far, while the run goes on or after: reads headers, and of raw segments
// the records too (for the number of events and the threads' names).
Result<RecordingSummary> SummarizeRecording(const std::filesystem::path& run_dir);

}  // namespace trainprof::recording
