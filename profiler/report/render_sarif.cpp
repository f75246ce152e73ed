// SARIF 2.1.0, for code scanning: https://docs.oasis-open.org/sarif/sarif/v2.1.0.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/job/verdict.h"
#include "profiler/report/renderer.h"
#include "profiler/report/results.h"
#include "trace/io/printable.h"

namespace trainprof::renderers {
namespace {

using Json = nlohmann::ordered_json;

// GitHub takes no more of a run; what is left out are the least grave.
constexpr size_t kMostResults = 25'000;
constexpr std::string_view kFingerprintName = "trainprofFingerprint/v1";

std::string_view LevelOf(Severity severity) { return Name(severity); }

// A path as a URI reference: what is neither a letter, a digit nor harmless becomes %XX.
std::string UriOf(const std::string& file) {
  std::string uri = file.starts_with('/') ? "file://" : "";
  for (const char c : file) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

Json RuleJson(const CheckedRule& rule) {
  std::string name = rule.slug;
  return {{"id", rule.code},
          {"name", std::move(name)},
          {"shortDescription", {{"text", rule.title}}},
          {"fullDescription",
           {{"text", fmt::format("{} ({}). More: trainprof explain {}", rule.title, rule.slug,
                                 rule.is_budget ? rule.slug : rule.code)}}},
          {"properties", {{"tags", {"performance", rule.is_budget ? "budget" : "rule"}}}}};
}

Json LocationJson(const CheckResult& result) {
  Json location = Json::object();
  if (!result.file.empty()) {
    location["physicalLocation"] = {{"artifactLocation", {{"uri", UriOf(result.file)}}},
                                    {"region", {{"startLine", result.line}}}};
    if (!result.file.starts_with('/')) {
      location["physicalLocation"]["artifactLocation"]["uriBaseId"] = "%SRCROOT%";
    }
  }
  if (!result.function.empty()) {
    location["logicalLocations"] =
        Json::array({{{"fullyQualifiedName", result.function}, {"kind", "function"}}});
  }
  return location;
}

Json ResultJson(const CheckReport& report, const CheckResult& result) {
  const std::string text =
      result.advice.empty() ? result.message : fmt::format("{}. {}", result.message, result.advice);
  Json json{{"ruleId", report.rules[result.rule].code},
            {"ruleIndex", result.rule},
            {"level", LevelOf(result.severity)},
            {"message", {{"text", text}}},
            {"partialFingerprints", {{kFingerprintName, result.fingerprint}}}};
  Json location = LocationJson(result);
  if (!location.empty()) json["locations"] = Json::array({std::move(location)});
  if (!result.suppressed_by.empty()) {
    json["suppressions"] = Json::array({{{"kind", result.in_source ? "inSource" : "external"},
                                         {"justification", result.suppressed_by}}});
  }
  if (!report.gate.baseline.empty() && !report.rules[result.rule].is_budget) {
    json["baselineState"] = result.state == GateState::kKnown ? "unchanged" : "new";
  }
  json["properties"] = {{"gate", Name(result.state)}, {"ranks", result.ranks}};
  return json;
}

Result<std::string> Render(const JobAnalysis& job, const RenderOptions& options) {
  const CheckReport report = CheckReportOf(job, options);
  Json rules = Json::array();
  for (const CheckedRule& rule : report.rules) rules.push_back(RuleJson(rule));
  Json results = Json::array();
  for (const CheckResult& result : report.results) {
    if (results.size() == kMostResults) break;
    results.push_back(ResultJson(report, result));
  }
  Json notifications = Json::array();
  for (const std::string& doubt : report.doubts) {
    notifications.push_back({{"level", "warning"}, {"message", {{"text", doubt}}}});
  }
  const Json sarif{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       Json::array(
           {{{"tool",
              {{"driver",
                {{"name", "trainprof"},
                 {"semanticVersion", TRAINPROF_VERSION},
                 {"rules", std::move(rules)}}}}},
             {"invocations",
              Json::array({{{"executionSuccessful", true},
                            {"toolExecutionNotifications", std::move(notifications)}}})},
             {"columnKind", "utf16CodeUnits"},
             {"properties",
              {{"verdict", OneLine(JobVerdict(job))}, {"check", Name(report.gate.conclusion)}}},
             {"results", std::move(results)}}})}};
  return HarmlessJson(sarif.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace

extern const Renderer sarif = {"SARIF 2.1.0 for code scanning", Render};

}  // namespace trainprof::renderers
