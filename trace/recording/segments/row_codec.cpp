#include "trace/recording/segments/row_codec.h"

#include <algorithm>
#include <bit>
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

// A row's first two words are its begin and its end; 4-byte columns follow, the first of them the
// correlation, the others its look.
constexpr size_t kTimeWords = 2;
constexpr size_t kCorrelationAt = kTimeWords * 8;
constexpr size_t kLookAt = kCorrelationAt + 4;

void ToDifferences(uint64_t* row, const uint64_t* before, size_t words) {
  row[1] = ZigZag(row[1] - row[0]);
  for (size_t w = words; w-- > kTimeWords;) {
    const auto low = static_cast<uint32_t>(row[w]) - static_cast<uint32_t>(before[w]);
    const auto high = static_cast<uint32_t>(row[w] >> 32) - static_cast<uint32_t>(before[w] >> 32);
    row[w] = uint64_t{ZigZag(high)} << 32 | ZigZag(low);
  }
  row[0] = ZigZag(row[0] - before[0]);
}

template <class Value>
Value ValueAt(const void* bytes, size_t at) {
  Value value;
  memcpy(&value, static_cast<const char*>(bytes) + at, sizeof value);
  return value;
}

// The first row as it is, and of the differences of all others (plane b: their bytes b) those
// planes that are not 0 throughout.
struct Planes {
  size_t count = 0;                           // rows but the first
  std::vector<uint64_t> first;                // row
  std::vector<const unsigned char*> of_byte;  // nullptr: zeros
};

bool IsZero(const unsigned char* plane, size_t count) {
  uint64_t any = 0;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) any |= ValueAt<uint64_t>(plane, i);
  for (; i < count; ++i) any |= plane[i];
  return any == 0;
}

// Encoding 1 has all planes, and the first row's differences to zeros in them.
bool FindAllPlanes(const std::vector<uint64_t>& packed, size_t words, uint16_t row_bytes,
                   Planes& planes) {
  if (packed.size() != words) return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(packed.data());
  const size_t rows = planes.count + 1;
  for (size_t b = 0; b < row_bytes; ++b) {
    const unsigned char* plane = bytes + b * rows;
    reinterpret_cast<unsigned char*>(planes.first.data())[b] = plane[0];
    planes.of_byte[b] = IsZero(plane + 1, planes.count) ? nullptr : plane + 1;
  }
  uint64_t* first = planes.first.data();
  first[0] = UnZigZag(first[0]);
  first[1] = UnZigZag(first[1]) + first[0];
  for (size_t w = kTimeWords; w < planes.first.size(); ++w) {
    first[w] = uint64_t{UnZigZag(static_cast<uint32_t>(first[w] >> 32))} << 32 |
               UnZigZag(static_cast<uint32_t>(first[w]));
  }
  return true;
}

size_t MaskWords(uint16_t row_bytes) { return (row_bytes + size_t{63}) / 64; }

// Encoding 2: a bit for each plane that is there, the first row, those planes.
bool FindPlanes(const std::vector<uint64_t>& packed, size_t rest_words, uint16_t row_bytes,
                Planes& planes) {
  const size_t mask_words = MaskWords(row_bytes);
  const size_t head_words = mask_words + planes.first.size();
  if (packed.size() < head_words) return false;
  size_t there = 0;
  for (size_t w = 0; w < mask_words; ++w) there += static_cast<size_t>(std::popcount(packed[w]));
  if (packed.size() != head_words + (there * planes.count + 7) / 8 + rest_words) return false;
  std::copy_n(packed.data() + mask_words, planes.first.size(), planes.first.data());
  const auto* plane = reinterpret_cast<const unsigned char*>(packed.data() + head_words);
  for (size_t b = 0; b < row_bytes; ++b) {
    const bool is_there = (packed[b / 64] >> b % 64 & 1) != 0;
    planes.of_byte[b] = is_there ? plane : nullptr;
    if (is_there) plane += planes.count;
  }
  return true;
}

// The numbers whose bytes are the planes from `at` on.
template <class Code>
void CodesAt(const Planes& planes, size_t at, std::vector<Code>& codes) {
  codes.assign(planes.count, 0);
  for (size_t b = 0; b < sizeof(Code); ++b) {
    const unsigned char* plane = planes.of_byte[at + b];
    if (plane == nullptr) continue;
    for (size_t i = 0; i < planes.count; ++i) codes[i] |= static_cast<Code>(plane[i]) << 8 * b;
  }
}

void UnpackColumns(const Planes& planes, RowRuns& runs) {
  const size_t rows = planes.count + 1;
  std::vector<uint64_t> codes;
  runs.begin_ns.resize(rows);
  auto begin = planes.first[0];
  CodesAt(planes, 0, codes);
  runs.begin_ns[0] = static_cast<int64_t>(begin);
  for (size_t i = 1; i < rows; ++i) {
    runs.begin_ns[i] = static_cast<int64_t>(begin += UnZigZag(codes[i - 1]));
  }
  runs.end_ns.resize(rows);
  CodesAt(planes, 8, codes);
  runs.end_ns[0] = static_cast<int64_t>(planes.first[1]);
  for (size_t i = 1; i < rows; ++i) {
    const auto from = static_cast<uint64_t>(runs.begin_ns[i]);
    runs.end_ns[i] = static_cast<int64_t>(from + UnZigZag(codes[i - 1]));
  }
  std::vector<uint32_t> small_codes;
  runs.correlation.resize(rows);
  auto correlation = ValueAt<uint32_t>(planes.first.data(), kCorrelationAt);
  CodesAt(planes, kCorrelationAt, small_codes);
  runs.correlation[0] = correlation;
  for (size_t i = 1; i < rows; ++i) {
    runs.correlation[i] = correlation += UnZigZag(small_codes[i - 1]);
  }
}

// A run begins where any byte of the look differs.
void FindRuns(const Planes& planes, RowRuns& runs) {
  std::vector<unsigned char> changed(planes.count, 0);
  for (size_t b = kLookAt; b < planes.of_byte.size(); ++b) {
    const unsigned char* plane = planes.of_byte[b];
    if (plane == nullptr) continue;
    for (size_t i = 0; i < planes.count; ++i) changed[i] |= plane[i];
  }
  runs.run_begin.assign(1, 0);
  for (uint32_t i = 0; i < planes.count; ++i) {
    if (changed[i] != 0) runs.run_begin.push_back(i + 1);
  }
  runs.run_begin.push_back(static_cast<uint32_t>(planes.count) + 1);
}

void UnpackLooks(const Planes& planes, RowRuns& runs) {
  const size_t words = planes.first.size();
  runs.looks.reserve(runs.runs() * words);
  for (size_t run = 0; run < runs.runs(); ++run) {
    runs.looks.insert(runs.looks.end(), planes.first.begin(), planes.first.end());
  }
  constexpr size_t kColumnBytes = sizeof(uint32_t);
  for (size_t at = kLookAt; at < words * 8; at += kColumnBytes) {
    const unsigned char* const* column = planes.of_byte.data() + at;
    if (std::all_of(column, column + kColumnBytes, [](auto* plane) { return plane == nullptr; })) {
      continue;
    }
    auto value = ValueAt<uint32_t>(planes.first.data(), at);
    for (size_t run = 1; run < runs.runs(); ++run) {
      uint32_t code = 0;
      for (size_t b = 0; b < kColumnBytes; ++b) {
        if (column[b] != nullptr) code |= uint32_t{column[b][runs.run_begin[run] - 1]} << 8 * b;
      }
      value += UnZigZag(code);
      memcpy(reinterpret_cast<char*>(runs.looks.data() + run * words) + at, &value, sizeof value);
    }
  }
}

bool SameLook(const uint64_t* a, const uint64_t* b, size_t words) {
  uint64_t differences = a[kTimeWords] >> 32 ^ b[kTimeWords] >> 32;
  for (size_t w = kTimeWords + 1; w < words; ++w) differences |= a[w] ^ b[w];
  return differences == 0;
}

// The products do not wait for each other.
uint64_t HashOfLook(const uint64_t* look, size_t words) {
  uint64_t hash = look[kTimeWords] >> 32;
  uint64_t factor = 0x9E3779B97F4A7C15;
  for (size_t w = kTimeWords + 1; w < words; ++w, factor += 0xC2B2AE3D27D4EB4E) {
    hash += std::rotl(look[w] * factor, 32);
  }
  return hash * 0x9E3779B97F4A7C15 >> 32;
}

// From a look for each run to one for all runs that look the same, nearly: where hashes collide too
// often there may be more.
void ShareLooks(size_t words, RowRuns& runs) {
  constexpr uint32_t kFree = UINT32_MAX;
  constexpr size_t kMostProbes = 16;
  std::vector<uint32_t> slots(std::bit_ceil(2 * runs.runs()), kFree);
  const size_t mask = slots.size() - 1;
  runs.look_of_run.resize(runs.runs());
  uint32_t looks = 0;
  for (size_t run = 0; run < runs.runs(); ++run) {
    const uint64_t* look = runs.looks.data() + run * words;
    size_t at = HashOfLook(look, words) & mask;
    const auto is_another = [&] {
      return slots[at] != kFree && !SameLook(runs.looks.data() + slots[at] * words, look, words);
    };
    for (size_t probe = 1; probe < kMostProbes && is_another(); ++probe) at = (at + 1) & mask;
    if (slots[at] == kFree || is_another()) {
      std::copy_n(look, words, runs.looks.data() + looks * words);
      slots[at] = looks++;
    }
    runs.look_of_run[run] = slots[at];
  }
  runs.looks.resize(looks * words);
}

void Clear(RowRuns& runs) {
  runs.begin_ns.clear();
  runs.end_ns.clear();
  runs.correlation.clear();
  runs.run_begin.clear();
  runs.look_of_run.clear();
  runs.looks.clear();
}

}  // namespace

void RunsOf(const std::vector<uint64_t>& rows, uint16_t row_bytes, RowRuns& runs) {
  const size_t words = row_bytes / 8;
  const size_t count = rows.size() / words;
  Clear(runs);
  runs.rest.assign(rows.begin() + static_cast<ptrdiff_t>(count * words), rows.end());
  for (size_t i = 0; i < count; ++i) {
    const uint64_t* row = rows.data() + i * words;
    runs.begin_ns.push_back(static_cast<int64_t>(row[0]));
    runs.end_ns.push_back(static_cast<int64_t>(row[1]));
    runs.correlation.push_back(ValueAt<uint32_t>(row, kCorrelationAt));
    if (i > 0 && SameLook(row, row - words, words)) continue;
    runs.run_begin.push_back(static_cast<uint32_t>(i));
    runs.looks.insert(runs.looks.end(), row, row + words);
  }
  if (count > 0) runs.run_begin.push_back(static_cast<uint32_t>(count));
  ShareLooks(words, runs);
}

void RowsOf(const RowRuns& runs, uint16_t row_bytes, std::vector<uint64_t>& rows) {
  const size_t words = row_bytes / 8;
  rows.resize(runs.rows() * words + runs.rest.size());
  for (size_t run = 0; run < runs.runs(); ++run) {
    for (size_t i = runs.run_begin[run]; i < runs.run_begin[run + 1]; ++i) {
      uint64_t* row = rows.data() + i * words;
      std::copy_n(runs.looks.data() + runs.look_of_run[run] * words, words, row);
      row[0] = static_cast<uint64_t>(runs.begin_ns[i]);
      row[1] = static_cast<uint64_t>(runs.end_ns[i]);
      memcpy(reinterpret_cast<char*>(row) + kCorrelationAt, &runs.correlation[i], 4);
    }
  }
  std::copy(runs.rest.begin(), runs.rest.end(),
            rows.end() - static_cast<ptrdiff_t>(runs.rest.size()));
}

std::vector<uint64_t> PackRows(const std::vector<uint64_t>& rows, uint16_t row_bytes) {
  const size_t words = row_bytes / 8;
  const size_t count = rows.size() / words;
  if (count == 0) return rows;
  const size_t others = count - 1;
  std::vector<unsigned char> planes(others * row_bytes);
  std::vector<uint64_t> row(words);
  for (size_t i = 1; i < count; ++i) {
    memcpy(row.data(), rows.data() + i * words, row_bytes);
    ToDifferences(row.data(), rows.data() + (i - 1) * words, words);
    const auto* from = reinterpret_cast<const unsigned char*>(row.data());
    for (size_t b = 0; b < row_bytes; ++b) planes[b * others + i - 1] = from[b];
  }
  std::vector<uint64_t> packed(MaskWords(row_bytes));
  packed.insert(packed.end(), rows.data(), rows.data() + words);
  const size_t head_bytes = packed.size() * 8;
  packed.resize(packed.size() + (planes.size() + 7) / 8);
  size_t there = 0;
  for (size_t b = 0; b < row_bytes; ++b) {
    const unsigned char* plane = planes.data() + b * others;
    if (IsZero(plane, others)) continue;
    packed[b / 64] |= uint64_t{1} << b % 64;
    auto* out = reinterpret_cast<unsigned char*>(packed.data()) + head_bytes;
    memcpy(out + there++ * others, plane, others);
  }
  packed.resize(head_bytes / 8 + (there * others + 7) / 8);
  packed.insert(packed.end(), rows.begin() + static_cast<ptrdiff_t>(count * words), rows.end());
  return packed;
}

size_t MostPackedWords(size_t words, uint16_t row_bytes) {
  return words + MaskWords(row_bytes) + 1;
}

bool UnpackRuns(const std::vector<uint64_t>& packed, ChunkEncoding encoding, size_t words,
                uint16_t row_bytes, RowRuns& runs) {
  Clear(runs);
  const size_t row_words = row_bytes / 8;
  const size_t rest_words = words % row_words;
  if (packed.size() < rest_words) return false;
  runs.rest.assign(packed.end() - static_cast<ptrdiff_t>(rest_words), packed.end());
  if (words < row_words) return packed.size() == words;
  Planes planes;
  planes.count = words / row_words - 1;
  planes.first.resize(row_words);
  planes.of_byte.resize(row_bytes);
  const bool found = encoding == ChunkEncoding::kAllPlanes
                         ? FindAllPlanes(packed, words, row_bytes, planes)
                         : FindPlanes(packed, rest_words, row_bytes, planes);
  if (!found) return false;
  UnpackColumns(planes, runs);
  FindRuns(planes, runs);
  UnpackLooks(planes, runs);
  ShareLooks(row_words, runs);
  return true;
}

}  // namespace trainprof::recording
