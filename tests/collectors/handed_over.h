// What the program "numbered" (nvtx_program.h) has handed over to the recording when it is killed, and that all of it is
// there.
#pragma once

#include <filesystem>

#include "tests/collectors/nvtx_program.h"
#include "trace/tables/trace.h"

namespace trainprof::testing {

using nvtx_program::HandedOver;

// A shared page that outlives the program.
class SharedCounts {
 public:
  explicit SharedCounts(const std::filesystem::path& path);
  ~SharedCounts();
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;
  const HandedOver& operator*() const { return *counts_; }

 private:
  HandedOver* counts_;
};

// Until each thread of the program has handed over its first range.
void AwaitFirst(const HandedOver& handed);

// Every range that was handed over is there, once; at most one more a thread.
void ExpectNothingLost(const Trace& trace, const HandedOver& handed);
// Each thread's ranges from its first on, without a hole: of a program that is read while it runs.
void ExpectNoHoles(const Trace& trace);

}  // namespace trainprof::testing
