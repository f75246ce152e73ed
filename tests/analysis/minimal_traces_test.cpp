// Each minimal trace against what is true about it. What today's engine gets wrong is listed by name: an entry
// that has become right must go, so that nothing is lost again.
#include "tests/analysis/minimal_traces.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "analysis/job/analysis.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

using testing::MinimalTrace;
using testing::MinimalTraces;
using testing::TrueIdle;

// Of what is expected, and at least so much: hand-overs, and what the first of 40 steps has before it.
constexpr double kShare = 0.1;
constexpr double kLeastUs = 100;

// What an account may differ by where the truth is `us`.
double Tolerance(const MinimalTrace& trace, const RankAnalysis& analysis, double us) {
  const double steps = static_cast<double>(analysis.steps.count());
  const double step_us = 1e3 * analysis.PerStepMs(analysis.steps.window.Total());
  return std::max(kLeastUs, kShare * us) + (trace.is_ahead ? step_us / steps : 0);
}

bool IsOneOf(std::string_view name, std::string_view names) {
  while (!names.empty()) {
    const size_t end = std::min(names.find('|'), names.size());
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

double UsPerStep(const RankAnalysis& analysis, const DeviceReport& device,
                 std::string_view classes) {
  double sum = 0;
  for (const AccountLine& line : device.account) {
    if (IsOneOf(line.name, classes)) sum += 1e3 * analysis.PerStepMs(line.total);
  }
  return sum;
}

std::string WrongIdle(const MinimalTrace& trace, const RankAnalysis& analysis) {
  std::string wrong;
  for (const DeviceReport& device : analysis.devices) {
    std::string all;  // that the truth speaks of
    for (const TrueIdle& idle : trace.idle) {
      if (idle.device != device.id) continue;
      all += fmt::format("{}{}", all.empty() ? "" : "|", idle.classes);
      const double us = UsPerStep(analysis, device, idle.classes);
      if (std::abs(us - idle.us) > Tolerance(trace, analysis, idle.us)) {
        wrong += fmt::format("device {}: {} {:.0f} us/step, truly {:.0f}\n", device.id,
                             idle.classes, us, idle.us);
      }
    }
    for (const AccountLine& line : device.account) {
      const double us = 1e3 * analysis.PerStepMs(line.total);
      if (line.name == "compute" || line.name.starts_with("exposed_") || IsOneOf(line.name, all)) {
        continue;
      }
      if (us > Tolerance(trace, analysis, 0))
        wrong +=
            fmt::format("device {}: {} {:.0f} us/step, truly none\n", device.id, line.name, us);
    }
  }
  return wrong;
}

std::string WrongFindings(const MinimalTrace& trace, const RankAnalysis& analysis) {
  if (trace.rules == "?") return "";
  if (trace.rules.empty()) {
    std::string wrong;
    for (const Finding& finding : analysis.findings) {
      if (finding.severity != Severity::kNote) {
        wrong += fmt::format("{}: {}\n", finding.rule, finding.title);
      }
    }
    return wrong;
  }
  for (const Finding& finding : analysis.findings) {
    if (!IsOneOf(finding.rule, trace.rules)) continue;
    const double gain = 1e-3 * trace.gain_us;
    const double low = finding.gain.low_ms_per_step;
    const double high = finding.gain.high_ms_per_step;
    if (low <= gain * (1 + kShare) && high >= gain * (1 - kShare)) return "";
    return fmt::format("{}: gain {:.2f}..{:.2f} ms/step, truly {:.2f}\n", finding.rule, low, high,
                       gain);
  }
  return fmt::format("no finding of {}\n", trace.rules);
}

std::string Wrong(const MinimalTrace& trace) {
  const RankAnalysis analysis = Analyze(TraceFromScript(trace.script));
  return WrongIdle(trace, analysis) + WrongFindings(trace, analysis);
}

class MinimalTracesTest : public ::testing::TestWithParam<MinimalTrace> {};

TEST_P(MinimalTracesTest, IsToldAsItIs) { EXPECT_EQ(Wrong(GetParam()), "") << GetParam().shows; }

INSTANTIATE_TEST_SUITE_P(All, MinimalTracesTest, ::testing::ValuesIn(MinimalTraces()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace trainprof
