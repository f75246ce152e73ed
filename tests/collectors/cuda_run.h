// Runs cuda_program on the virtual GPU under the injected library.
#pragma once

#include <gtest/gtest.h>

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

class CuptiRows : public ::testing::Test {};

}  // namespace trainprof::testing
