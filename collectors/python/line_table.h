// Which line of its file an instruction of a Python function belongs to.
#pragma once

#include <cstdint>
#include <span>

namespace trainprof {

// `table`: co_linetable of Python 3.`minor`, 3.10 to 3.13, any bytes; `instruction`: bytes from the
// start of the function's code, negative before its first instruction. 0 where the instruction has
// no line. O(table).
int64_t LineOf(int minor, std::span<const uint8_t> table, int64_t first_line, int64_t instruction);

}  // namespace trainprof
