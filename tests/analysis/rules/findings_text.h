// Runs one rule on a trace script and writes its outcome as text, for goldens.
#pragma once

#include <fmt/format.h>

#include <string>

#include "analysis/job/analysis.h"
#include "tests/support/trace_script.h"

namespace trainprof {

// "warning count=3 cost=1.000 gain=0.5..1.0 where=train.py:3 f" a finding, "passed", or
// "skipped: reason".
inline std::string OutcomeOf(std::string_view rule, std::string_view script) {
  const RankAnalysis analysis = Analyze(TraceFromScript(script));
  for (const SkippedRule& skipped : analysis.skipped) {
    if (skipped.rule == rule) return "skipped: " + skipped.reason;
  }
  std::string text;
  for (const Finding& finding : analysis.findings) {
    if (finding.rule != rule) continue;
    text += fmt::format("{}{} count={} cost={:.3f} gain={:.3f}..{:.3f}", text.empty() ? "" : "\n",
                        Name(finding.severity), finding.count, analysis.PerStepMs(finding.cost),
                        finding.gain.low_ms_per_step, finding.gain.high_ms_per_step);
    for (const Site& site : finding.where) {
      text += fmt::format(" where={}:{} {} x{}", site.file, site.line, site.function, site.count);
    }
  }
  return text.empty() ? "passed" : text;
}

// What the rule's first finding advises, and below that its fix; "none" without one.
inline std::string AdviceOf(std::string_view rule, std::string_view script) {
  for (const Finding& finding : Analyze(TraceFromScript(script)).findings) {
    if (finding.rule == rule) return finding.advice + "\n" + finding.fix;
  }
  return "none";
}

}  // namespace trainprof
