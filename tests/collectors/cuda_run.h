// Runs cuda_program on the virtual GPU under the injected library.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/collectors/recorded_rows.h"
#include "tests/collectors/recorded_run.h"

namespace trainprof::testing {

class CudaRun : public RecordedRun {
 public:
  explicit CudaRun(uint64_t max_bytes = UINT64_MAX) : RecordedRun(max_bytes) {
    program = TEST_CUDA_PROGRAM;
    environment["LD_LIBRARY_PATH"] = TEST_VIRTUAL_GPU;
  }
  RecordedRows Rows() const { return ReadOnlyRows(directory()); }
};

// Whether the virtual GPU has all of CUPTI's habits at once (docs/virtual_gpu.md): its clock is off by some
// microseconds, and what has ended is known when the collector flushes, at most a second later.
inline bool HardGpu() {
  const char* text = getenv("VGPU_HARD");
  return text != nullptr && *text != 0 && *text != '0';
}

class CuptiRows : public ::testing::Test {};

}  // namespace trainprof::testing
