// JUnit's XML: a test case for each rule and budget, as most CI servers read it.
#include <fmt/format.h>

#include "profiler/report/gate_text.h"
#include "profiler/report/renderer.h"
#include "profiler/report/results.h"

namespace trainprof::renderers {
namespace {

// Texts hold no control characters (OneLine).
std::string XmlEscaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

struct Totals {
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;
};

std::string PlaceOf(const CheckResult& result) {
  if (result.file.empty()) return result.function;
  return fmt::format("{}:{} {}", result.file, result.line, result.function);
}

// What a result says, with its place first: that is what a CI server prints.
std::string Line(const CheckResult& result) {
  const std::string place = PlaceOf(result);
  return fmt::format("{}{}{}\n{}{}", place, place.empty() ? "" : ": ", result.message,
                     result.advice, result.advice.empty() ? "" : "\n");
}

std::string Case(std::string_view of, const std::string& name, const std::string& inside) {
  const std::string head = fmt::format(
      "    <testcase classname=\"trainprof.{}\" name=\"{}\" time=\"0\"", of, XmlEscaped(name));
  return inside.empty() ? head + "/>\n" : fmt::format("{}>\n{}    </testcase>\n", head, inside);
}

std::string CaseOf(const CheckReport& report, size_t rule, Totals& totals) {
  const CheckedRule& checked = report.rules[rule];
  const CheckResult* first = nullptr;
  std::string failed;
  std::string unknown;
  std::string others;
  for (const CheckResult& result : report.results) {
    if (result.rule != rule) continue;
    std::string& text = result.state == GateState::kFailed         ? failed
                        : result.state == GateState::kInconclusive ? unknown
                                                                   : others;
    if (text.empty() && &text != &others) first = &result;
    text +=
        &text == &others ? fmt::format("{}: {}", Name(result.state), Line(result)) : Line(result);
  }
  ++totals.tests;
  std::string inside;
  if (!failed.empty()) {
    ++totals.failures;
    inside = fmt::format("      <failure message=\"{}\" type=\"{}\">{}</failure>\n",
                         XmlEscaped(first->message), XmlEscaped(checked.slug), XmlEscaped(failed));
  } else if (!unknown.empty()) {
    ++totals.errors;
    inside = fmt::format("      <error message=\"{}\" type=\"inconclusive\">{}</error>\n",
                         XmlEscaped(first->message), XmlEscaped(unknown));
  } else if (!checked.not_checked.empty()) {
    ++totals.skipped;
    inside = fmt::format("      <skipped>{}</skipped>\n", XmlEscaped(checked.not_checked));
  }
  if (!others.empty()) {
    inside += fmt::format("      <system-out>{}</system-out>\n", XmlEscaped(others));
  }
  return Case(checked.is_budget ? "budgets" : "rules", checked.code + " " + checked.slug, inside);
}

Result<std::string> RenderJunit(const JobAnalysis& job, const RenderOptions& options) {
  const CheckReport report = CheckReportOf(job, options);
  Totals totals;
  std::string cases;
  for (size_t rule = 0; rule < report.rules.size(); ++rule) cases += CaseOf(report, rule, totals);
  std::string doubts;
  for (const std::string& doubt : report.doubts) {
    doubts += fmt::format("{}\n", doubt);
  }
  ++totals.tests;
  if (!doubts.empty()) ++totals.errors;
  cases += Case("evidence", "the trace holds what the check rests on",
                doubts.empty()
                    ? ""
                    : fmt::format("      <error message=\"{}\" type=\"inconclusive\">{}</error>\n",
                                  XmlEscaped(report.doubts.front()), XmlEscaped(doubts)));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"trainprof\" tests=\"{0}\" failures=\"{1}\" errors=\"{2}\">\n"
      "  <testsuite name=\"trainprof check\" tests=\"{0}\" failures=\"{1}\" errors=\"{2}\" skipped=\"{3}\" time=\"0\">\n"
      "{4}    <system-out>{5}</system-out>\n"
      "  </testsuite>\n"
      "</testsuites>\n",
      totals.tests, totals.failures, totals.errors, totals.skipped, cases,
      XmlEscaped(GateVerdict(report.gate)));
}

}  // namespace

extern const Renderer junit = {"JUnit's XML for CI servers", RenderJunit};

}  // namespace trainprof::renderers
