// The files that addresses of stacks lie in.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/core/thread_writer.h"
#include "collectors/cupti/unwind.h"

namespace trainprof::collectors {

// Which objects are in the recording already. Zeros are its empty state; lock-free.
struct ModuleSet {
  static constexpr uint32_t kPlaces = 1024;
  std::atomic<uint64_t> keys[kPlaces];

  // True for one caller: it is to write the record.
  bool Add(uint64_t key);
};

// The executable segment that holds `address`; false where there is none.
bool DescribeModule(const LoadedObject& object, uint64_t address, recording::ModuleFacts* facts);

// Writes a record for each object of these frames that is not in the recording yet.
void WriteModules(ModuleSet& known, const Frames& frames, ThreadWriter& writer);

}  // namespace trainprof::collectors
