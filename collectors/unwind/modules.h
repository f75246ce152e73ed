// The files that addresses of stacks lie in.
#pragma once

#include <cstdint>

#include "collectors/core/thread_writer.h"
#include "collectors/unwind/unwind.h"

namespace trainprof::collectors {

// Before the first WriteModules. May be called again, by any thread. False: no memory.
bool PrepareModules();

// The executable segment that holds `address`; false where there is none.
bool DescribeModule(const LoadedObject& object, uint64_t address, recording::ModuleFacts* facts);

// Writes a record for each object of these frames that is not in the recording yet.
void WriteModules(const Frames& frames, ThreadWriter& writer);

}  // namespace trainprof::collectors
