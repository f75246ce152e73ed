// Rows of rows.h in the two forms beside their own: as runs, which are decoded fast, and packed,
// which compresses well. FORMAT.md, "Sealed segments", encodings 1 and 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainprof::recording {

enum class ChunkEncoding : uint32_t {
  kPlain = 0,
  kAllPlanes = 1,  // of recordings before encoding 2; read, no longer written
  kPlanes = 2,
};

// Whether rows of that size begin with two times and a correlation, as all of rows.h do.
constexpr bool HasColumns(uint16_t row_bytes) { return row_bytes >= 24 && row_bytes % 8 == 0; }

// Columns of what every row has of its own, and looks, which are whole rows, for runs of rows that
// are the same but for these columns.
struct RowRuns {
  std::vector<int64_t> begin_ns;
  std::vector<int64_t> end_ns;
  std::vector<uint32_t> correlation;
  std::vector<uint32_t> run_begin;  // run r is rows [run_begin[r], run_begin[r + 1])
  std::vector<uint32_t> look_of_run;
  std::vector<uint64_t> looks;  // row_bytes each; their own times and correlation mean nothing
  std::vector<uint64_t> rest;   // what lies behind the last whole row

  size_t rows() const { return begin_ns.size(); }
  size_t runs() const { return run_begin.empty() ? 0 : run_begin.size() - 1; }
};

// All for HasColumns(row_bytes). Results go into vectors whose room is used again. O(words).
void RunsOf(const std::vector<uint64_t>& rows, uint16_t row_bytes, RowRuns& runs);
void RowsOf(const RowRuns& runs, uint16_t row_bytes, std::vector<uint64_t>& rows);

// Encoding 2. What holds from row to row takes no room.
std::vector<uint64_t> PackRows(const std::vector<uint64_t>& rows, uint16_t row_bytes);
// The most words that PackRows makes of so many.
size_t MostPackedWords(size_t words, uint16_t row_bytes);
// Back from either encoding to the runs of `words` words of rows. False: these are no such rows.
// O(packed words + runs * words of a row).
bool UnpackRuns(const std::vector<uint64_t>& packed, ChunkEncoding encoding, size_t words,
                uint16_t row_bytes, RowRuns& runs);

}  // namespace trainprof::recording
