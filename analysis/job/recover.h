// What a run that was killed has left unfinished: buffers of GPU records that no process has made
// rows of. Part of opening a path (job.h), whoever opens it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trainprof {

struct Unrecovered {
  std::string folder;  // rank-00003
  std::string why;
};

struct Recovery {
  uint64_t rows = 0;              // that were made, in the recording itself
  uint32_t files = 0;             // that they were made of, which are gone
  std::vector<Unrecovered> left;  // buffers of processes that are not at work any more
};

// Makes rows of the buffers that dead processes have left in the run that `path` is or lies in.
// Writes only where the run's folder belongs to the user, and nothing outside of it, where it removes the
// run's own buffers (collectors/salvage/slot_files.h); touches no
// process's buffers that may still be at work. Once `cancel` turns true it returns at once.
Recovery RecoverDead(const std::filesystem::path& path, const std::atomic<bool>* cancel);

}  // namespace trainprof
