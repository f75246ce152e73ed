// Reads recordings: of runs that ended, were killed, or still go on. One Trace per rank.
//
// Every record that a process had committed is there; what is not is counted in Trace::quality:
// open ranges at the end, thinned and dropped events, corrupt or torn chunks. Damaged files are
// repaired by skipping, never fatal.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trace/base/result.h"
#include "trace/tables/trace.h"

namespace trainprof::recording {

// True for a run directory, one of its rank folders, or a segment file. Reads at most a header.
bool LooksLikeRecording(const std::filesystem::path& path);

struct RankTrace {
  int rank = -1;       // -1: the process had no rank
  std::string folder;  // rank-00003, pid-1234
  Trace trace;
};

// All ranks of a run directory (by rank, then pid), or the one of a rank folder or segment file.
// Fails when there is no segment to read: the message says what was looked for and why it may be
// missing (no process of the run used NVTX).
Result<std::vector<RankTrace>> ReadRecording(const std::filesystem::path& path);

struct ReadProgress {
  size_t folder = 0;  // that is being read, from 0
  size_t folders = 1;
  double share = 0;     // of the folder, 0..1
  uint64_t events = 0;  // of the folder, so far
};
using OnProgress = std::function<void(const ReadProgress&)>;

// The same, one rank in memory at a time; stops at the first error of `visit`. Of the ranks to come
// only headers are read, so that the first one costs what it costs alone. `on_progress`, which may
// be empty, is called at the begin of each folder and about once a megabyte. Can be cancelled
// (trace/base/cancel.h).
Result<void> VisitRecording(const std::filesystem::path& path,
                            const std::function<Result<void>(RankTrace rank)>& visit,
                            const OnProgress& on_progress = {});

}  // namespace trainprof::recording
