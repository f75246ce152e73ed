// Annotations of a GitHub workflow, as lines of its log:
// https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands.
#include <fmt/format.h>

#include "profiler/report/gate_text.h"
#include "profiler/report/renderer.h"
#include "profiler/report/results.h"

namespace trainprof::renderers {
namespace {

// GitHub shows ten of a kind for a step, and drops the others.
constexpr size_t kMostAnnotations = 10;

std::string Escaped(std::string_view text, bool is_property) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '%':
        out += "%25";
        break;
      case '\r':
        out += "%0D";
        break;
      case '\n':
        out += "%0A";
        break;
      case ':':
        out += is_property ? "%3A" : ":";
        break;
      case ',':
        out += is_property ? "%2C" : ",";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string_view CommandOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      break;
  }
  return "notice";
}

Result<std::string> RenderGithub(const JobAnalysis& job, const RenderOptions& options) {
  const CheckReport report = CheckReportOf(job, options);
  std::string text;
  size_t of_kind[3] = {};
  size_t left_out = 0;
  const auto add = [&](Severity severity, std::string_view properties, std::string_view message) {
    if (++of_kind[static_cast<size_t>(severity)] > kMostAnnotations) {
      ++left_out;
      return;
    }
    text += fmt::format("::{} {}::{}\n", CommandOf(severity), properties, Escaped(message, false));
  };
  for (const auto& [shown, more] : ShownOf(report)) {
    const CheckResult& result = *shown;
    if (result.state == GateState::kSuppressed || result.state == GateState::kKnown) continue;
    const CheckedRule& rule = report.rules[result.rule];
    std::string properties;
    if (!result.file.empty()) {
      properties = fmt::format("file={},line={},", Escaped(result.file, true), result.line);
    }
    properties += fmt::format("title={}", Escaped(rule.code + " " + rule.slug, true));
    add(result.severity, properties,
        result.advice.empty() ? result.message : result.message + "\n" + result.advice);
  }
  for (const std::string& doubt : report.doubts) {
    add(Severity::kWarning, "title=trainprof is inconclusive", doubt);
  }
  if (left_out > 0)
    text += fmt::format("trainprof: {} more, which GitHub would not show\n", left_out);
  // What begins with "::" would be a command.
  return text + "trainprof: " + GateVerdict(report.gate) + "\n";
}

}  // namespace

extern const Renderer github = {"annotations of a GitHub workflow", RenderGithub};

}  // namespace trainprof::renderers
