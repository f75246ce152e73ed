#include "analysis/job/gain_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/gain.h"
#include "analysis/words.h"
#include "trace/base/kernel_names.h"

namespace trainprof {

std::string GainText(const RankAnalysis& rank, const Gain& gain) {
  if (rank.identity_error > kMostIdentityError) return "not claimed";
  const bool is_tiny = gain.high_ms_per_step > 0 && gain.high_ms_per_step < 0.1;
  const double scale = is_tiny ? 1000 : 1;
  const auto text = [&](double ms, int digits) {
    return fmt::format("{:.{}f}", scale * ms, digits);
  };
  std::string low = text(gain.low_ms_per_step, 1);
  std::string high = text(gain.high_ms_per_step, 1);
  // An interval is one, however narrow.
  if (low == high && gain.low_ms_per_step < gain.high_ms_per_step) {
    low = text(gain.low_ms_per_step, 2);
    high = text(gain.high_ms_per_step, 2);
  }
  std::string all = fmt::format("{} to {} {}{}", low, high, is_tiny ? "us" : "ms",
                                rank.steps.count() > 0 ? "/step" : " in all");
  // Where it is wide the middle is no matter of course.
  const double width = gain.high_ms_per_step - gain.low_ms_per_step;
  if (width > gain.expected_ms_per_step / 2) {
    all += fmt::format(", {} expected", text(gain.expected_ms_per_step, 1));
  }
  return all;
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
  if (rank.identity_error > kMostIdentityError) {
    const std::string_view function = FunctionOf(rank.residual.name);
    const std::string where =
        rank.residual.name.empty()
            ? ""
            : fmt::format("; most of what nothing explains stands before {} ({}{})",
                          function.empty() ? rank.residual.name : function,
                          TimeText(rank.DevicePerStepMs(rank.residual.total)),
                          rank.steps.count() > 0 ? "/step" : "");
    return fmt::format(
        "  No gain is claimed: a replay of the run as recorded is off by {:.1f} %, more than {:.0f} %{}.\n",
        100 * rank.identity_error, 100 * kMostIdentityError, where);
  }
  return fmt::format("  Gains are by a replay of the run, which as recorded is off by {:.1f} %.\n",
                     100 * rank.identity_error);
}

}  // namespace trainprof
