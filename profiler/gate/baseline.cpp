#include "profiler/gate/baseline.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "profiler/gate/small_file.h"

namespace trainprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBaselineSchema = 1;

std::string FileName(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

// What no comparison looks at: most of a report, and the folders of a machine.
RankDigest Thinned(RankDigest digest) {
  RankAnalysis& rank = digest.analysis;
  rank.path = FileName(rank.path);
  rank.host_other.items.clear();
  rank.host_lines.clear();
  rank.operators = {};
  rank.memory = {};
  for (Finding& finding : rank.findings) {
    finding.evidence.clear();
    finding.advice.clear();
    finding.fix.clear();
    finding.verify.clear();
  }
  return digest;
}

Json RunJson(const JobDigests& run) {
  Json ranks = Json::array();
  for (const RankDigest& digest : run.ranks) {
    ranks.push_back(Json::parse(DigestToJson(Thinned(digest))));
  }
  return {{"path", FileName(run.source.path.string())},
          {"whole", run.source.is_whole},
          {"ranks", std::move(ranks)}};
}

Error WrongBaseline(const std::string& path, const std::string& what) {
  return Error{fmt::format("{}: {}", path, what)};
}

Result<JobAnalysis> RunFrom(const Json& json, const std::string& path) {
  JobDigests run;
  const auto name = json.find("path");
  const auto ranks = json.find("ranks");
  const bool is_run = name != json.end() && name->is_string() && ranks != json.end() &&
                      ranks->is_array() && !ranks->empty();
  if (!is_run) return WrongBaseline(path, "a run of this baseline has no path or no ranks");
  run.source.path = name->get<std::string>();
  if (const auto whole = json.find("whole"); whole != json.end() && whole->is_boolean()) {
    run.source.is_whole = whole->get<bool>();
  }
  for (const Json& rank : *ranks) {
    Result<RankDigest> digest = DigestFromJson(rank.dump(), path);
    if (!digest.ok()) {
      return Error{fmt::format("{}; make it anew: trainprof baseline create", digest.error())};
    }
    run.ranks.push_back(std::move(digest).value());
  }
  return AnalysisOf(std::move(run));
}

}  // namespace

std::string BaselineText(const std::vector<JobDigests>& runs) {
  Json all{{"trainprof_baseline", kBaselineSchema}, {"runs", Json::array()}};
  for (const JobDigests& run : runs) all["runs"].push_back(RunJson(run));
  return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<JobAnalysis>> BaselineFrom(std::string_view text, const std::string& path) {
  const Json all = Json::parse(text, nullptr, false);
  if (all.is_discarded()) return WrongBaseline(path, "this is no JSON, or a damaged one");
  const auto schema = all.is_object() ? all.find("trainprof_baseline") : all.end();
  if (!all.is_object() || schema == all.end()) {
    return WrongBaseline(path, "this is no baseline: trainprof baseline create makes one");
  }
  if (*schema != kBaselineSchema) {
    return WrongBaseline(
        path, fmt::format("a baseline of schema {}; this trainprof reads {}: make it anew",
                          schema->dump(), kBaselineSchema));
  }
  const auto runs = all.find("runs");
  if (runs == all.end() || !runs->is_array() || runs->empty()) {
    return WrongBaseline(path, "this baseline holds no runs");
  }
  std::vector<JobAnalysis> jobs;
  for (const Json& run : *runs) {
    Result<JobAnalysis> job = RunFrom(run, path);
    if (!job.ok()) return Error{job.error()};
    jobs.push_back(std::move(job).value());
  }
  return jobs;
}

Result<std::vector<JobAnalysis>> ReadBaseline(const std::filesystem::path& path) {
  const Result<std::string> text = ReadSmallFile(path, kMostBaselineBytes);
  if (!text.ok()) return Error{text.error()};
  return BaselineFrom(text.value(), path.string());
}

}  // namespace trainprof
