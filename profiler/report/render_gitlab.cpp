// GitLab's code quality report: https://docs.gitlab.com/ci/testing/code_quality.
#include <nlohmann/json.hpp>

#include "profiler/report/renderer.h"
#include "profiler/report/results.h"
#include "trace/io/printable.h"

namespace trainprof::renderers {
namespace {

using Json = nlohmann::ordered_json;

std::string_view QualitySeverityOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "critical";
    case Severity::kWarning:
      return "major";
    case Severity::kNote:
      break;
  }
  return "info";
}

// What is ignored is left out: GitLab knows no such state. A result without a place needs a path all the same.
Result<std::string> RenderGitlab(const JobAnalysis& job, const RenderOptions& options) {
  const CheckReport report = CheckReportOf(job, options);
  Json issues = Json::array();
  for (const CheckResult& result : report.results) {
    if (result.state == GateState::kSuppressed) continue;
    issues.push_back({{"description", result.message},
                      {"check_name", report.rules[result.rule].code},
                      {"fingerprint", result.fingerprint},
                      {"severity", QualitySeverityOf(result.severity)},
                      {"location",
                       {{"path", result.file.empty() ? std::string(kPolicyFile) : result.file},
                        {"lines", {{"begin", std::max<int64_t>(1, result.line)}}}}}});
  }
  return HarmlessJson(issues.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace

extern const Renderer gitlab = {"GitLab's code quality", RenderGitlab};

}  // namespace trainprof::renderers
