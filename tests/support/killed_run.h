// A recording as a killed process leaves it: a segment and, beside it, a buffer of CUPTI's records
// that nobody has made rows of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "collectors/cupti/slot_file.h"

namespace trainprof::testing {

inline constexpr int kKilledKernels = 10;

// What a test may change before the files are written.
struct KilledRun {
  std::unique_ptr<collectors::SlotFileHeader> header;
  collectors::KernelRecord kernels[kKilledKernels]{};
};

// Into run/rank-00000, made with run.ctl where they are missing. Returns the slot file's path.
std::filesystem::path WriteKilledRun(
    const std::filesystem::path& run, int rank = 0,
    const std::function<void(KilledRun&)>& change = [](KilledRun&) {});

}  // namespace trainprof::testing
