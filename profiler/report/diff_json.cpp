// A comparison for programs: docs/diff.schema.json.
#include <nlohmann/json.hpp>

#include "profiler/report/diff_report.h"
#include "trace/io/printable.h"

namespace trainprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDiffSchemaVersion = "1.1";

Json BoundsJson(const std::optional<Bounds>& bounds) {
  if (!bounds) return nullptr;
  return {{"low", bounds->low}, {"high", bounds->high}};
}

Json RowJson(const DiffRow& row) {
  Json json{{"name", row.name},
            {"title", row.title},
            {"a_ms_per_step", row.a_ms},
            {"b_ms_per_step", row.b_ms},
            {"difference_ms_per_step", row.Difference()},
            {"interval_ms_per_step", BoundsJson(row.bounds)},
            {"told_from_noise", row.IsClear()}};
  if (row.a_count > 0 || row.b_count > 0) {
    json["a_count_per_step"] = row.a_count;
    json["b_count_per_step"] = row.b_count;
  }
  return json;
}

Json RunsJson(const std::vector<DiffRun>& runs) {
  Json list = Json::array();
  for (const DiffRun& run : runs) {
    list.push_back({{"path", run.path},
                    {"kind", run.kind},
                    {"ranks", run.ranks},
                    {"steps", run.steps},
                    {"mean_ms", run.steps > 0 ? Json(run.step_ms) : Json(nullptr)}});
  }
  return list;
}

Json DoubtsJson(const std::vector<DiffDoubt>& doubts) {
  Json list = Json::array();
  for (const DiffDoubt& doubt : doubts) {
    list.push_back({{"id", doubt.id}, {"text", doubt.text}});
    if (doubt.a.empty() && doubt.b.empty()) continue;
    list.back()["a"] = doubt.a;
    list.back()["b"] = doubt.b;
  }
  return list;
}

Json LateRankJson(const LateRankDiff& late) {
  Json json{{"rank", late.rank},
            {"a_late_ms_per_step", late.a_late_ms},
            {"b_late_ms_per_step", late.b_late_ms}};
  json["cause"] = late.cause.name.empty() ? Json(nullptr) : RowJson(late.cause);
  return json;
}

Json FindingJson(const FindingDiff& finding) {
  const Site& site = finding.where;
  const auto cost = [](std::optional<double> ms) { return ms ? Json(*ms) : Json(nullptr); };
  Json where{{"file", site.file.empty() ? Json(nullptr) : Json(site.file)},
             {"line", site.file.empty() ? Json(nullptr) : Json(site.line)},
             {"function", site.function}};
  if (!site.op.empty()) where["op"] = site.op;
  Json json{{"state", Name(finding.state)},
            {"fingerprint", finding.fingerprint},
            {"rule", finding.rule},
            {"code", finding.code},
            {"severity", Name(finding.severity)},
            {"title", finding.title},
            {"where", std::move(where)},
            {"a_runs", finding.a_runs},
            {"b_runs", finding.b_runs},
            {"a_cost_ms_per_step", cost(finding.a_cost_ms)},
            {"b_cost_ms_per_step", cost(finding.b_cost_ms)}};
  if (!finding.note.empty()) json["note"] = finding.note;
  return json;
}

}  // namespace

std::string DiffJson(const Diff& diff) {
  const bool is_compared = diff.result != DiffResult::kRefused;
  Json json;
  json["schema_version"] = kDiffSchemaVersion;
  json["verdict"] = DiffVerdict(diff);
  json["result"] = Name(diff.result);
  json["conclusive"] = diff.IsConclusive();
  json["a"] = RunsJson(diff.a);
  json["b"] = RunsJson(diff.b);
  json["refused"] = DoubtsJson(diff.refusals);
  json["losses"] = DoubtsJson(diff.losses);
  json["cautions"] = DoubtsJson(diff.cautions);
  json["step"] = is_compared ? RowJson(diff.step) : Json(nullptr);
  json["step_of"] = !is_compared ? Json(nullptr) : Json(diff.on_devices ? "devices" : "host");
  json["tables"] = Json::array();
  for (const DiffTable& table : diff.tables) {
    Json rows = Json::array();
    for (const DiffRow& row : table.rows) rows.push_back(RowJson(row));
    json["tables"].push_back(
        {{"by", Name(table.by)}, {"rows", std::move(rows)}, {"whole", RowJson(table.whole)}});
  }
  json["late_ranks"] = Json::array();
  for (const LateRankDiff& late : diff.late_ranks) json["late_ranks"].push_back(LateRankJson(late));
  json["findings"] = Json::array();
  for (const FindingDiff& finding : diff.findings) json["findings"].push_back(FindingJson(finding));
  // Names come from traces and may be no UTF-8: replaced, never fatal.
  return HarmlessJson(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace trainprof
