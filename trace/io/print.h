// The one way to a terminal: everything that trainprof's programs print for people goes through
// here (tests/house/check_house.py), so that nothing of a trace can reach a terminal as a command
// to it.
//
//   Print(stderr, "trainprof report: {}\n", error);  // `error` is shown as one line
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "trace/io/printable.h"

namespace trainprof {

// Writes it as it is, for programs; text for people goes through the functions below. False when
// it could not be written, which the end of the program will report.
bool PrintRaw(std::FILE* out, std::string_view text);

// Several lines. `styled`: bold and colours stay.
void PrintText(std::FILE* out, std::string_view text, bool styled = false);

// The format is ours; arguments that are texts are anybody's, and become one line each.
template <class... Args>
void Print(std::FILE* out, fmt::format_string<const Args&...> format, const Args&... args) {
  [[maybe_unused]] const auto harmless = [](const auto& value) {
    if constexpr (std::is_convertible_v<decltype(value), std::string_view>) {
      return OneLine(value);
    } else {
      return value;
    }
  };
  const auto print = [&](const auto&... values) {
    PrintRaw(out, fmt::vformat(fmt::string_view(format), fmt::make_format_args(values...)));
  };
  print(harmless(args)...);
}

// errno of the first failed write to standard output, or 0.
int StandardOutputError();

}  // namespace trainprof
