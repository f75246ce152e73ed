#include "trace/recording/read/payload_values.h"

#include <cmath>
#include <cstring>

#include "trace/base/utf8.h"

namespace trainprof::recording {
namespace {

using enum PayloadValueKind;

// NVTX_PAYLOAD_ENTRY_TYPE_*, of 64-bit Linux.
constexpr PayloadValueType kFirstTypes[] = {
    {},
    {kSigned, 1},    // CHAR
    {kUnsigned, 1},  // UCHAR
    {kSigned, 2},    // SHORT
    {kUnsigned, 2},
    {kSigned, 4},  // INT
    {kUnsigned, 4},
    {kSigned, 8},  // LONG
    {kUnsigned, 8},
    {kSigned, 8},  // LONGLONG
    {kUnsigned, 8},
    {kSigned, 1},  // INT8
    {kUnsigned, 1},
    {kSigned, 2},
    {kUnsigned, 2},
    {kSigned, 4},
    {kUnsigned, 4},
    {kSigned, 8},
    {kUnsigned, 8},
    {kFloat, 4},
    {kFloat, 8},
    {kHex, 16},      // LONGDOUBLE
    {kUnsigned, 8},  // SIZE
    {kHex, 8},       // ADDRESS
    {kSigned, 4},    // WCHAR
    {kUnsigned, 1},  // CHAR8
    {kUnsigned, 2},
    {kUnsigned, 4},
};
constexpr uint64_t kChar = 1;
constexpr uint64_t kFloat16 = 42;
constexpr uint64_t kBf16 = 50;

double HalfOf(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int fraction = bits & 0x3FF;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1F) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction | 0x400, exponent - 25);
}

}  // namespace

PayloadValueType PayloadValueTypeOf(uint64_t type) {
  if (type < std::size(kFirstTypes)) return kFirstTypes[type];
  switch (type) {
    case 32:  // BYTE
      return {kHex, 1};
    case 33:  // INT128, UINT128
    case 34:
    case 45:  // FLOAT128
      return {kHex, 16};
    case kFloat16:
    case kBf16:
      return {kFloat, 2};
    case 43:  // FLOAT32
    case 52:  // TF32
      return {kFloat, 4};
    case 44:  // FLOAT64
      return {kFloat, 8};
    case 68:  // CATEGORY, COLOR_ARGB, PID_UINT32, TID_UINT32
    case 69:
    case 71:
    case 73:
      return {kUnsigned, 4};
    case 70:  // SCOPE_ID, PID_UINT64, TID_UINT64
    case 72:
    case 74:
      return {kUnsigned, 8};
    case 75:  // CSTRING
    case 76:
      return {kText, 1};
    case 77:
      return {kText, 2};
    case 78:
      return {kText, 4};
    default:
      return {};
  }
}

bool IsCharacterType(uint64_t type) { return type == kChar || (type >= 24 && type <= 27); }

uint64_t IntegerOf(std::string_view bytes, bool is_signed) {
  uint64_t value = 0;
  memcpy(&value, bytes.data(), bytes.size());
  const auto unused = static_cast<int>(64 - 8 * bytes.size());
  if (!is_signed || unused == 0) return value;
  return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
}

double FloatOf(uint64_t type, std::string_view bytes) {
  const uint64_t bits = IntegerOf(bytes, false);
  if (bytes.size() == 8) {
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  if (type == kFloat16) return HalfOf(static_cast<uint16_t>(bits));
  const auto single_bits = static_cast<uint32_t>(type == kBf16 ? bits << 16 : bits);
  float value = 0;
  memcpy(&value, &single_bits, sizeof value);
  return static_cast<double>(value);
}

std::string HexBytesOf(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[c & 0xF];
  }
  return text;
}

std::string HexNumberOf(std::string_view bytes) {
  const std::string digits = HexBytesOf(std::string(bytes.rbegin(), bytes.rend()));
  const size_t first = digits.find_first_not_of('0');
  return "0x" + (first == std::string::npos ? "0" : digits.substr(first));
}

std::string Utf8Of(std::string_view bytes, uint32_t unit_bytes) {
  bool repaired = false;
  if (unit_bytes == 1) return RepairUtf8(bytes.substr(0, bytes.find('\0')), &repaired);
  const size_t count = bytes.size() / unit_bytes;
  const auto unit = [&](size_t i) {
    return i < count
               ? static_cast<uint32_t>(IntegerOf(bytes.substr(i * unit_bytes, unit_bytes), false))
               : 0;
  };
  std::string text;
  for (size_t i = 0; i < count && unit(i) != 0; ++i) {
    uint32_t c = unit(i);
    const uint32_t low = unit(i + 1);
    if (unit_bytes == 2 && c >= 0xD800 && c < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
      ++i;
    }
    AppendUtf8(c, text);
  }
  return text;
}

}  // namespace trainprof::recording
