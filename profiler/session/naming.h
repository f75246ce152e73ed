// Where a run is recorded: the folder's name, and claiming it without ever overwriting another run.
//
// A run's folder is trainprof-<job> or trainprof-<utc>. Under `torchrun --no-python trainprof run`
// (and under srun, mpirun) there is one supervisor a rank: those of one launch share one folder.
#pragma once

#include <filesystem>
#include <string>

#include "trace/recording/sealer.h"
#include "trace/result.h"

namespace trainprof {

struct RunPlace {
  std::filesystem::path directory;  // absolute
  int rank = -1;                    // of this supervisor by its environment; -1: none
  bool joined = false;              // another rank's supervisor made it
  bool was_there = false;           // the user's own empty folder: not ours to remove
};

// The rank that the environment names, or -1.
int RankOfEnvironment();

// `requested` is the user's -o, or empty for the default name in the current folder. A folder that
// holds another recording is left alone: the name gets a suffix -2, -3, ... A folder that holds
// other files gets the recording inside, under the default name. Atomic against other supervisors.
Result<RunPlace> ClaimRunDirectory(const std::string& requested,
                                   const recording::RunDescription& run);

// Undoes the claim of a run that never started.
void ReleaseRunDirectory(const RunPlace& place);

}  // namespace trainprof
