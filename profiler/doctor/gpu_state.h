// What processes of a run say about their GPU recording.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trainprof {

struct GpuState {
  // Why GPU work was not recorded, or not to the end, in the words of the first process that says
  // so; "" when none does.
  std::string trouble;
  std::string memory;  // that CUPTI may take, as one process says; "" where none records
  uint64_t lost = 0;   // records that CUPTI dropped, or gave without their times
};

// Reads a few small chunks of each unsealed segment.
GpuState ReadGpuState(const std::filesystem::path& run_directory);

}  // namespace trainprof
