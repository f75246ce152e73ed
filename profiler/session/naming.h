// Where a run is recorded: the folder's name, and claiming it without overwriting another run
// unasked.
//
// A run's folder is trainprof-<job> or trainprof-<utc>. Under `torchrun --no-python trainprof run`
// (and under srun, mpirun) there is one supervisor a rank: those of one launch share one folder.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "profiler/session/earlier_recording.h"
#include "trace/base/result.h"
#include "trace/recording/seal/sealer.h"

namespace trainprof {

struct RunPlace {
  std::filesystem::path directory;  // absolute
  int rank = -1;                    // of this supervisor by its environment; -1: none
  bool joined = false;              // another rank's supervisor made it
  // The user's own empty folder, not ours to remove: the mode that it had. 0: we made the folder.
  mode_t mode_before = 0;
  std::filesystem::path replaced;  // where the recording is that was here before; empty: none was
  std::string note;                // for the user: why the folder is not the one that was asked for
  RunClaim claim;                  // keeps others from replacing the recording
};

struct PlaceRequest {
  std::string output;  // -o, or empty for the default name in the current folder
  bool force = false;  // replace an earlier recording there
};

// A place, or why there is none. `refused`: the user asked for a folder that is taken; then the
// program must not start, since what lies there would be taken for this run's recording.
struct ClaimOutcome {
  std::optional<RunPlace> place;
  std::string error;
  bool refused = false;
};

// The rank that the environment names, or -1.
int RankOfEnvironment();

// A default name that is taken gets a suffix -2, -3, ... A folder that the user named must be new
// or empty, unless it is of this launch (another rank's) or to be replaced. An attempt that a
// launcher makes after a failed one is no new run: it takes the suffix, as it must not fail for the
// name. Atomic against other supervisors.
ClaimOutcome ClaimRunDirectory(const PlaceRequest& request, const recording::RunDescription& run);

// Deletes what was replaced: the program runs.
void KeepRunDirectory(RunPlace& place);

// Undoes the claim of a run that never started; what was replaced comes back.
void ReleaseRunDirectory(RunPlace& place);

}  // namespace trainprof
