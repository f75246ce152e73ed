// The NVTX ranges of the trainer. They cost a few nanoseconds when no tool listens, and nothing
// where the program was built without the NVTX headers.
#pragma once

#include <cstdint>

namespace trainer {

bool NvtxCompiledIn();

// A push/pop range on the calling thread, in the default domain, from construction to destruction.
class Range {
 public:
  explicit Range(const char* name);
  // payload: a number that goes with the range, here the index of the step.
  Range(const char* name, uint64_t payload);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

// Names the calling thread in the tools' views.
void NameThisThread(const char* name);

}  // namespace trainer
