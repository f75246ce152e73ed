#include "analysis/job/gain_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/words.h"

namespace trainprof {

std::string GainText(const RankAnalysis& rank, const Gain& gain) {
  const bool is_tiny = gain.high_ms_per_step > 0 && gain.high_ms_per_step < 0.1;
  const double scale = is_tiny ? 1000 : 1;
  return fmt::format("{:.1f} to {:.1f} {}{}", scale * gain.low_ms_per_step,
                     scale * gain.high_ms_per_step, is_tiny ? "us" : "ms",
                     rank.steps.count() > 0 ? "/step" : " in all");
}

std::string FurtherText(const RankAnalysis& rank, const Gain& gain) {
  constexpr double kMost = 0.9;  // of what is expected: less of it is worth saying
  if (gain.further_ms_per_step >= kMost * gain.expected_ms_per_step) return "";
  return fmt::format(", {}{} beside those above", TimeText(std::max(0.0, gain.further_ms_per_step)),
                     rank.steps.count() > 0 ? "/step" : "");
}

std::string SpreadText(const Gain& gain) {
  const GainSpread& spread = gain.spread;
  if (spread.rare_steps == 0) return "";
  const std::string where = spread.every > 0
                                ? fmt::format("once in {} steps", spread.every)
                                : fmt::format("in {} of {} steps", spread.rare_steps, spread.steps);
  return fmt::format("most of it {}, {} each; the median step gains {}", where,
                     TimeText(spread.rare_ms), TimeText(std::max(0.0, spread.median_ms)));
}

std::string ReplayLine(const RankAnalysis& rank) {
  return fmt::format("  Gains are by a replay of the run, which as recorded is off by {:.1f} %.\n",
                     100 * rank.identity_error);
}

}  // namespace trainprof
