// The inner loops of reading JSON: white space, string ends, numbers. All work on a JsonWindow's
// bytes: they may look up to JsonWindow::kPadding bytes past its end, where zeros stand.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace trainprof::json {

inline bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The first byte at or after p that is no white space. None or one is common, and so is the
// indentation of a new line.
[[gnu::always_inline]] inline const char* SkipSpace(const char* p) {
  if (!IsSpace(*p)) return p;
  if (!IsSpace(*++p)) return p;
#if defined(__SSE2__)
  while (true) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto equal = [&](char c) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); };
    const __m128i space =
        _mm_or_si128(_mm_or_si128(equal(' '), equal('\n')), _mm_or_si128(equal('\r'), equal('\t')));
    const auto other = ~static_cast<uint32_t>(_mm_movemask_epi8(space)) & 0xFFFF;
    if (other != 0) return p + std::countr_zero(other);
    p += sizeof(bytes);
  }
#else
  while (IsSpace(*p)) ++p;
  return p;
#endif
}

inline bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// The first byte at or after p that is a quote, a backslash, a control character or not ASCII.
inline const char* FindSpecial(const char* p) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i space = _mm_set1_epi8(' ');
  while (true) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    // As signed bytes, control characters and bytes >= 0x80 are below ' '.
    const __m128i special =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                     _mm_cmplt_epi8(bytes, space));
    const auto mask = static_cast<uint32_t>(_mm_movemask_epi8(special));
    if (mask != 0) return p + std::countr_zero(mask);
    p += 16;
  }
#else
  while (*p != '"' && *p != '\\' && static_cast<signed char>(*p) >= ' ') ++p;
  return p;
#endif
}

// Whether the whole text is one decimal integer.
inline bool WholeInteger(std::string_view text, int64_t& value) {
  if (text.empty()) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// The bytes that end a bare token: a number, true, or something odd like N/A.
inline const char* SkipBare(const char* p) {
  while (static_cast<unsigned char>(*p) > ' ' && *p != ',' && *p != '}' && *p != ']' && *p != '"' &&
         *p != '{' && *p != '[' && *p != ':') {
    ++p;
  }
  return p;
}

// The value of the digits at p, of at most eight; `count` says how many there are.
[[gnu::always_inline]] inline uint64_t EightDigits(const char* p, size_t& count) {
  if constexpr (std::endian::native == std::endian::little) {
    constexpr uint64_t kEach = 0x0101010101010101;  // times a byte: that byte eight times
    uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    word ^= kEach * '0';  // digits become 0 to 9, the first in the lowest byte
    const uint64_t others = (((word & kEach * 0x7F) + kEach * (0x7F - 9)) | word) & kEach * 0x80;
    if (others != 0) {
      count = static_cast<size_t>(std::countr_zero(others)) / 8;
      if (count == 0) return 0;
      word <<= 64 - 8 * count;  // as if zeros stood before them
    } else {
      count = 8;
    }
    // Neighbours join: to two digits, four, eight.
    word = word * 10 + (word >> 8);
    constexpr uint64_t kPairs = 0x000000FF000000FF;
    return ((word & kPairs) * (1'000'000 * (uint64_t{1} << 32) + 100) +
            ((word >> 16) & kPairs) * (10'000 * (uint64_t{1} << 32) + 1)) >>
           32;
  } else {
    uint64_t value = 0;
    for (count = 0; count < 8 && IsDigit(p[count]); ++count) {
      value = value * 10 + static_cast<uint64_t>(p[count] - '0');
    }
    return value;
  }
}

// The digits at p, eight at a time; p moves past them. Stops after 24: with more than 19 of them
// the value is meaningless, callers ask for fewer.
[[gnu::always_inline]] inline uint64_t ParseDigits(const char*& p) {
  static constexpr uint64_t kTenTo[] = {1,       10,        100,        1000,       10'000,
                                        100'000, 1'000'000, 10'000'000, 100'000'000};
  constexpr size_t kChunk = 8;
  uint64_t value = 0;
  size_t count = kChunk;
  for (int chunk = 0; chunk < 3 && count == kChunk; ++chunk, p += count) {
    const uint64_t eight = EightDigits(p, count);
    value = value * kTenTo[count] + eight;
  }
  return value;
}

// A plain integer of at most 18 digits at p; nullptr when there is none, or when the number goes on
// as something else ('.', 'e', a 19th digit, a leading zero).
[[gnu::always_inline]] inline const char* ParseSmallInteger(const char* p, int64_t& value) {
  const bool negative = *p == '-';
  p += negative ? 1 : 0;
  const char* first = p;
  const auto v = static_cast<int64_t>(ParseDigits(p));
  const auto digits = p - first;
  if (digits == 0 || digits > 18) return nullptr;
  if ((*first == '0' && digits > 1) || (negative && v == 0)) return nullptr;
  if (*p == '.' || (*p | 0x20) == 'e') return nullptr;
  value = negative ? -v : v;
  return p;
}

// Times are kept within +-4e18 ns (126 years), so that the difference of any two fits 64 bits.
inline constexpr int64_t kMaxTimeNs = 4'000'000'000'000'000'000;

// Decimal microseconds with at most three decimals at p, as nanoseconds; nullptr when the number
// has another form or is beyond kMaxTimeNs (see ScaledDecimal). Exact.
[[gnu::always_inline]] inline const char* ParseMicroseconds(const char* p, int64_t& ns) {
  static constexpr uint64_t kNsOfDecimals[] = {0, 100, 10, 1};
  const bool negative = *p == '-';
  p += negative ? 1 : 0;
  const char* first = p;
  uint64_t v = ParseDigits(p);
  if (p == first || p - first > 16) return nullptr;
  v *= 1000;
  if (*p == '.') {
    const char* point = p++;
    const uint64_t fraction = ParseDigits(p);
    const auto decimals = p - point - 1;
    if (decimals == 0 || decimals > 3) return nullptr;
    v += fraction * kNsOfDecimals[decimals];
  }
  if (*p == '.' || (*p | 0x20) == 'e' || v > kMaxTimeNs) return nullptr;
  ns = negative ? -static_cast<int64_t>(v) : static_cast<int64_t>(v);
  return p;
}

struct Scaled {
  int64_t value = 0;
  bool rounded = false;  // digits below 1 were rounded away (half away from zero)
};

// Any JSON number times 10^shift as an integer, without a double on the way; nullopt when the text
// is no number or the result is beyond kMaxTimeNs.
std::optional<Scaled> ScaledDecimal(std::string_view text, int shift);

}  // namespace trainprof::json
