// Which line of its file an instruction of a Python function belongs to.
#pragma once

#include <cstdint>
#include <span>

namespace trainprof {

// Where an instruction stands in its file. Lines count from 1, columns are bytes from 0; the end is
// behind its last byte. What the table does not say is 0, and a column -1 (3.10 has no columns).
struct SourceSpan {
  int64_t line = 0;
  int64_t end_line = 0;
  int64_t column = -1;
  int64_t end_column = -1;
  bool operator==(const SourceSpan&) const = default;
};

// `table`: co_linetable of Python 3.`minor`, 3.10 to 3.13, any bytes; `instruction`: bytes from the
// start of the function's code, negative before its first instruction. O(table).
SourceSpan SpanOf(int minor, std::span<const uint8_t> table, int64_t first_line,
                  int64_t instruction);
inline int64_t LineOf(int minor, std::span<const uint8_t> table, int64_t first_line,
                      int64_t instruction) {
  return SpanOf(minor, table, first_line, instruction).line;
}

}  // namespace trainprof
