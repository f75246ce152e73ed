// Whether GPU work can be recorded here, found out by beginning to record.
#pragma once

#include <optional>
#include <string>

#include "profiler/process/signals.h"

namespace trainprof {

// Sets CUDA up in a process of its own with our collector in it, as `trainprof run` does, and
// returns what that says: why GPU work cannot be recorded, "" when it can. Takes as long as the
// driver takes to wake up, some seconds at most; leaves nothing behind. `cupti`: the library that
// the user's programs would use; "": where the collector finds one. Nothing when a trial cannot be
// made here (no folder for temporary files).
std::optional<std::string> TryToRecord(const std::string& cupti, SignalInbox& inbox);

}  // namespace trainprof
