#include "trace/io/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "trace/base/utf8.h"

namespace trainprof {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Sorted. Joiners (U+200C, U+200D) are left: scripts and emoji are written with them.
constexpr Range kHarmful[] = {
    {0x00, 0x1f},        // C0: escape sequences begin here
    {0x7f, 0x9f},        // DEL, C1: U+009B begins one too
    {0x61c, 0x61c},      // direction
    {0x180e, 0x180e},    // invisible
    {0x200b, 0x200b},    // invisible
    {0x200e, 0x200f},    // direction
    {0x2028, 0x202e},    // line and paragraph ends, direction
    {0x2060, 0x206f},    // invisible, direction
    {0xfeff, 0xfeff},    // byte order mark
    {0xfff9, 0xfffb},    // annotations
    {0xe0000, 0xe007f},  // tags
};

bool IsHarmful(uint32_t code) {
  return std::any_of(std::begin(kHarmful), std::end(kHarmful),
                     [&](const Range& r) { return code >= r.first && code <= r.last; });
}

// What stands at the begin of a text: a character, or a byte that begins none.
struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool valid = false;
};

Character First(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = Utf8Length(text);
  if (bytes < 2) return {lead, 1, bytes == 1};
  uint32_t code = lead & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  return {code, bytes, true};
}

std::string Escape(const Character& character) {
  switch (character.code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (!character.valid || character.code < 0x80) return fmt::format("\\x{:02x}", character.code);
  if (character.code > 0xffff) return fmt::format("\\U{:08x}", character.code);
  return fmt::format("\\u{:04x}", character.code);
}

// Characters for which `keep` gives a length stay; it looks at the text from the character on.
template <class Keep>
std::string Escaped(std::string_view text, Keep keep) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = First(text);
    size_t length = character.bytes;
    if (character.valid && !IsHarmful(character.code)) {
      out += text.substr(0, length);
    } else if (const size_t kept = keep(text); kept > 0) {
      length = kept;
      out += text.substr(0, length);
    } else {
      out += Escape(character);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string OneLine(std::string_view text) {
  return Escaped(text, [](std::string_view) { return size_t{0}; });
}

std::string SeveralLines(std::string_view text, bool styled) {
  return Escaped(text, [&](std::string_view rest) -> size_t {
    if (rest[0] == '\n' || rest[0] == '\t') return 1;
    if (!styled) return 0;
    for (const std::string_view style : {kStyleEnd, kBold, kRed, kYellow, kCyan}) {
      if (rest.starts_with(style)) return style.size();
    }
    return 0;
  });
}

std::string HarmlessJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Character character = First(json);
    const bool layout = character.code == '\n' || character.code == '\t' || character.code == '\r';
    if (layout || !IsHarmful(character.code) || !character.valid) {
      out += json.substr(0, character.bytes);
    } else if (character.code <= 0xffff) {
      out += fmt::format("\\u{:04x}", character.code);
    } else {
      const uint32_t above = character.code - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (above >> 10), 0xdc00 + (above & 0x3ff));
    }
    json.remove_prefix(character.bytes);
  }
  return out;
}

std::string ShellQuoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@%=,";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted;
  if (OneLine(word) == word) {
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return fmt::format("'{}'", quoted);
  }
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      quoted += fmt::format("\\{}", c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      quoted += fmt::format("\\{:03o}", byte);
    } else {
      quoted += c;
    }
  }
  return fmt::format("$'{}'", quoted);
}

}  // namespace trainprof
