#include "trace/recording/row_codec.h"

#include <algorithm>
#include <cstddef>
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

// The first two words of each row: its begin, and its end.
void UnpackTimes(const unsigned char* planes, size_t count, size_t words, uint64_t* rows) {
  const auto difference = [&](size_t word, size_t i) {
    uint64_t code = 0;
    for (size_t b = 8; b-- > 0;) code = code << 8 | planes[(word * 8 + b) * count + i];
    return UnZigZag(code);
  };
  uint64_t begin = 0;
  for (size_t i = 0; i < count; ++i, rows += words) {
    begin += difference(0, i);
    rows[0] = begin;
    rows[1] = begin + difference(1, i);
  }
}

// Whether each row repeats the value of the first: all further differences are 0.
bool IsConstant(const unsigned char* planes, size_t count) {
  for (size_t b = 0; b < sizeof(uint32_t); ++b, planes += count) {
    uint64_t any = 0;
    size_t i = 1;
    for (; i + 8 <= count; i += 8) {
      uint64_t word;
      memcpy(&word, planes + i, sizeof word);
      any |= word;
    }
    for (; i < count; ++i) any |= planes[i];
    if (any != 0) return false;
  }
  return true;
}

// A column of 4-byte values; `out` is where the first row has it.
void UnpackColumn(const unsigned char* planes, size_t rows, size_t row_bytes, unsigned char* out) {
  uint32_t value = 0;
  for (size_t i = 0; i < rows; ++i, out += row_bytes) {
    const uint32_t code = planes[i] | uint32_t{planes[rows + i]} << 8 |
                          uint32_t{planes[2 * rows + i]} << 16 |
                          uint32_t{planes[3 * rows + i]} << 24;
    value += UnZigZag(code);
    memcpy(out, &value, sizeof value);
  }
}

// Copies the first row into all others.
void Repeat(unsigned char* rows, size_t count, size_t row_bytes) {
  for (size_t done = 1; done < count;) {
    const size_t more = std::min(done, count - done);
    memcpy(rows + done * row_bytes, rows, more * row_bytes);
    done += more;
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

// What holds for all rows is written once and copied; the rest is written over it.
void UnpackRows(const std::vector<uint64_t>& packed, uint16_t row_bytes,
                std::vector<uint64_t>& rows) {
  const size_t words = row_bytes / 8;
  const size_t count = packed.size() / words;
  rows.resize(packed.size());
  std::copy(packed.begin() + static_cast<ptrdiff_t>(count * words), packed.end(),
            rows.begin() + static_cast<ptrdiff_t>(count * words));
  if (count == 0) return;
  const auto* planes = reinterpret_cast<const unsigned char*>(packed.data());
  auto* out = reinterpret_cast<unsigned char*>(rows.data());
  constexpr size_t kColumnBytes = sizeof(uint32_t);
  std::vector<size_t> varying;  // offsets in a row
  for (size_t at = kTimeWords * 8; at < row_bytes; at += kColumnBytes) {
    const unsigned char* column = planes + at * count;
    uint32_t code = 0;
    for (size_t b = kColumnBytes; b-- > 0;) code = code << 8 | column[b * count];
    const uint32_t first = UnZigZag(code);
    memcpy(out + at, &first, sizeof first);
    if (!IsConstant(column, count)) varying.push_back(at);
  }
  Repeat(out, count, row_bytes);
  for (const size_t at : varying) UnpackColumn(planes + at * count, count, row_bytes, out + at);
  UnpackTimes(planes, count, words, rows.data());
}

}  // namespace trainprof::recording
