// How much memory reading a trace may take when its caller names no limit, and how much is taken.
#pragma once

#include <cstdint>

namespace trainprof {

// The least of the machine's memory, this process's limits (RLIMIT_AS, RLIMIT_DATA) and its control
// group's, in bytes.
uint64_t AvailableMemoryBytes();

// Of that, what reading may take: the rest is for what comes after it.
uint64_t ReadableMemoryBytes();

// What this process has of it now; 0: not known.
uint64_t ResidentMemoryBytes();

// Throws std::bad_alloc when this process has more than `most_bytes`.
void CheckMemory(uint64_t most_bytes);

}  // namespace trainprof
