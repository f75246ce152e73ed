// The careful paths of the JSON reader.
#include "trace/formats/io/json_text.h"

#include <array>
#include <bitset>
#include <cmath>

#include "trace/base/utf8.h"

namespace trainprof::json {
namespace {

// Of the character at p: zeros follow the window's end.
size_t LengthAt(const char* p) { return Utf8Length({p, 4}); }

// Four hex digits at p, or -1.
int32_t Hex4(const char* p) {
  int32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = p[i];
    if (IsDigit(c)) {
      value = value * 16 + (c - '0');
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      value = value * 16 + ((c | 0x20) - 'a' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

// What \x stands for with a one-letter x, or 0.
char SimpleEscape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

// Decodes the escape at p (a backslash); p moves past it.
void DecodeEscape(const char*& p, std::string& out, Repairs& repairs) {
  if (const char simple = SimpleEscape(p[1]); simple != 0) {
    out.push_back(simple);
    p += 2;
    return;
  }
  const int32_t unit = p[1] == 'u' ? Hex4(p + 2) : -1;
  if (unit < 0) {  // keep the backslash; what follows is read as text
    repairs.bad_escape = true;
    out.push_back('\\');
    p += 1;
    return;
  }
  p += 6;
  if (unit < 0xD800 || unit > 0xDFFF) {
    AppendUtf8(static_cast<uint32_t>(unit), out);
    return;
  }
  const int32_t low = unit < 0xDC00 && p[0] == '\\' && p[1] == 'u' ? Hex4(p + 2) : -1;
  if (low < 0xDC00 || low > 0xDFFF) {  // half of a pair
    repairs.bad_escape = true;
    AppendUtf8(kReplacementCharacter, out);
    return;
  }
  AppendUtf8(
      0x10000 + (static_cast<uint32_t>(unit - 0xD800) << 10) + static_cast<uint32_t>(low - 0xDC00),
      out);
  p += 6;
}

void NoteControl(unsigned char c, Repairs& repairs) {
  (c == 0 ? repairs.nul : repairs.control_character) = true;
}

// Passes a string's text without decoding; p is after the opening quote.
Scan SkipString(const char*& p, const char* end, Repairs& repairs) {
  while (true) {
    p = FindSpecial(p);
    if (p >= end) return Scan::kNeedMore;
    const auto c = static_cast<unsigned char>(*p);
    if (c == '"') {
      ++p;
      return Scan::kOk;
    }
    if (c == '\\') {
      if (end - p < 12) {  // an escape (or a pair) may go on past the window
        std::string scratch;
        return DecodeString(p, end, scratch, repairs);
      }
      std::string scratch;
      DecodeEscape(p, scratch, repairs);
    } else if (c < ' ') {
      NoteControl(c, repairs);
      ++p;
    } else {
      const size_t length = LengthAt(p);
      if (length == 0) repairs.invalid_utf8 = true;
      p += length == 0 ? 1 : length;
    }
  }
}

}  // namespace

Scan DecodeString(const char*& p, const char* end, std::string& out, Repairs& repairs) {
  // The end first: then nothing below can run past the window.
  const char* close = p;
  while (true) {
    close = FindSpecial(close);
    if (close >= end) return Scan::kNeedMore;
    if (*close == '"') break;
    close += *close == '\\' ? 2 : 1;
  }
  out.clear();
  while (p < close) {
    const char* special = FindSpecial(p);
    out.append(p, special);
    p = special;
    if (p >= close) break;
    const auto c = static_cast<unsigned char>(*p);
    if (c == '\\') {
      DecodeEscape(p, out, repairs);
    } else if (c < ' ') {
      NoteControl(c, repairs);
      out.push_back(*p++);
    } else if (const size_t length = LengthAt(p); length > 0) {
      out.append(p, length);
      p += length;
    } else {
      repairs.invalid_utf8 = true;
      AppendUtf8(kReplacementCharacter, out);
      ++p;
    }
  }
  p = close + 1;
  return Scan::kOk;
}

std::string ValidUtf8(std::string_view text, Repairs& repairs) {
  bool repaired = false;
  std::string valid = RepairUtf8(text, &repaired);
  repairs.invalid_utf8 |= repaired;
  return valid;
}

BareValue ReadBare(std::string_view token) {
  BareValue value;
  if (token == "true") return {.kind = Bare::kTrue};
  if (token == "false") return {.kind = Bare::kFalse};
  if (token == "null") return {.kind = Bare::kNull};
  std::string_view digits = token;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const bool negative = digits.starts_with('-');
  const std::string_view unsigned_part = digits.substr(negative ? 1 : 0);
  bool plain = !unsigned_part.empty();
  for (char c : unsigned_part) plain = plain && IsDigit(c);
  const char* first = digits.data();
  const char* last = first + digits.size();
  value.odd_number =
      digits.size() != token.size() ||
      (unsigned_part.size() > 1 && unsigned_part[0] == '0' && IsDigit(unsigned_part[1]));
  if (plain && !(negative && unsigned_part.find_first_not_of('0') == std::string_view::npos)) {
    const auto [end, error] = std::from_chars(first, last, value.integer);
    value.kind = error == std::errc() ? Bare::kInteger : Bare::kBigInteger;
    return value;
  }
  if (unsigned_part.empty() || (!IsDigit(unsigned_part[0]) && unsigned_part[0] != '.'))
    return value;
  const auto [end, error] = std::from_chars(first, last, value.real);
  if (end != last || error == std::errc::invalid_argument) return value;
  value.odd_number = value.odd_number || unsigned_part[0] == '.' || unsigned_part.back() == '.' ||
                     unsigned_part.find(".e") != std::string_view::npos ||
                     unsigned_part.find(".E") != std::string_view::npos;
  value.kind = error == std::errc() ? Bare::kReal : Bare::kBigReal;
  return value;
}

namespace {

// Passes a bare token (number, literal, oddity).
Scan SkipBareValue(const char*& p, const char* end, Repairs& repairs) {
  int64_t small = 0;
  if (const char* after = ParseSmallInteger(p, small); after != nullptr && after < end) {
    p = after;
    return Scan::kOk;
  }
  const char* after = SkipBare(p);
  if (after >= end) return Scan::kNeedMore;
  if (after == p) return Scan::kBad;
  const BareValue value = ReadBare({p, static_cast<size_t>(after - p)});
  if (value.kind == Bare::kOdd) repairs.bare_literal = true;
  if (value.odd_number) repairs.odd_number = true;
  p = after;
  return Scan::kOk;
}

// One frame of nesting a bit: true for objects.
using Nesting = std::bitset<kMaxDepth>;

// After an opening bracket or a comma in an object: the key and its colon.
Scan SkipKey(const char*& p, const char* end, Repairs& repairs) {
  if (p >= end) return Scan::kNeedMore;
  if (*p != '"') return Scan::kBad;
  ++p;
  if (const Scan scan = SkipString(p, end, repairs); scan != Scan::kOk) return scan;
  p = SkipSpace(p);
  if (p >= end) return Scan::kNeedMore;
  if (*p != ':') return Scan::kBad;
  p = SkipSpace(p + 1);
  return p < end ? Scan::kOk : Scan::kNeedMore;
}

}  // namespace

Scan SkipValue(const char*& p, const char* end, Repairs& repairs) {
  Nesting is_object;
  int depth = 0;
  while (true) {
    // A value starts at p.
    if (p >= end) return Scan::kNeedMore;
    Scan scan = Scan::kOk;
    if (*p == '{' || *p == '[') {
      if (depth == kMaxDepth) return Scan::kBad;
      is_object[static_cast<size_t>(depth++)] = *p == '{';
      const char close = *p == '{' ? '}' : ']';
      p = SkipSpace(p + 1);
      if (p >= end) return Scan::kNeedMore;
      if (*p != close) {
        if (close == '}') scan = SkipKey(p, end, repairs);
        if (scan != Scan::kOk) return scan;
        continue;
      }
      // The empty object or array closes below.
    } else if (*p == '"') {
      ++p;
      scan = SkipString(p, end, repairs);
    } else {
      scan = SkipBareValue(p, end, repairs);
    }
    if (scan != Scan::kOk) return scan;
    // After a value: close brackets, or go on to the next value.
    while (true) {
      if (depth == 0) return Scan::kOk;
      p = SkipSpace(p);
      if (p >= end) return Scan::kNeedMore;
      const bool in_object = is_object[static_cast<size_t>(depth - 1)];
      if (*p == (in_object ? '}' : ']')) {
        ++p;
        --depth;
        continue;
      }
      if (*p != ',') return Scan::kBad;
      p = SkipSpace(p + 1);
      if (in_object) scan = SkipKey(p, end, repairs);
      if (scan != Scan::kOk) return scan;
      break;
    }
  }
}

std::string Repaired(std::string_view value) {
  // A private copy with padding, so that the scanners may look past its end.
  std::string padded(value);
  padded.append(64, '\0');
  const char* p = padded.data();
  const char* end = p + value.size();
  std::string out;
  std::string text;
  Repairs ignored;
  while (p < end) {
    if (*p == '"') {
      ++p;
      if (DecodeString(p, end, text, ignored) != Scan::kOk) break;
      AppendQuoted(out, text);
    } else if (*p == '{' || *p == '}' || *p == '[' || *p == ']' || *p == ',' || *p == ':' ||
               static_cast<unsigned char>(*p) <= ' ') {
      out.push_back(*p++);
    } else {
      const char* after = SkipBare(p);
      const std::string_view token(p, static_cast<size_t>(after - p));
      const BareValue bare = ReadBare(token);
      if (bare.kind == Bare::kOdd) {
        AppendQuoted(out, ValidUtf8(token, ignored));
      } else if (bare.odd_number) {
        std::array<char, 32> digits;
        const auto result = bare.kind == Bare::kInteger
                                ? std::to_chars(digits.begin(), digits.end(), bare.integer)
                                : std::to_chars(digits.begin(), digits.end(), bare.real);
        const bool exact = bare.kind == Bare::kInteger || bare.kind == Bare::kReal;
        if (exact) {
          out.append(digits.begin(), result.ptr);
        } else {
          AppendQuoted(out, token);
        }
      } else {
        out += token;
      }
      p = after;
    }
  }
  return out;
}

void AppendQuoted(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out.push_back('"');
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < ' ') {
      out += "\\u00";
      out.push_back(kHex[c >> 4]);
      out.push_back(kHex[c & 15]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

std::optional<Scaled> ScaledDecimal(std::string_view text, int shift) {
  size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) ++i;
  std::string digits;  // significant digits, without leading zeros
  int64_t point = 0;   // value = 0.digits * 10^point, before the exponent
  bool any = false;
  bool after_point = false;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !after_point) {
      after_point = true;
    } else if (IsDigit(text[i])) {
      any = true;
      if (text[i] != '0' || !digits.empty()) {
        digits.push_back(text[i]);
        if (!after_point) ++point;
      } else if (after_point) {
        --point;
      }
    } else {
      break;
    }
  }
  if (!any) return std::nullopt;
  int64_t exponent = 0;
  if (i < text.size() && (text[i] | 0x20) == 'e') {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
    if (error == std::errc::result_out_of_range) return std::nullopt;
    if (error != std::errc() || exponent > 100'000'000 || exponent < -100'000'000) {
      return std::nullopt;
    }
    i = static_cast<size_t>(end - text.data());
  }
  if (i != text.size()) return std::nullopt;
  point += exponent + shift;
  Scaled scaled;
  if (digits.empty()) return scaled;
  constexpr int64_t kMaxDigits = 19;  // of kMaxTimeNs
  if (point > kMaxDigits) return std::nullopt;
  uint64_t value = 0;
  for (size_t k = 0; static_cast<int64_t>(k) < point; ++k) {
    value = value * 10 + static_cast<uint64_t>(k < digits.size() ? digits[k] - '0' : 0);
  }
  const auto first_dropped = static_cast<size_t>(point < 0 ? 0 : point);
  for (size_t k = first_dropped; k < digits.size(); ++k) scaled.rounded |= digits[k] != '0';
  if (point >= 0 && first_dropped < digits.size() && digits[first_dropped] >= '5') ++value;
  if (value > static_cast<uint64_t>(kMaxTimeNs)) return std::nullopt;
  scaled.value = negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
  return scaled;
}

}  // namespace trainprof::json
