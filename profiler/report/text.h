// Small helpers for text on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/finding.h"

namespace trainprof {

inline constexpr size_t kTextWidth = 100;  // columns

// Bold and colour, or nothing: a pipe gets plain text.
class Style {
 public:
  explicit Style(bool color) : color_(color) {}
  std::string Bold(std::string_view text) const;
  std::string Severity(trainprof::Severity severity) const;  // "[error]", coloured

 private:
  bool color_;
};

// Breaks at spaces so that no line passes `width`; further lines start with `indent` spaces.
std::string Wrap(std::string_view text, size_t indent, size_t width);

// A bar of block characters for a share in [0, 1].
std::string Bar(double share, size_t cells);

// At most `most` bytes, without a part of a character: a terminal would show a stray byte.
std::string_view CutAtCharacter(std::string_view text, size_t most);

// A name from a trace in at most `most` bytes, of which three are "..." where it is cut.
std::string ShortName(std::string_view name, size_t most);

// A sentence's first words in at most `most` bytes, with " ..." where words are left out.
std::string FirstWords(std::string_view text, size_t most);

std::string Join(const std::vector<std::string>& words);  // "a, b, c"

// 1234 -> "1.2 KiB"
std::string HumanBytes(uint64_t bytes);

// True when `fd` is a terminal that is not dumb, and NO_COLOR is not set (no-color.org).
bool WantsColor(int fd);

}  // namespace trainprof
