#include "viewer/navigation/ruler.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace trainprof {
namespace {

struct Unit {
  int64_t ns;
  const char* name;
};
constexpr Unit kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1000, "us"}, {1, "ns"}};

// A label has at most so many steps in front of it: "12345.6 ms" is the longest.
constexpr int64_t kMostStepsInFull = 200'000;
// An anchor is a multiple of so many steps.
constexpr int64_t kStepsPerAnchor = 1000;

constexpr int64_t kMostStep = 1'000'000'000'000'000'000;

uint64_t Magnitude(Duration d) {
  return d.ns < 0 ? ~static_cast<uint64_t>(d.ns) + 1 : static_cast<uint64_t>(d.ns);
}

const Unit& UnitOf(uint64_t ns) {
  for (const Unit& unit : kUnits) {
    if (ns >= static_cast<uint64_t>(unit.ns)) return unit;
  }
  return kUnits[3];
}

std::string InUnit(Duration duration, const Unit& unit) {
  const uint64_t ns = Magnitude(duration);
  const auto per_unit = static_cast<uint64_t>(unit.ns);
  std::string text = fmt::format("{}{}", duration.ns < 0 ? "-" : "", ns / per_unit);
  if (uint64_t rest = ns % per_unit; rest != 0) {
    std::string digits = fmt::format("{}", per_unit + rest).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += "." + digits;
  }
  return fmt::format("{} {}", text, unit.name);
}

// The shortest of 1, 2, 5 times a power of ten that is no shorter.
Duration RoundStep(Duration least) {
  for (int64_t power = 1;; power *= 10) {
    for (int64_t times : {1, 2, 5}) {
      if (power * times >= least.ns || power == kMostStep) return Duration{power * times};
    }
  }
}

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

std::string ExactText(Duration duration) { return InUnit(duration, UnitOf(Magnitude(duration))); }

std::string ShortText(Duration duration) {
  const Unit& unit = UnitOf(Magnitude(duration));
  if (unit.ns == 1) return InUnit(duration, unit);
  const double value = static_cast<double>(duration.ns) / static_cast<double>(unit.ns);
  const double size = value < 0 ? -value : value;
  return fmt::format("{:.{}f} {}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0, unit.name);
}

Ruler MakeRuler(const Scale& scale, int32_t least_px, TraceTime zero) {
  const __int128 length = scale.view.Length().ns;
  const auto least =
      static_cast<int64_t>((length * least_px + scale.width_px - 1) / scale.width_px);
  Ruler ruler;
  ruler.step = RoundStep(Duration{least});
  const int64_t step = ruler.step.ns;
  int64_t tick = FloorDivide((scale.view.begin - zero).ns, step);
  if (zero + Duration{tick * step} < scale.view.begin) ++tick;
  ruler.anchored = tick > kMostStepsInFull || tick < -kMostStepsInFull;
  int64_t anchor = 0;
  if (ruler.anchored) {
    anchor = FloorDivide(tick, kStepsPerAnchor) * kStepsPerAnchor;
    ruler.anchor_label = ExactText(Duration{anchor * step});
  }
  ruler.anchor = zero + Duration{anchor * step};
  // All labels of a ruler have one unit: that of its last one.
  const int64_t last = FloorDivide((scale.view.end - zero).ns - 1, step);
  const Unit& unit = UnitOf(std::max(Magnitude(Duration{(tick - anchor) * step}),
                                     Magnitude(Duration{(last - anchor) * step})));
  for (; tick <= last; ++tick) {
    const std::string label = InUnit(Duration{(tick - anchor) * step}, unit);
    ruler.ticks.push_back({zero + Duration{tick * step}, (ruler.anchored ? "+" : "") + label});
  }
  return ruler;
}

std::optional<TraceTime> ParseTimeText(std::string_view text) {
  constexpr struct {
    std::string_view name;
    double ns;
  } kUnits[] = {{"ns", 1}, {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  for (const auto& unit : kUnits) {
    const double ns = value * unit.ns;
    if (text == unit.name && std::abs(ns) < static_cast<double>(kMostViewNs)) {
      return TraceTime{static_cast<int64_t>(std::llround(ns))};
    }
  }
  return std::nullopt;
}

}  // namespace trainprof
