// The predefined types of NVTX's payload extension: their sizes and their values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainprof::recording {

enum class PayloadValueKind : uint8_t {
  kNone,  // not a type of one value of a fixed size
  kSigned,
  kUnsigned,
  kFloat,
  kHex,   // an address, bytes, or a number that no type of C++ holds
  kText,  // of one or more characters
};

struct PayloadValueType {
  PayloadValueKind kind = PayloadValueKind::kNone;
  uint32_t bytes = 0;  // its alignment too; of kText: of a character
};

// kNone for numbers of schemas and for types that are not read.
PayloadValueType PayloadValueTypeOf(uint64_t type);
// char and its like: one of them is a number, an array of them text.
bool IsCharacterType(uint64_t type);

// `bytes` has the type's size, at most 8 for the integers.
uint64_t IntegerOf(std::string_view bytes, bool is_signed);
double FloatOf(uint64_t type, std::string_view bytes);
// "0x" and the number, low byte first in `bytes`.
std::string HexNumberOf(std::string_view bytes);
// Two digits a byte, in their order.
std::string HexBytesOf(std::string_view bytes);
// UTF-8 of characters of 1, 2 or 4 bytes, up to the first zero; U+FFFD for what is none.
std::string Utf8Of(std::string_view bytes, uint32_t unit_bytes);

}  // namespace trainprof::recording
