// trainprof check: the gate for CI. Fails when a finding of severity error is there, and passes
// only what could be checked.
#include <fmt/format.h>

#include <memory>

#include "analysis/words.h"
#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "profiler/report/coverage_text.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

constexpr char kCheckExamples[] = R"(Examples:
  trainprof check trainprof-20261120T101500Z
  trainprof check worker0.pt.trace.json.gz --format json=report.json
  trainprof check run/ --allow-inconclusive        fail on findings alone
  trainprof check run/ --exit-zero                 report, never fail

A finding of severity error fails the check, whatever else was lost. Without one
the check is inconclusive where no rule could be checked, or where records,
ranks or files are missing, damaged or not understood: it prints why.
Exit codes: 0 passed, 1 a finding of severity error, 2 usage, 3 inconclusive,
4 the input cannot be read, 74 the output cannot be written, 130 Ctrl-C.
--allow-inconclusive turns 3 into 0, --exit-zero 1 and 3.)";

struct CheckFlags {
  ReportFlags report;
  bool allow_inconclusive = false;
  bool exit_zero = false;
};

void PrintFindings(std::FILE* out, const JobAnalysis& job) {
  for (const RankAnalysis& rank : job.ranks) {
    for (const Finding& finding : rank.findings) {
      Print(out, "{:<7} {} {} (rank {}): {}\n", Name(finding.severity), finding.code, finding.rule,
            rank.rank, finding.title);
    }
  }
}

void PrintCoverage(std::FILE* out, const JobAnalysis& job) {
  for (const std::string& line : NotCheckedLines(job)) Print(out, "not checked: {}\n", line);
  for (const RankAnalysis& rank : job.ranks) {
    const std::string uncovered = UncoveredText(rank);
    if (uncovered.empty()) continue;
    const std::string who = job.ranks.size() > 1 ? fmt::format("rank {}: ", rank.rank) : "";
    Print(out, "{}no rule covers {}\n", who, uncovered);
  }
}

// Each reason, with the counts of the trace's quality that it rests on.
void PrintDoubts(std::FILE* out, const JobAnalysis& job) {
  const std::vector<Doubt> doubts = DoubtsOf(job);
  const std::vector<std::string> lines = DoubtLines(job);
  for (size_t i = 0; i < doubts.size(); ++i) {
    Print(out, "inconclusive: {}\n", lines[i]);
    for (const QualityItem& item : doubts[i].quality) {
      Print(out, "    quality: {} x {} [{}] {}\n", item.count, item.kind, Name(item.severity),
            item.detail);
    }
  }
}

int Conclude(std::FILE* out, const JobAnalysis& job, const CheckFlags& flags) {
  switch (ConclusionOf(job)) {
    case Conclusion::kPassed:
      Print(out, "PASS: no finding of severity error in what was checked\n");
      return kExitOk;
    case Conclusion::kFailed: {
      const int64_t errors = ErrorsIn(job);
      Print(out, "FAIL: {} of severity error\n", Counted(errors, "finding", "findings"));
      return flags.exit_zero ? kExitOk : kExitGateFailed;
    }
    case Conclusion::kInconclusive:
      break;
  }
  if (flags.allow_inconclusive) {
    Print(out, "INCONCLUSIVE, accepted: for the reasons above this can neither pass nor fail\n");
    return kExitOk;
  }
  Print(out,
        "INCONCLUSIVE: for the reasons above this can neither pass nor fail "
        "(--allow-inconclusive accepts it)\n");
  return flags.exit_zero ? kExitOk : kExitInconclusive;
}

int Run(const CheckFlags& flags) {
  const auto outputs = ParseOutputs(flags.report.formats);
  if (!outputs.ok()) return Fail("check", outputs.error(), kExitUsage);
  const auto path = PathOrNewestRun("check", flags.report.path);
  if (!path.ok()) return Fail("check", path.error(), kExitUsage);
  EndOnCtrlC("check", path.value());
  const auto writable = CheckOutputs(outputs.value());
  if (!writable.ok()) return Fail("check", writable.error(), kExitUnwritable);
  const auto job = AnalyzeWithProgress(path.value());
  if (!job.ok()) return Fail("check", job.error(), kExitUnreadable);
  if (auto written = WriteOutputs(job.value(), outputs.value()); !written.ok()) {
    return Fail("check", written.error(), kExitUnwritable);
  }
  // With a report on standard output, the gate's own lines go beside it.
  std::FILE* const out = outputs.value().empty() ? stdout : stderr;
  PrintFindings(out, job.value());
  PrintCoverage(out, job.value());
  PrintDoubts(out, job.value());
  return Conclude(out, job.value(), flags);
}

Action SetUpCheck(CLI::App& parser) {
  auto flags = std::make_shared<CheckFlags>();
  AddReportFlags(parser, flags->report);
  parser.add_flag("--allow-inconclusive", flags->allow_inconclusive,
                  "Exit 0, not 3, where data is missing or nothing could be checked");
  parser.add_flag("--exit-zero", flags->exit_zero,
                  "Report, but exit 0 when the gate fails or is inconclusive");
  return [flags](const ProgramArguments&) { return Run(*flags); };
}

}  // namespace

Command CheckCommand() {
  return {"check", "fail when a trace or recording has a severe finding", kCheckExamples,
          SetUpCheck};
}

}  // namespace trainprof::cli
