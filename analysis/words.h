// Counts, shares and times as people write them, for the sentences of verdict, findings and reports.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace trainprof {

// "1 copy", "12 copies".
inline std::string Counted(int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Of a share in [0, 1]: "34 %", "less than 1 %", "0 %" only where it is none at all.
inline std::string Percent(double share) {
  if (share > 0 && share < 0.01) return "less than 1 %";
  return fmt::format("{:.0f} %", 100 * share);
}

// In the unit that a reader would choose: "43.4 s", "182.0 ms", "31.2 us".
inline std::string TimeText(double ms) {
  if (ms >= 10'000) return fmt::format("{:.1f} s", ms / 1000);
  if (ms > 0 && ms < 0.1) return fmt::format("{:.1f} us", ms * 1000);
  return fmt::format("{:.1f} ms", ms);
}

// Milliseconds without their unit, to a tenth, or as many digits as a small one needs: "12.3", "0.04", "0.003".
inline std::string MsText(double ms) {
  if (ms >= 0.05 || ms <= 0) return fmt::format("{:.1f}", ms);
  return ms >= 0.005 ? fmt::format("{:.2f}", ms) : fmt::format("{:.3f}", ms);
}

}  // namespace trainprof
