// Which launch this process belongs to, by what Slurm, torchrun and the process tree say: how the
// supervisors of several ranks agree on one folder without talking to each other.
#pragma once

#include <string>

namespace trainprof {

// Equal for the ranks of one launch, different for any other launch.
std::string LaunchIdentity();

// The part of it that stays when the launcher starts the ranks again after a failure.
std::string JobIdentity();
// True when the launcher has started these ranks before.
bool IsLaterAttempt();

// "trainprof-<job>" where a scheduler or torchrun names the job, else "trainprof-<utc>". With a
// rank and no job the time is the launcher's start, so that all its ranks compute the same name.
std::string DefaultRunName(int rank);

}  // namespace trainprof
