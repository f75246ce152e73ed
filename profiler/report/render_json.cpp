// The report for programs. Its names and meanings are a contract: docs/report.schema.json. Within a
// major version fields are only added.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "analysis/gain.h"
#include "analysis/job/coverage.h"
#include "analysis/job/verdict.h"
#include "profiler/report/gate_json.h"
#include "profiler/report/renderer.h"
#include "trace/io/printable.h"

namespace trainprof::renderers {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchemaVersion = "1.8";

// `window`: what the account is of.
Json AccountJson(const Steps& steps, Duration window, const std::vector<AccountLine>& account) {
  Json lines = Json::array();
  for (const AccountLine& line : account) {
    lines.push_back({{"class", line.name},
                     {"ms_per_step", line.total.ToMilliseconds() / steps.divisor()},
                     {"fraction", RankAnalysis::Part(line.total, window)},
                     {"total_ns", line.total.ns}});
  }
  return lines;
}

Json StepsJson(const RankAnalysis& rank) {
  const Steps& steps = rank.steps;
  Json json{{"source", Name(steps.source)}, {"count", steps.count()}};
  const bool any = steps.count() > 0;
  json["median_ms"] = any ? Json(steps.Median().ToMilliseconds()) : Json(nullptr);
  json["mean_ms"] = any ? Json(steps.MeanMilliseconds()) : Json(nullptr);
  json["p10_ms"] = any ? Json(steps.Quantile(0.1).ToMilliseconds()) : Json(nullptr);
  json["p90_ms"] = any ? Json(steps.Quantile(0.9).ToMilliseconds()) : Json(nullptr);
  json["clock"] = Name(steps.clock);
  json["host_mean_ms"] = any ? Json(steps.HostMeanMilliseconds()) : Json(nullptr);
  json["window_ms"] = rank.window.ToMilliseconds();
  json["window_ns"] = rank.window.ns;
  json["samples_per_second"] = nullptr;
  json["warmup_steps"] = steps.warmup_steps;
  if (steps.searched_steps > 0) json["searched_steps"] = steps.searched_steps;
  if (any) json["first_number"] = steps.steps.front().number;
  if (any) json["last_number"] = steps.steps.back().number;
  return json;
}

Json DeviceJson(const RankAnalysis& rank, const DeviceReport& device) {
  Json json{{"id", device.id},
            {"name", device.name},
            {"stray", device.stray},
            {"busy_fraction", rank.DeviceShare(device.busy)},
            {"busy_fraction_high", rank.DeviceShare(device.busy_high)},
            {"peak_memory_bytes", nullptr},
            {"account", AccountJson(rank.device_steps, rank.device_window, device.account)}};
  if (!device.compute_capability.empty()) json["compute_capability"] = device.compute_capability;
  if (device.multiprocessors > 0) json["multiprocessors"] = device.multiprocessors;
  if (device.memory_bytes > 0) json["memory_bytes"] = device.memory_bytes;
  if (device.is_mig_slice) json["mig_slice"] = true;
  if (device.occupancy >= 0) json["theoretical_occupancy"] = device.occupancy;
  return json;
}

Json OtherItemsJson(const RankAnalysis& rank, const std::vector<OtherItem>& items) {
  Json list = Json::array();
  for (const OtherItem& item : items) {
    Json json{{"kind", Name(item.kind)}, {"name", item.name}};
    if (item.kind != OtherKind::kNothing) json["count"] = item.count;
    json["ms_per_step"] = rank.PerStepMs(item.total);
    json["fraction"] = rank.Share(item.total);
    json["total_ns"] = item.total.ns;
    if (!item.inside.empty()) json["inside"] = OtherItemsJson(rank, item.inside);
    list.push_back(std::move(json));
  }
  return list;
}

Json LinesJson(const RankAnalysis& rank, const std::vector<LineTime>& lines) {
  Json list = Json::array();
  for (const LineTime& line : lines) {
    Json json{{"file", line.file.empty() ? Json(nullptr) : Json(line.file)},
              {"line", line.file.empty() ? Json(nullptr) : Json(line.line)},
              {"function", line.function},
              {"samples", line.count},
              {"ms_per_step", rank.PerStepMs(line.total)},
              {"waiting_ms_per_step", rank.PerStepMs(line.waiting)},
              {"gil_ms_per_step", rank.PerStepMs(line.gil)},
              {"fraction", rank.Share(line.total)},
              {"total_ns", line.total.ns}};
    if (!line.callee.empty()) json["callee"] = line.callee;
    if (!line.callee.empty()) json["callee_file"] = line.callee_file;
    list.push_back(std::move(json));
  }
  return list;
}

Json HostLinesJson(const RankAnalysis& rank) {
  Json phases = Json::array();
  for (const PhaseLines& phase : rank.host_lines) {
    Json json{{"class", Name(phase.phase)},
              {"source", phase.sampled ? "samples" : "functions"},
              {"samples", phase.count},
              {"total_ns", phase.total.ns},
              {"lines", LinesJson(rank, phase.lines)}};
    if (!phase.producers.empty()) json["producers"] = LinesJson(rank, phase.producers);
    for (const WorkTime& time : phase.work) {
      json["work"].push_back({{"work", Name(time.work)},
                              {"ms_per_step", rank.PerStepMs(time.total)},
                              {"fraction", rank.Share(time.total)},
                              {"total_ns", time.total.ns}});
    }
    phases.push_back(std::move(json));
  }
  return phases;
}

Json OperatorTimesJson(const RankAnalysis& rank, const std::vector<OperatorTime>& times) {
  Json list = Json::array();
  for (const OperatorTime& time : times) {
    list.push_back({{"name", time.name},
                    {"count", time.count},
                    {"own_ms_per_step", rank.PerStepMs(time.own)},
                    {"own_fraction", rank.Share(time.own)},
                    {"own_ns", time.own.ns},
                    {"whole_ns", time.whole.ns}});
  }
  return list;
}

Json MemoryJson(const StepMemory& memory) {
  Json series = Json::array();
  for (const MemorySeries& each : memory.series) {
    series.push_back({{"pid", each.pid},
                      {"name", each.name},
                      {"peak_bytes", each.peak_bytes},
                      {"last_bytes", each.last_bytes},
                      {"steps", each.steps}});
    Json& json = series.back();
    json["growth_bytes_per_step"] = each.judged ? Json(each.growth_bytes_per_step) : Json(nullptr);
    json["noise_bytes"] = each.judged ? Json(each.noise_bytes) : Json(nullptr);
  }
  Json kept = Json::array();
  for (const KeptMemory& each : memory.kept) {
    Json json{{"kind", each.kind},
              {"file", each.file},
              {"line", each.line == 0 ? Json(nullptr) : Json(each.line)},
              {"bytes_per_step", each.bytes_per_step},
              {"per_step", each.per_step},
              {each.kind == "graph" ? "nodes_per_step" : "with_graph_per_step", each.graphs}};
    if (!each.device.empty()) json["device"] = each.device;
    if (each.caller_line != 0) {
      json["caller_file"] = each.caller_file;
      json["caller_line"] = each.caller_line;
    }
    if (!each.variable.empty()) json["variable"] = each.variable;
    kept.push_back(std::move(json));
  }
  Json json{{"series", std::move(series)},
            {"kept", std::move(kept)},
            {"cost_ms_per_step", memory.cost.ToMilliseconds()},
            {"searched_steps", memory.searched_steps},
            {"search_ms", memory.search.ToMilliseconds()}};
  if (!memory.missing.empty()) json["missing"] = memory.missing;
  return json;
}

Json HostFactsJson(const RankAnalysis& rank) {
  Json facts = Json::array();
  for (const HostFact& fact : rank.host_facts) {
    facts.push_back(
        {{"id", fact.id}, {"text", fact.text}, {"value", fact.value}, {"unit", fact.unit}});
  }
  return facts;
}

Json UncoveredJson(const RankAnalysis& rank) {
  Json classes = Json::array();
  for (const UncoveredClass& uncovered : UncoveredClasses(rank)) {
    classes.push_back({{"class", uncovered.name},
                       {"fraction", uncovered.share},
                       {"ms_per_step", uncovered.ms_per_step},
                       {"rules_in_part", uncovered.in_part}});
  }
  return classes;
}

// null where there is nothing to compare.
Json OtherStepsJson(const DetailCheck& check) {
  if (check.others == 0) return nullptr;
  return {{"count", check.others},
          {"mean_ms", check.other_step.ToMilliseconds()},
          {"loader_wait_ms_per_step", check.other_wait.ToMilliseconds()},
          {"recording_ms_per_step", check.recording.ToMilliseconds()},
          {"is_unlike", check.is_unlike}};
}

Json ClockJson(const JobAnalysis& job, const std::optional<ClockOffset>& clock) {
  if (!clock) return nullptr;
  return {{"beside_rank", job.ranks[clock->beside].rank},
          {"ahead_ns", clock->ahead.ns},
          {"drift_ns_per_s", clock->drift * 1e9},
          {"spread_ns", clock->spread.ns},
          {"collectives", clock->collectives}};
}

// What one rank waits in collectives; null where none was found in another rank.
Json RankWaitsJson(const JobAnalysis& job, size_t index, const std::optional<Duration>& slack) {
  const RankAnalysis& rank = job.ranks[index];
  if (!job.waits.Any() || job.waits.ranks[index].collectives == 0) return nullptr;
  const RankWaits& waits = job.waits.ranks[index];
  return {{"collectives", waits.collectives},
          {"collectives_alone", waits.alone},
          {"wait_ns", waits.wait.ns},
          {"wait_ms_per_step", rank.PerStepMs(waits.wait)},
          {"exposed_wait_ms_per_step", rank.PerStepMs(waits.exposed_wait)},
          {"exchange_ms_per_step", rank.PerStepMs(waits.exchange)},
          {"slack_ms_per_step", slack ? Json(slack->ToMilliseconds()) : Json(nullptr)},
          {"awaited_rank", waits.awaited ? Json(job.ranks[*waits.awaited].rank) : Json(nullptr)},
          {"awaited_ms_per_step", rank.PerStepMs(waits.awaited_wait)},
          {"caused_ms_per_step", rank.PerStepMs(waits.caused)},
          {"lead_ms_per_step", rank.PerStepMs(waits.lead)},
          {"late_steps", waits.late_steps},
          {"brought_ms", waits.brought.ToMilliseconds()},
          {"clock", ClockJson(job, job.waits.clocks[index])}};
}

Json JobWaitsJson(const JobAnalysis& job) {
  const JobWaits& waits = job.waits;
  Json late = Json::array();
  for (const uint32_t rank : waits.late) late.push_back(job.ranks[rank].rank);
  Json json{{"collectives", waits.collectives},
            {"steps", waits.steps},
            {"late_steps", waits.late_steps},
            {"whole", waits.is_whole},
            {"late_ranks", std::move(late)},
            {"changes", waits.changes},
            {"cause", nullptr},
            {"doubts", waits.doubts}};
  const LateCause& cause = job.late_cause;
  if (const std::string text = CauseText(cause); !text.empty()) {
    json["cause"] = {{"text", text},
                     {"class", cause.name.empty() ? Json(nullptr) : Json(cause.name)},
                     {"account", cause.on_device ? "device" : "host"},
                     {"more_ms_per_step", cause.more_ms},
                     {"brought_ms_per_step", cause.brought_ms}};
  }
  return json;
}

Json DeviceStepsJson(const RankAnalysis& rank) {
  const Steps& steps = rank.device_steps;
  Json json{{"count", steps.count()}, {"window_ns", rank.device_window.ns}};
  json["mean_ms"] = steps.count() > 0 ? Json(steps.MeanMilliseconds()) : Json(nullptr);
  if (steps.count() > 0 && steps.clock == StepClock::kDevice) {
    json["host_ahead_at_begin_ms"] = steps.LagAtBegin().ToMilliseconds();
    json["host_ahead_at_end_ms"] = steps.LagAtEnd().ToMilliseconds();
  }
  return json;
}

// Null where nothing is unexplained.
Json ResidualJson(const RankAnalysis& rank) {
  const ResidualSite& site = rank.residual;
  if (site.name.empty()) return nullptr;
  return {{"before", site.name},
          {"count", site.count},
          {"ms_per_step", rank.DevicePerStepMs(site.total)}};
}

Json RankJson(const RankAnalysis& rank) {
  Json devices = Json::array();
  for (const DeviceReport& device : rank.devices) devices.push_back(DeviceJson(rank, device));
  Json json{{"rank", rank.rank},
            {"world_size", rank.world_size},
            {"rank_known", rank.rank_known},
            {"path", rank.path},
            {"workload", Name(rank.workload)},
            {"steps", StepsJson(rank)},
            {"devices", std::move(devices)},
            {"device_steps", DeviceStepsJson(rank)},
            {"identity_error", rank.identity_error},
            {"unexplained", ResidualJson(rank)},
            {"other_steps", OtherStepsJson(rank.detail_check)},
            {"host_account", AccountJson(rank.steps, rank.window, rank.host_account)},
            {"host_other", OtherItemsJson(rank, rank.host_other.items)},
            {"loader_wait",
             {{"ms_per_step", rank.DevicePerStepMs(rank.loader_wait.total)},
              {"during_idle_ms_per_step", rank.DevicePerStepMs(rank.loader_wait.during_idle)},
              {"during_idle_fraction", rank.DeviceShare(rank.loader_wait.during_idle)}}},
            {"events",
             {{"kernels", rank.kernels},
              {"copies", rank.copies},
              {"api_calls", rank.api_calls},
              {"ranges", rank.ranges},
              {"device_waits", rank.device_waits}}},
            {"host_facts", HostFactsJson(rank)},
            {"rules_passed", rank.passed},
            {"uncovered", UncoveredJson(rank)}};
  if (rank.phases_are_sampled) json["host_account_source"] = "samples";
  if (!rank.host_lines.empty()) json["host_lines"] = HostLinesJson(rank);
  if (const Operators& all = rank.operators; all.recorded > 0) {
    json["operators"] = OperatorTimesJson(rank, all.operators);
    json["modules"] = OperatorTimesJson(rank, all.modules);
    json["operator_recording"] = {{"ranges", all.recorded},
                                  {"ms_per_step", rank.PerStepMs(all.recording)}};
  }
  if (!rank.memory.series.empty()) json["memory"] = MemoryJson(rank.memory);
  return json;
}

Json SiteJson(const Site& site) {
  Json json;
  json["file"] = site.file.empty() ? Json(nullptr) : Json(site.file);
  json["line"] = site.file.empty() ? Json(nullptr) : Json(site.line);
  json["function"] = site.function;
  if (!site.op.empty()) json["op"] = site.op;
  json["count"] = site.count;
  return json;
}

Json SourcesJson(const GainSources& sources) {
  const std::pair<const char*, double> all[] = {
      {"answers", sources.answers_ms},   {"steps", sources.steps_ms},
      {"replay", sources.replay_ms},     {"runs", sources.runs_ms},
      {"launches", sources.launches_ms}, {"recording", sources.recording_ms}};
  Json json = Json::array();
  for (const auto& [source, ms] : all) {
    if (ms > 0) json.push_back({{"source", source}, {"ms", ms}});
  }
  return json;
}

Json GainJson(const Gain& gain) {
  Json json{{"low", gain.low_ms_per_step},         {"expected", gain.expected_ms_per_step},
            {"further", gain.further_ms_per_step}, {"high", gain.high_ms_per_step},
            {"coverage_target", kCoverageTarget},  {"sources", SourcesJson(gain.sources)}};
  const GainSpread& spread = gain.spread;
  if (spread.steps == 0) return json;
  json["by_step"] = {{"steps", spread.steps}, {"median", spread.median_ms}, {"p90", spread.p90_ms}};
  if (spread.rare_steps == 0) return json;
  json["rare"] = {{"steps", spread.rare_steps}, {"ms", spread.rare_ms}};
  if (spread.every > 0) json["rare"]["every"] = spread.every;
  return json;
}

Json FindingJson(const RankAnalysis& rank, const Finding& finding) {
  Json where = Json::array();
  for (const Site& site : finding.where) where.push_back(SiteJson(site));
  Json evidence = Json::array();
  for (const Evidence& item : finding.evidence) {
    evidence.push_back(
        {{"what", item.what}, {"begin_ns", item.when.begin.ns}, {"end_ns", item.when.end.ns}});
    const Step* const step = rank.StepOf(item);
    if (step != nullptr) evidence.back()["step"] = step->number;
  }
  const auto steps = static_cast<double>(rank.device_steps.divisor());
  Json json{{"rule", finding.rule},
            {"code", finding.code},
            {"severity", Name(finding.severity)},
            {"rank", rank.rank},
            {"title", finding.title},
            {"where", std::move(where)},
            {"count", finding.count},
            {"count_per_step", static_cast<double>(finding.count) / steps},
            {"cost_ms_per_step", rank.DevicePerStepMs(finding.cost)},
            {"gain_ms_per_step", GainJson(finding.gain)},
            {"confidence", finding.confidence},
            {"confidence_reasons", finding.confidence_reasons},
            {"evidence", std::move(evidence)},
            {"advice", finding.advice}};
  if (!finding.fix.empty()) json["fix"] = finding.fix;
  if (!finding.verify.empty()) json["verify"] = finding.verify;
  return json;
}

// Several ranks skip the same rule for the same reason: said once, with the ranks.
Json SkippedJson(const JobAnalysis& job) {
  Json skipped = Json::array();
  for (const RankAnalysis& rank : job.ranks) {
    for (const SkippedRule& rule : rank.skipped) {
      const auto same = std::find_if(skipped.begin(), skipped.end(), [&](const Json& s) {
        return s["rule"] == rule.rule && s["reason"] == rule.reason;
      });
      if (same != skipped.end()) {
        (*same)["ranks"].push_back(rank.rank);
      } else {
        skipped.push_back({{"rule", rule.rule}, {"reason", rule.reason}, {"ranks", {rank.rank}}});
      }
    }
  }
  return skipped;
}

// Counts of one kind and severity are summed over the ranks and the processes beside them.
Json QualityJson(const JobAnalysis& job) {
  Json quality = Json::array();
  const auto add = [&](const QualityItem& item) {
    const auto same = std::find_if(quality.begin(), quality.end(), [&](const Json& q) {
      return q["kind"] == item.kind && q["severity"] == Name(item.severity);
    });
    if (same != quality.end()) {
      (*same)["count"] = (*same)["count"].get<int64_t>() + item.count;
    } else {
      quality.push_back({{"kind", item.kind},
                         {"severity", Name(item.severity)},
                         {"count", item.count},
                         {"detail", item.detail}});
    }
  };
  for (const RankAnalysis& rank : job.ranks) {
    for (const QualityItem& item : rank.quality) add(item);
  }
  for (const QualityItem& item : job.elsewhere) add(item);
  return quality;
}

// In the order of the trace, the last value of a name. A trace may have any number of them, and
// Json's own lookup passes over all names.
Json EnvironmentJson(const RankAnalysis& rank) {
  Json::object_t members;
  std::unordered_map<std::string_view, size_t> places;
  for (const auto& [name, value] : rank.environment) {
    const auto [place, is_new] = places.try_emplace(name, members.size());
    if (is_new) {
      members.emplace_back(name, value);
    } else {
      (members.begin() + static_cast<ptrdiff_t>(place->second))->second = value;
    }
  }
  return Json(std::move(members));
}

// What `trainprof check` says of the job, and why where that is nothing.
Json CheckJson(const JobAnalysis& job) {
  Json reasons = Json::array();
  for (const Doubt& doubt : DoubtsOf(job)) {
    Json kinds = Json::array();
    for (const QualityItem& item : doubt.quality) kinds.push_back(item.kind);
    reasons.push_back({{"id", doubt.id},
                       {"text", doubt.text},
                       {"ranks", doubt.ranks},
                       {"quality", std::move(kinds)}});
  }
  return {{"result", Name(ConclusionOf(job))},
          {"errors", ErrorsIn(job)},
          {"inconclusive", std::move(reasons)}};
}

Result<std::string> Render(const JobAnalysis& job, const RenderOptions& options) {
  Json report;
  report["schema_version"] = kSchemaVersion;
  report["input"] = {{"kind", job.kind}, {"path", job.path}};
  report["environment"] = EnvironmentJson(job.ranks.front());
  report["verdict"] = JobVerdict(job);
  report["check"] = CheckJson(job);
  if (options.gate != nullptr) report["gate"] = GateJson(job, *options.gate);
  if (job.waits.Any() || !job.waits.doubts.empty()) report["waits"] = JobWaitsJson(job);
  report["ranks"] = Json::array();
  report["findings"] = Json::array();
  const std::vector<std::optional<Duration>> slack = SlackOf(job.waits, job.ranks);
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    const RankAnalysis& rank = job.ranks[i];
    report["ranks"].push_back(RankJson(rank));
    if (job.waits.Any()) report["ranks"].back()["waits"] = RankWaitsJson(job, i, slack[i]);
    for (const Finding& finding : rank.findings) {
      report["findings"].push_back(FindingJson(rank, finding));
    }
  }
  report["skipped"] = SkippedJson(job);
  report["quality"] = QualityJson(job);
  // Names come from traces and may be no UTF-8: replaced, never fatal.
  return HarmlessJson(report.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace

extern const Renderer json = {"JSON for programs (docs/report.schema.json)", Render};

}  // namespace trainprof::renderers
