#include "profiler/report/text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "trace/io/printable.h"

namespace trainprof {

std::string Style::Bold(std::string_view text) const {
  return color_ ? fmt::format("{}{}{}", kBold, text, kStyleEnd) : std::string(text);
}

std::string Style::Severity(trainprof::Severity severity) const {
  constexpr std::string_view kColors[] = {kCyan, kYellow, kRed};  // note, warning, error
  const std::string text = fmt::format("[{}]", Name(severity));
  return color_ ? fmt::format("{}{}{}", kColors[static_cast<size_t>(severity)], text, kStyleEnd)
                : text;
}

std::string Wrap(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > indent && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string Bar(double share, size_t cells) {
  const auto filled =
      static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(cells)));
  std::string bar;
  for (size_t i = 0; i < filled; ++i) bar += "█";
  return bar;
}

std::string_view CutAtCharacter(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;  // UTF-8
  return text.substr(0, most);
}

std::string ShortName(std::string_view name, size_t most) {
  constexpr std::string_view kCut = "...";
  if (name.size() <= most) return std::string(name);
  return std::string(CutAtCharacter(name, most - kCut.size())) + std::string(kCut);
}

std::string FirstWords(std::string_view text, size_t most) {
  constexpr std::string_view kCut = " ...";
  if (text.size() <= most) return std::string(text);
  const std::string_view kept = text.substr(0, most - kCut.size() + 1);
  const size_t space = kept.find_last_of(' ');
  if (space == kept.npos) return ShortName(text, most);
  return std::string(kept.substr(0, space)) + std::string(kCut);
}

std::string Join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

bool WantsColor(int fd) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return isatty(fd) == 1 && (no_color == nullptr || *no_color == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

std::string HumanBytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 100 ? 0 : 1, kUnits[unit]);
}

}  // namespace trainprof
