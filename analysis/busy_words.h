// What a busy device does, in words: that it runs something is not that it computes.
#pragma once

#include <fmt/format.h>

#include <string>

namespace trainprof {

// Of shares of the window: " (kernels 43.0 %, copies alone 51.0 %)"; "" where copies and
// communication take less than 1 % of it beside no kernel.
inline std::string BusyParts(double kernels, double copies, double communication) {
  constexpr double kWorthNaming = 0.01;
  if (copies < kWorthNaming && communication < kWorthNaming) return {};
  std::string text = fmt::format(" (kernels {:.1f} %", 100 * kernels);
  if (copies >= kWorthNaming) text += fmt::format(", copies alone {:.1f} %", 100 * copies);
  if (communication >= kWorthNaming) {
    text += fmt::format(", communication alone {:.1f} %", 100 * communication);
  }
  return text + ")";
}

}  // namespace trainprof
