#include "profiler/report/operators_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/words.h"
#include "profiler/report/text.h"
#include "trace/recording/wire/format.h"

namespace trainprof {
namespace {

constexpr double kWorthARow = 0.005;  // of the steps' time
constexpr size_t kMostOperatorsShown = 10;
constexpr size_t kOperatorWidth = 40;

// Without the words that are the same for all.
std::string TitleOf(const std::string& name) {
  constexpr std::string_view kEvaluates = "autograd::engine::evaluate_function: ";
  constexpr std::string_view kModule = recording::kModulePrefix;
  if (name.starts_with(kEvaluates)) return "autograd: " + name.substr(kEvaluates.size());
  return name.starts_with(kModule) ? name.substr(kModule.size()) : name;
}

void AppendTable(std::string& out, const RankAnalysis& rank, std::string_view title,
                 const std::vector<OperatorTime>& times) {
  if (times.empty()) return;
  const auto steps = static_cast<double>(std::max<size_t>(1, rank.steps.count()));
  out += fmt::format("\n  {:<42}{:>9} {:>13}\n", title, "calls", "own ms");
  size_t shown = 0;
  Duration rest;
  int64_t smaller = 0;
  for (const OperatorTime& time : times) {
    if (shown == kMostOperatorsShown || rank.Share(time.own) < kWorthARow) {
      rest += time.own;
      ++smaller;
      continue;
    }
    out += fmt::format("  {:<42}{:>9.1f} {:>13.3f} {:>6.1f} %\n",
                       ShortName(TitleOf(time.name), kOperatorWidth),
                       static_cast<double>(time.count) / steps, rank.PerStepMs(time.own),
                       100 * rank.Share(time.own));
    ++shown;
  }
  if (smaller == 0) return;
  out += fmt::format("  {:<42}{:>9} {:>13.3f} {:>6.1f} %\n",
                     Counted(smaller, "smaller one", "smaller ones"), "", rank.PerStepMs(rest),
                     100 * rank.Share(rest));
}

}  // namespace

std::string OperatorsText(const RankAnalysis& rank) {
  const Operators& all = rank.operators;
  std::string out;
  if (all.recorded == 0) return out;
  AppendTable(out, rank, "operators, a step", all.operators);
  AppendTable(out, rank, "modules, a step", all.modules);
  const auto steps = static_cast<double>(std::max<size_t>(1, rank.steps.count()));
  out += fmt::format(
      "  recording these ({:.0f} a step) cost about {:.3f} ms/step, which the step includes\n",
      static_cast<double>(all.recorded) / steps, rank.PerStepMs(all.recording));
  return out;
}

}  // namespace trainprof
