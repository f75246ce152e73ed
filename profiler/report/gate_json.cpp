#include "profiler/report/gate_json.h"

namespace trainprof {
namespace {

using Json = nlohmann::ordered_json;

Json FindingGateJson(const JobAnalysis& job, const JudgedFinding& judged) {
  const RankAnalysis& rank = job.ranks[judged.rank];
  Json places = Json::array();
  for (const JudgedSite& site : judged.sites) {
    Json place{{"fingerprint", site.fingerprint}, {"in_baseline", site.is_known}};
    if (!site.suppressed_by.empty()) place["suppressed_by"] = site.suppressed_by;
    places.push_back(std::move(place));
  }
  return {{"rank", rank.rank},
          {"code", rank.findings[judged.finding].code},
          {"severity", Name(judged.severity)},
          {"state", Name(judged.state)},
          {"places", std::move(places)}};
}

Json BudgetGateJson(const JudgedBudget& budget) {
  return {{"code", budget.code},
          {"name", budget.name},
          {"state", Name(budget.state)},
          {"value", budget.value ? Json(*budget.value) : Json(nullptr)},
          {"limit", budget.limit ? Json(*budget.limit) : Json(nullptr)},
          {"text", budget.text}};
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json GateJson(const JobAnalysis& job, const GateResult& gate) {
  Json findings = Json::array();
  for (const JudgedFinding& judged : gate.findings)
    findings.push_back(FindingGateJson(job, judged));
  Json budgets = Json::array();
  for (const JudgedBudget& budget : gate.budgets) budgets.push_back(BudgetGateJson(budget));
  return {{"result", Name(gate.conclusion)},       {"policy", TextOrNull(gate.policy)},
          {"baseline", TextOrNull(gate.baseline)}, {"findings", std::move(findings)},
          {"budgets", std::move(budgets)},         {"complaints", gate.complaints}};
}

}  // namespace trainprof
