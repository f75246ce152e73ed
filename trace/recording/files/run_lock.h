// Who changes the files of a run once its programs have ended: one process at a time.
#pragma once

#include <chrono>
#include <filesystem>

namespace trainprof::recording {

// Takes the run's lock, waiting until `deadline` at most; it goes with the process. True also where
// there is nothing to lock (no control file): nobody else can know the run then.
bool LockRun(const std::filesystem::path& run_dir, std::chrono::steady_clock::time_point deadline);

}  // namespace trainprof::recording
