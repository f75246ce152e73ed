// JSON strings and raw values outside the hot loops: decoding what has escapes, repairing what is
// wrong, checking nested values, and quoting for output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/formats/io/json_scan.h"

namespace trainprof::json {

// What was repaired while reading a text; added up by the caller.
struct Repairs {
  bool bad_escape = false;         // kept as the backslash and the character
  bool invalid_utf8 = false;       // each bad byte became U+FFFD
  bool control_character = false;  // kept; written back as an escape
  bool nul = false;                // one that no program writes: where a file has a hole
  bool bare_literal = false;       // NaN, Infinity, N/A, nan ...: became a string
  bool odd_number = false;         // 007, +5, 5.: became the number it means

  void Merge(const Repairs& o) {
    bad_escape |= o.bad_escape;
    invalid_utf8 |= o.invalid_utf8;
    control_character |= o.control_character;
    nul |= o.nul;
    bare_literal |= o.bare_literal;
    odd_number |= o.odd_number;
  }
  bool any() const {
    return bad_escape || invalid_utf8 || control_character || nul || bare_literal || odd_number;
  }
};

enum class Scan { kOk, kNeedMore, kBad };

// Decodes a string whose text starts at p (after the quote) into `out`; p moves past the closing
// quote. kNeedMore when the window ends first.
Scan DecodeString(const char*& p, const char* end, std::string& out, Repairs& repairs);

// Passes one JSON value of any kind. Sets `repairs` when the text is not strict JSON; it then has
// to go through Repaired(). Values nest at most kMaxDepth deep (kBad beyond).
inline constexpr int kMaxDepth = 512;
Scan SkipValue(const char*& p, const char* end, Repairs& repairs);

// A value that SkipValue passed, as strict JSON: escapes and literals repaired.
std::string Repaired(std::string_view value);

// Appends text as a quoted JSON string. Invalid UTF-8 is not expected (see DecodeString).
void AppendQuoted(std::string& out, std::string_view text);

// The text with what is no UTF-8 replaced by U+FFFD: for bare tokens, whose bytes may be any.
std::string ValidUtf8(std::string_view text, Repairs& repairs);

// How a bare token reads as JSON.
enum class Bare { kInteger, kBigInteger, kReal, kBigReal, kTrue, kFalse, kNull, kOdd };
struct BareValue {
  Bare kind = Bare::kOdd;
  int64_t integer = 0;
  double real = 0;
  bool odd_number = false;
};
BareValue ReadBare(std::string_view token);

}  // namespace trainprof::json
