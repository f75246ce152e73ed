// Markdown for a step summary or a comment: the verdict, then tables.
#include <fmt/format.h>

#include "analysis/job/verdict.h"
#include "profiler/report/coverage_text.h"
#include "profiler/report/gate_text.h"
#include "profiler/report/renderer.h"
#include "profiler/report/results.h"
#include "trace/io/printable.h"

namespace trainprof::renderers {
namespace {

// GitHub rejects a step summary of over 1 MiB whole.
constexpr size_t kMostMarkdownBytes = 900 * 1024;

// As text, whatever it holds: no mark-up, no mention of a person, no link.
std::string MarkdownText(std::string_view text) {
  std::string out;
  for (const char c : OneLine(text)) {
    if (std::string_view("&<>\"|`*_[]!\\~#@$^{}").find(c) != std::string_view::npos) {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  // "http://" would become a link.
  for (size_t at = out.find("://"); at != std::string::npos; at = out.find("://", at)) {
    out.replace(at, 1, "&#58;");
  }
  return out;
}

std::string Cell(const std::string& text) { return text.empty() ? " " : MarkdownText(text); }

// `more`: other ranges without a file.
std::string PlaceCell(const CheckResult& result, size_t more) {
  std::string place = result.function;
  if (!result.file.empty()) {
    place = fmt::format("{}:{} {}", result.file, result.line, result.function);
  }
  return Cell(place) + (more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string_view MarkOf(const CheckResult& result) {
  switch (result.state) {
    case GateState::kFailed:
      return "❌";
    case GateState::kInconclusive:
    case GateState::kDoubtful:
      return "❔";
    case GateState::kSuppressed:
      return "🔇";
    default:
      return result.severity == Severity::kNote ? "ℹ️" : "⚠️";
  }
}

std::string_view MarkOf(Conclusion conclusion) {
  switch (conclusion) {
    case Conclusion::kPassed:
      return "✅";
    case Conclusion::kFailed:
      return "❌";
    case Conclusion::kInconclusive:
      break;
  }
  return "❔";
}

std::string ResultsTable(const CheckReport& report, size_t room) {
  if (report.results.empty()) return "";
  std::string text = "\n| | rule | what | where |\n|---|---|---|---|\n";
  size_t shown = 0;
  const std::vector<ShownResult> all = ShownOf(report);
  for (const auto& [one, more] : all) {
    const CheckResult& result = *one;
    const CheckedRule& rule = report.rules[result.rule];
    std::string what = MarkdownText(result.message);
    if (!result.suppressed_by.empty()) {
      what += fmt::format("<br>ignored: {}", MarkdownText(result.suppressed_by));
    } else if (result.state == GateState::kKnown) {
      what += "<br>in the baseline";
    } else if (!result.advice.empty()) {
      what += fmt::format("<br>{}", MarkdownText(result.advice));
    }
    const std::string row =
        fmt::format("| {} | {} {} | {} | {} |\n", MarkOf(result), Cell(rule.code), Cell(rule.slug),
                    what, PlaceCell(result, more));
    if (text.size() + row.size() > room) break;
    text += row;
    ++shown;
  }
  if (shown < all.size()) {
    text +=
        fmt::format("\n{} more are left out: a summary may not be longer.\n", all.size() - shown);
  }
  return text;
}

std::string StepsTable(const JobAnalysis& job) {
  std::string text = "\n| rank | steps | median | mean | GPU busy |\n|---|---|---|---|---|\n";
  constexpr size_t kMostRanks = 64;
  size_t shown = 0;
  for (const RankAnalysis& rank : job.ranks) {
    if (shown++ == kMostRanks) {
      text += fmt::format("| ... {} more | | | | |\n", job.ranks.size() - kMostRanks);
      break;
    }
    std::string busy;
    for (const DeviceReport& device : rank.devices) {
      if (device.stray) continue;
      busy +=
          fmt::format("{}{:.1f} %", busy.empty() ? "" : ", ", 100 * rank.DeviceShare(device.busy));
    }
    text += fmt::format("| {} | {} | {:.1f} ms | {:.1f} ms | {} |\n", rank.rank, rank.steps.count(),
                        rank.steps.Median().ToMilliseconds(), rank.steps.MeanMilliseconds(),
                        busy.empty() ? "no device work" : busy);
  }
  return text;
}

std::string Lists(const JobAnalysis& job, const CheckReport& report) {
  std::string text;
  for (const JudgedBudget& budget : report.gate.budgets) {
    const std::string_view mark = budget.state == GateState::kFailed         ? "❌"
                                  : budget.state == GateState::kInconclusive ? "❔"
                                                                             : "✅";
    text += fmt::format("- {} {}\n", mark, MarkdownText(budget.text));
  }
  for (const std::string& doubt : report.doubts) {
    text += fmt::format("- ❔ inconclusive: {}\n", MarkdownText(doubt));
  }
  for (const std::string& line : report.gate.complaints) {
    text += fmt::format("- {}\n", MarkdownText(line));
  }
  for (const std::string& line : NotCheckedLines(job)) {
    text += fmt::format("- not checked: {}\n", MarkdownText(line));
  }
  return text.empty() ? text : "\n" + text;
}

Result<std::string> RenderMarkdown(const JobAnalysis& job, const RenderOptions& options) {
  const CheckReport report = CheckReportOf(job, options);
  const std::string head =
      fmt::format("## {} trainprof: {}\n\n**{}**\n", MarkOf(report.gate.conclusion),
                  MarkdownText(GateVerdict(report.gate)), MarkdownText(JobVerdict(job)));
  const std::string tail = StepsTable(job) + Lists(job, report);
  const size_t taken = head.size() + tail.size();
  const size_t room = taken < kMostMarkdownBytes ? kMostMarkdownBytes - taken : 0;
  std::string text = head + ResultsTable(report, room) + tail;
  if (text.size() <= kMostMarkdownBytes) return text;
  text.resize(text.rfind('\n', kMostMarkdownBytes - 100) + 1);
  return text + "\nThe rest is left out: a summary may not be longer.\n";
}

}  // namespace

extern const Renderer markdown = {"Markdown for step summaries and comments", RenderMarkdown};

}  // namespace trainprof::renderers
