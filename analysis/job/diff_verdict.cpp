// The sentence that a comparison begins with.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/job/diff.h"
#include "analysis/words.h"

namespace trainprof {
namespace {

constexpr size_t kMostParts = 3;
// Of the step's difference, or, where it has none, of the step: what a part must be to be named.
constexpr double kWorthNaming = 0.05;

// ": idle: input wait +2.9, compute +0.3", of what the step consists of.
std::string PartsText(const Diff& diff, const StepUnit& unit, std::string_view before) {
  if (diff.tables.empty()) return {};
  const bool is_known = diff.step.bounds.has_value();
  const bool has_difference = !is_known || diff.step.IsClear();
  const double least =
      kWorthNaming * (has_difference ? std::abs(diff.step.Difference()) : diff.step.a_ms * 0.2);
  std::string text;
  size_t parts = 0;
  for (const DiffRow& row : diff.tables[0].rows) {
    if (parts == kMostParts || std::abs(row.Difference()) < least) break;
    if (is_known && !row.IsClear()) continue;
    text += fmt::format("{}{} {}", parts++ == 0 ? before : ", ", row.title,
                        unit.Signed(row.Difference()));
  }
  return text;
}

// A busy host makes runs differ by what nobody can say of one.
std::string HostText(const Diff& diff) {
  const bool is_busy = std::ranges::any_of(
      diff.cautions, [](const DiffDoubt& caution) { return caution.id == "busy_host"; });
  return is_busy ? "; on a busy host, where another run may say otherwise" : "";
}

// "; rank 2 became late by 3.00 ms/step, idle: input wait +3.00 there"
std::string LateText(const Diff& diff, const StepUnit& unit) {
  if (diff.late_ranks.empty()) return "";
  const LateRankDiff& late = diff.late_ranks[0];
  const double a = late.a_late_ms;
  const double b = late.b_late_ms;
  std::string what;
  if (b == 0) {
    what = fmt::format("is no longer late (was by {} {}/step)", unit.Plain(a), unit.name);
  } else if (a == 0) {
    what = fmt::format("became late by {} {}/step", unit.Plain(b), unit.name);
  } else {
    what = fmt::format("is late by {} -> {} {}/step", unit.Plain(a), unit.Plain(b), unit.name);
  }
  std::string text = fmt::format("; rank {} {}", late.rank, what);
  if (!late.cause.name.empty()) {
    text += fmt::format(", {} {} there", late.cause.title, unit.Signed(late.cause.Difference()));
  }
  const auto more = static_cast<int64_t>(diff.late_ranks.size()) - 1;
  if (more > 0) text += " (and " + Counted(more, "more rank", "more ranks") + ")";
  return text;
}

std::string Relative(const DiffRow& step) {
  if (step.a_ms <= 0) return "";
  return fmt::format(", {:+.1f} %", 100 * step.Difference() / step.a_ms);
}

}  // namespace

StepUnit StepUnit::Of(double ms) {
  if (ms > 0 && ms < 0.1) return {1000, "us", 1};
  return {1, "ms", ms >= 10 ? 1 : ms >= 1 ? 2 : 3};
}

std::string StepUnit::Plain(double ms, int more) const {
  return fmt::format("{:.{}f}", factor * ms, decimals + more);
}

std::string StepUnit::Signed(double ms, int more) const {
  std::string text = fmt::format("{:+.{}f}", factor * ms, decimals + more);
  // What is rounded to nothing has no sign.
  if (text.find_first_of("123456789") == std::string::npos) text.erase(0, 1);
  return text;
}

std::string DiffVerdict(const Diff& diff) {
  const DiffRow& step = diff.step;
  const StepUnit unit = StepUnit::Of(std::max(step.a_ms, step.b_ms));
  std::string interval;
  if (step.bounds) {
    interval = fmt::format(", 90 % interval {} to {}", unit.Signed(step.bounds->low),
                           unit.Signed(step.bounds->high));
  }
  const std::string figures =
      fmt::format("{} -> {} {}/step{}{}", unit.Plain(step.a_ms), unit.Plain(step.b_ms), unit.name,
                  Relative(step), interval);
  switch (diff.result) {
    case DiffResult::kRefused:
      return "A and B cannot be compared: " +
             (diff.refusals.empty() ? std::string() : diff.refusals[0].text) +
             (diff.refusals.size() > 1
                  ? fmt::format(" (and {} more)",
                                Counted(static_cast<int64_t>(diff.refusals.size()) - 1, "reason",
                                        "reasons"))
                  : "");
    case DiffResult::kEqual:
      return fmt::format("A and B are equal: {} {}/step, not a step differs", unit.Plain(step.a_ms),
                         unit.name);
    case DiffResult::kNoDifference:
      return fmt::format("no difference that can be told from noise ({}){}", figures,
                         PartsText(diff, unit, "; but in parts: ") + LateText(diff, unit));
    case DiffResult::kUnknown:
      return fmt::format(
          "B's step is {} {} {} than A's ({}), and how much of that is noise is not known{}",
          unit.Plain(std::abs(step.Difference())), unit.name,
          step.Difference() > 0 ? "longer" : "shorter", figures,
          PartsText(diff, unit, ": ") + LateText(diff, unit));
    case DiffResult::kSlower:
    case DiffResult::kFaster:
      break;
  }
  return fmt::format("B is {} {}/step {} than A ({}){}", unit.Plain(std::abs(step.Difference())),
                     unit.name, Name(diff.result), figures, PartsText(diff, unit, ": ")) +
         LateText(diff, unit) + HostText(diff);
}

}  // namespace trainprof
