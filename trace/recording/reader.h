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

#include "trace/result.h"
#include "trace/trace.h"

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

// The same, one rank in memory at a time; stops at the first error of `visit`.
Result<void> VisitRecording(const std::filesystem::path& path,
                            const std::function<Result<void>(RankTrace rank)>& visit);

}  // namespace trainprof::recording
