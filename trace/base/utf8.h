// UTF-8: where its characters end, and how they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trainprof {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;

// Bytes of the character that `text` begins with; 0 where it begins with none (overlong forms,
// surrogates and what lies beyond U+10FFFF are none), or ends in it.
inline size_t Utf8Length(std::string_view text) {
  const auto at = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto tail = [&](size_t i) { return (at(i) & 0xC0) == 0x80; };
  if (text.empty()) return 0;
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && at(1) < 0xA0;
    const bool surrogate = lead == 0xED && at(1) > 0x9F;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool outside = (lead == 0xF0 && at(1) < 0x90) || (lead == 0xF4 && at(1) > 0x8F);
    return tail(1) && tail(2) && tail(3) && !outside ? 4 : 0;
  }
  return 0;
}

// The replacement character for a code that is no character's.
void AppendUtf8(uint32_t code, std::string& out);

// `text` with every byte that is not part of valid UTF-8 replaced; *repaired tells whether any was.
std::string RepairUtf8(std::string_view text, bool* repaired);

}  // namespace trainprof
