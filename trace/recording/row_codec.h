// Turns rows into a form that compresses well, and back: columns in place of rows, each value as
// its difference to the row before. FORMAT.md, "Sealed segments", encoding 1.
#pragma once

#include <cstdint>
#include <vector>

namespace trainprof::recording {

enum class ChunkEncoding : uint32_t {
  kPlain = 0,
  kColumns = 1,
};

// Whether rows of that size can be packed: they begin with two times, as all of rows.h do.
constexpr bool HasColumns(uint16_t row_bytes) { return row_bytes >= 16 && row_bytes % 8 == 0; }

// As many words out as in; what is left behind the last whole row is kept as it is. O(words).
std::vector<uint64_t> PackRows(const std::vector<uint64_t>& rows, uint16_t row_bytes);
// Into `rows`, another vector than `packed`, whose room is used again. O(words); values that hold
// from row to row cost next to nothing.
void UnpackRows(const std::vector<uint64_t>& packed, uint16_t row_bytes,
                std::vector<uint64_t>& rows);

}  // namespace trainprof::recording
