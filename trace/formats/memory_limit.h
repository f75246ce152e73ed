// How much memory an import may take when its caller names no limit.
#pragma once

#include <cstdint>

namespace trainprof {

// The least of the machine's memory, this process's limits (RLIMIT_AS, RLIMIT_DATA) and its control
// group's, in bytes.
uint64_t AvailableMemoryBytes();

}  // namespace trainprof
