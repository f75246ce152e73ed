// The frames above one that cannot be unwound, as a driver's may: return addresses that stand on the stack.
#pragma once

#include <cstdint>

namespace trainprof::collectors {

// Fills `frames`, innermost first, from the stack at and above `stack`: the first is a return address outside
// CUDA's libraries behind a call that may be one of theirs (a stale one cannot be told from it), each further
// one is of a direct call of the function that the one before lies in. Returns how many; 0 where there is no
// such address in reach, or the system does not let us look. Reads the stack by a system call: no address crashes.
uint32_t ScanStack(uint64_t stack, uint64_t* frames, uint32_t room);

}  // namespace trainprof::collectors
