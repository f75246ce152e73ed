#include "trace/recording/row_codec.h"

#include <cstring>

namespace trainprof::recording {
namespace {

// Small differences of either sign become small numbers.
constexpr uint64_t ZigZag(uint64_t difference) {
  return difference << 1 ^ static_cast<uint64_t>(static_cast<int64_t>(difference) >> 63);
}
constexpr uint64_t UnZigZag(uint64_t code) { return code >> 1 ^ (0 - (code & 1)); }
constexpr uint32_t ZigZag(uint32_t difference) {
  return difference << 1 ^ static_cast<uint32_t>(static_cast<int32_t>(difference) >> 31);
}
constexpr uint32_t UnZigZag(uint32_t code) { return code >> 1 ^ (0 - (code & 1)); }

// A row's first two words are its begin and its end; 4-byte columns follow.
constexpr size_t kTimeWords = 2;

void ToDifferences(uint64_t* row, const uint64_t* before, size_t words) {
  row[1] = ZigZag(row[1] - row[0]);
  for (size_t w = words; w-- > kTimeWords;) {
    const auto low = static_cast<uint32_t>(row[w]) - static_cast<uint32_t>(before[w]);
    const auto high = static_cast<uint32_t>(row[w] >> 32) - static_cast<uint32_t>(before[w] >> 32);
    row[w] = uint64_t{ZigZag(high)} << 32 | ZigZag(low);
  }
  row[0] = ZigZag(row[0] - before[0]);
}

void FromDifferences(uint64_t* row, const uint64_t* before, size_t words) {
  row[0] = UnZigZag(row[0]) + before[0];
  row[1] = UnZigZag(row[1]) + row[0];
  for (size_t w = kTimeWords; w < words; ++w) {
    const uint32_t low = UnZigZag(static_cast<uint32_t>(row[w])) + static_cast<uint32_t>(before[w]);
    const uint32_t high =
        UnZigZag(static_cast<uint32_t>(row[w] >> 32)) + static_cast<uint32_t>(before[w] >> 32);
    row[w] = uint64_t{high} << 32 | low;
  }
}

}  // namespace

std::vector<uint64_t> PackRows(const std::vector<uint64_t>& rows, uint16_t row_bytes) {
  const size_t words = row_bytes / 8;
  const size_t count = rows.size() / words;
  std::vector<uint64_t> packed(rows);
  auto* bytes = reinterpret_cast<unsigned char*>(packed.data());
  std::vector<uint64_t> row(words);
  const std::vector<uint64_t> zeros(words);
  for (size_t i = 0; i < count; ++i) {
    memcpy(row.data(), rows.data() + i * words, row_bytes);
    ToDifferences(row.data(), i == 0 ? zeros.data() : rows.data() + (i - 1) * words, words);
    const auto* from = reinterpret_cast<const unsigned char*>(row.data());
    for (size_t b = 0; b < row_bytes; ++b) bytes[b * count + i] = from[b];
  }
  return packed;
}

std::vector<uint64_t> UnpackRows(const std::vector<uint64_t>& packed, uint16_t row_bytes) {
  const size_t words = row_bytes / 8;
  const size_t count = packed.size() / words;
  std::vector<uint64_t> rows(packed);
  const auto* bytes = reinterpret_cast<const unsigned char*>(packed.data());
  const std::vector<uint64_t> zeros(words);
  for (size_t i = 0; i < count; ++i) {
    uint64_t* row = rows.data() + i * words;
    auto* to = reinterpret_cast<unsigned char*>(row);
    for (size_t b = 0; b < row_bytes; ++b) to[b] = bytes[b * count + i];
    FromDifferences(row, i == 0 ? zeros.data() : row - words, words);
  }
  return rows;
}

}  // namespace trainprof::recording
