// Makes rows of the buffers that a killed process had from CUPTI (slot_file.h): all that was
// delivered, and what is complete in those that CUPTI still held.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace trainprof::collectors {

struct SalvageCounts {
  uint64_t rows = 0;
  uint32_t files = 0;  // removed, their records being rows
  uint32_t left = 0;   // of living processes, or out of time
};

bool IsSlotFile(const std::string& name);

// Of all dead processes of the run, before their segments are sealed. To be called in a process of
// its own (it takes over the state of the collector). Damaged files are left as they are, never
// fatal; so is what belongs neither to the run's owner nor to us. Follows no link.
SalvageCounts SalvageSlots(const std::filesystem::path& run_directory,
                           std::chrono::steady_clock::time_point deadline);

}  // namespace trainprof::collectors
