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

inline const char* SkipSpace(const char* p) {
  while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') ++p;
  return p;
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

// A plain integer of at most 18 digits at p; nullptr when there is none, or when the number goes on
// as something else ('.', 'e', a 19th digit, a leading zero).
inline const char* ParseSmallInteger(const char* p, int64_t& value) {
  const bool negative = *p == '-';
  p += negative ? 1 : 0;
  const char* first = p;
  int64_t v = 0;
  while (IsDigit(*p) && p - first < 18) v = v * 10 + (*p++ - '0');
  if (p == first || (*first == '0' && p - first > 1) || (negative && v == 0)) return nullptr;
  const char next = *p;
  if (IsDigit(next) || next == '.' || (next | 0x20) == 'e') return nullptr;
  value = negative ? -v : v;
  return p;
}

// Times are kept within +-4e18 ns (126 years), so that the difference of any two fits 64 bits.
inline constexpr int64_t kMaxTimeNs = 4'000'000'000'000'000'000;

// Decimal microseconds with at most three decimals at p, as nanoseconds; nullptr when the number
// has another form or is beyond kMaxTimeNs (see ScaledDecimal). Exact.
inline const char* ParseMicroseconds(const char* p, int64_t& ns) {
  const bool negative = *p == '-';
  p += negative ? 1 : 0;
  const char* first = p;
  uint64_t v = 0;
  while (IsDigit(*p) && p - first < 16) v = v * 10 + static_cast<uint64_t>(*p++ - '0');
  if (p == first) return nullptr;
  if (*p == '.') {
    ++p;
    int decimals = 0;
    for (; decimals < 3 && IsDigit(*p); ++decimals) {
      v = v * 10 + static_cast<uint64_t>(*p++ - '0');
    }
    if (decimals == 0) return nullptr;
    for (; decimals < 3; ++decimals) v *= 10;
  } else {
    v *= 1000;
  }
  if (IsDigit(*p) || *p == '.' || (*p | 0x20) == 'e' || v > kMaxTimeNs) return nullptr;
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
