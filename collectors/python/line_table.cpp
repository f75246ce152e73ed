#include "collectors/python/line_table.h"

namespace trainprof {
namespace {

// 3.10: pairs of bytes: how many bytes of code, and how many lines further they are; -128: no line.
int64_t LineOf310(std::span<const uint8_t> table, int64_t line, int64_t instruction) {
  constexpr int8_t kNoLine = -128;
  int64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    end += table[i];
    const auto step = static_cast<int8_t>(table[i + 1]);
    if (step != kNoLine) line += step;
    if (instruction < end) return step == kNoLine ? 0 : line;
  }
  return 0;
}

// Since 3.11: entries that begin with a byte of bit 7, 4 bits of kind and 3 of length; numbers of 6
// bits a byte, low ones first, bit 6 set in all but the last (Objects/locations.md of CPython).
class LocationTable {
 public:
  explicit LocationTable(std::span<const uint8_t> table) : table_(table) {}

  SourceSpan SpanOf(int64_t line, int64_t instruction) {
    int64_t end = 0;
    while (at_ < table_.size()) {
      const uint8_t head = table_[at_++];
      end += ((head & 7) + 1) * kBytesAUnit;
      const SourceSpan span = ReadEntry(head >> 3 & 15, line);
      if (instruction < end) return span;
    }
    return {};
  }

 private:
  static constexpr int64_t kBytesAUnit = 2;
  enum Kind { kOneLine = 10, kNoColumns = 13, kLong = 14, kNoLine = 15 };

  // Moves `line` on to the entry's.
  SourceSpan ReadEntry(int kind, int64_t& line) {
    if (kind == kNoLine) return {};
    if (kind == kLong) return ReadLong(line);
    if (kind == kNoColumns) {
      line += Signed();
      return {line, line, -1, -1};
    }
    if (kind >= kOneLine) {
      line += kind - kOneLine;
      const int64_t column = Byte();
      return {line, line, column, Byte()};
    }
    // Short: the kind holds the column's upper bits, a byte its lower ones and the length.
    const uint8_t rest = Byte();
    const int64_t column = kind << 3 | rest >> 4;
    return {line, line, column, column + (rest & 15)};
  }
  SourceSpan ReadLong(int64_t& line) {
    line += Signed();
    const int64_t end_line = line + Unsigned();
    const int64_t column = int64_t{Unsigned()} - 1;
    return {line, end_line, column, int64_t{Unsigned()} - 1};
  }
  uint8_t Byte() { return at_ < table_.size() ? table_[at_++] : 0; }
  uint32_t Unsigned() {
    uint32_t value = 0;
    for (int shift = 0; at_ < table_.size() && shift < 32; shift += 6) {
      const uint8_t byte = table_[at_++];
      value |= static_cast<uint32_t>(byte & 63) << shift;
      if ((byte & 64) == 0) break;
    }
    return value;
  }
  int64_t Signed() {
    const uint32_t value = Unsigned();
    const int64_t size = value >> 1;
    return (value & 1) != 0 ? -size : size;
  }

  std::span<const uint8_t> table_;
  size_t at_ = 0;
};

}  // namespace

SourceSpan SpanOf(int minor, std::span<const uint8_t> table, int64_t first_line,
                  int64_t instruction) {
  if (instruction < 0) return {first_line, first_line, -1, -1};
  SourceSpan span;
  if (minor == 10) {
    span.line = span.end_line = LineOf310(table, first_line, instruction);
  } else {
    span = LocationTable(table).SpanOf(first_line, instruction);
  }
  return span.line > 0 && span.line <= INT32_MAX ? span : SourceSpan{};
}

}  // namespace trainprof
