// The fields of all that a digest holds, as a list of each struct for who writes or reads them. A field that is
// added to a struct and not here does not compile, since each list takes its struct apart as a whole.
#pragma once

#include <concepts>

#include "analysis/job/digest.h"

namespace trainprof {

template <class T, class Struct>
concept Of = std::same_as<std::remove_const_t<T>, Struct>;

void Fields(auto& in, Of<Site> auto& site) {
  auto& [file, line, function, op, count] = site;
  in("file", file)("line", line)("function", function)("op", op)("count", count);
}

void Fields(auto& in, Of<Evidence> auto& evidence) {
  auto& [what, when, table, row, device] = evidence;
  in("what", what)("when", when)("table", table)("row", row)("device", device);
}

void Fields(auto& in, Of<GainSpread> auto& spread) {
  auto& [steps, median, p90, rare_steps, rare, every] = spread;
  in("steps", steps)("median_ms", median)("p90_ms", p90);
  in("rare_steps", rare_steps)("rare_ms", rare)("every", every);
}

void Fields(auto& in, Of<GainSources> auto& sources) {
  auto& [answers, steps, replay, runs, launches, recording] = sources;
  in("answers_ms", answers)("steps_ms", steps)("replay_ms", replay)("runs_ms", runs)(
      "launches_ms", launches)("recording_ms", recording);
}

void Fields(auto& in, Of<Gain> auto& gain) {
  auto& [low, high, expected, further, spread, sources] = gain;
  in("low_ms_per_step", low)("high_ms_per_step", high)("expected_ms_per_step", expected)(
      "further_ms_per_step", further)("spread", spread)("sources", sources);
}

void Fields(auto& in, Of<Finding> auto& finding) {
  auto& [rule, code, severity, title, where, count, cost, gain, confidence, reasons, evidence,
         advice, fix, verify] = finding;
  in("rule", rule)("code", code)("severity", severity)("title", title)("where", where)(
      "count", count)("cost", cost)("gain", gain)("confidence", confidence)(
      "confidence_reasons", reasons)("evidence", evidence)("advice", advice)("fix", fix)("verify",
                                                                                         verify);
}

void Fields(auto& in, Of<Weakness> auto& weakness) {
  auto& [factor, reason] = weakness;
  in("factor", factor)("reason", reason);
}

void Fields(auto& in, Of<SkippedRule> auto& skipped) {
  auto& [rule, reason] = skipped;
  in("rule", rule)("reason", reason);
}

void Fields(auto& in, Of<QualityItem> auto& item) {
  auto& [kind, severity, count, detail] = item;
  in("kind", kind)("severity", severity)("count", count)("detail", detail);
}

void Fields(auto& in, Of<HostFact> auto& fact) {
  auto& [id, text, value, unit] = fact;
  in("id", id)("text", text)("value", value)("unit", unit);
}

void Fields(auto& in, Of<OtherItem> auto& item) {
  auto& [kind, name, total, count, is_users, inside] = item;
  in("kind", kind)("name", name)("total", total)("count", count);
  in("is_users", is_users)("inside", inside);
}

void Fields(auto& in, Of<OtherTime> auto& other) {
  auto& [total, items] = other;
  in("total", total)("items", items);
}

void Fields(auto& in, Of<LineTime> auto& line) {
  auto& [file, number, function, callee, callee_file, total, waiting, count, gil] = line;
  in("file", file)("line", number)("function", function)("callee", callee)(
      "callee_file", callee_file)("total", total)("waiting", waiting)("count", count)("gil", gil);
}

void Fields(auto& in, Of<WorkTime> auto& time) {
  auto& [work, total] = time;
  in("work", work)("total", total);
}

void Fields(auto& in, Of<PhaseLines> auto& phase) {
  auto& [of, total, count, sampled, lines, producers, work] = phase;
  in("phase", of)("total", total)("count", count)("sampled", sampled);
  in("lines", lines)("producers", producers)("work", work);
}

void Fields(auto& in, Of<LoaderWait> auto& wait) {
  auto& [total, during_idle] = wait;
  in("total", total)("during_idle", during_idle);
}

void Fields(auto& in, Of<Step> auto& step) {
  auto& [range, span, device, begin_is_known, end_is_known, number] = step;
  in("range", range)("span", span)("device", device)("begin_is_known", begin_is_known)(
      "end_is_known", end_is_known)("number", number);
}

void Fields(auto& in, Of<Steps> auto& steps) {
  auto& [source, thread, list, warmup, searched, window, device_window, clock] = steps;
  in("source", source)("thread", thread)("steps", list)("warmup_steps", warmup)(
      "searched_steps", searched)("window", window)("device_window", device_window)("clock", clock);
}

void Fields(auto& in, Of<DeviceReport> auto& device) {
  auto& [id, name, capability, multiprocessors, memory_bytes, is_mig_slice, occupancy, stray, busy,
         busy_high, account] = device;
  in("id", id)("name", name)("compute_capability", capability)("multiprocessors", multiprocessors)(
      "memory_bytes", memory_bytes)("is_mig_slice", is_mig_slice)("occupancy", occupancy)(
      "stray", stray)("busy", busy)("busy_high", busy_high);
  in.template Account<DeviceClass, kDeviceClasses>("account", account);
}

void Fields(auto& in, Of<OperatorTime> auto& time) {
  auto& [name, count, own, whole] = time;
  in("name", name)("count", count)("own", own)("whole", whole);
}

void Fields(auto& in, Of<Operators> auto& all) {
  auto& [operators, modules, recorded, recording] = all;
  in("operators", operators)("modules", modules)("recorded", recorded)("recording", recording);
}

void Fields(auto& in, Of<MemorySeries> auto& series) {
  auto& [pid, name, peak, last, steps, judged, growth, noise] = series;
  in("pid", pid)("name", name)("peak_bytes", peak)("last_bytes", last)("steps", steps)(
      "judged", judged)("growth_bytes_per_step", growth)("noise_bytes", noise);
}

void Fields(auto& in, Of<KeptMemory> auto& kept) {
  auto& [kind, device, bytes, count, graphs, line, variable, file, caller_line, caller] = kept;
  in("kind", kind)("device", device)("bytes", bytes)("per_step", count)("graphs", graphs);
  in("line", line)("variable", variable)("file", file)("from_line", caller_line)("from", caller);
}

void Fields(auto& in, Of<StepMemory> auto& memory) {
  auto& [series, kept, cost, searched, search, missing] = memory;
  in("series", series)("kept", kept)("cost", cost);
  in("searched_steps", searched)("search", search)("missing", missing);
}

void Fields(auto& in, Of<DetailCheck> auto& check) {
  auto& [others, step, other_step, wait, other_wait, recording, device_work, is_unlike] = check;
  in("others", others)("step", step)("other_step", other_step)("wait", wait)(
      "other_wait", other_wait)("recording", recording)("device_work", device_work)("is_unlike",
                                                                                    is_unlike);
}

void Fields(auto& in, Of<ResidualSite> auto& site) {
  auto& [name, count, total] = site;
  in("name", name)("count", count)("total", total);
}

void Fields(auto& in, Of<RankAnalysis> auto& rank) {
  auto& [place, path, source, kind, number, rank_known, world_size, base_ns, steps, window,
         device_steps, device_window, workload, identity_error, residual, detail_check, devices,
         device_doubt, launch_doubt, host_account, host_other, host_lines, operators, memory,
         loader_wait, has_host_phases, phases_are_sampled, findings, weaknesses, skipped, passed,
         quality, environment, host_facts, kernels, copies, api_calls, ranges, device_waits] = rank;
  in("place", place)("path", path)("source", source)("kind", kind)("rank", number)(
      "rank_known", rank_known)("world_size", world_size)("base_ns", base_ns)("steps", steps)(
      "window", window)("device_steps", device_steps)("device_window", device_window)(
      "workload", workload)("identity_error", identity_error)("residual", residual)(
      "detail_check", detail_check)("devices", devices)("device_doubt", device_doubt)(
      "launch_doubt", launch_doubt);
  in.template Account<HostClass, kHostClasses>("host_account", host_account);
  in("host_other", host_other)("host_lines", host_lines)("operators", operators)("memory", memory)(
      "loader_wait", loader_wait)("has_host_phases", has_host_phases)(
      "phases_are_sampled", phases_are_sampled)("findings", findings)("weaknesses", weaknesses)(
      "skipped", skipped)("passed", passed)("quality", quality)("environment", environment)(
      "host_facts", host_facts)("kernels", kernels)("copies", copies)("api_calls", api_calls)(
      "ranges", ranges)("device_waits", device_waits);
}

void Fields(auto& in, Of<OperationSteps> auto& operation) {
  auto& [name, names, count, steps] = operation;
  in("name", name)("names", names)("count", count)("steps", steps);
}

void Fields(auto& in, Of<DeviceSteps> auto& device) {
  auto& [id, steps, operations, others] = device;
  in("device", id)("steps", steps)("operations", operations)("others", others);
}

void Fields(auto& in, Of<CollectiveCall> auto& call) {
  auto& [sequence, when, exposed] = call;
  in("sequence", sequence)("when", when)("exposed", exposed);
}

void Fields(auto& in, Of<Collectives> auto& calls) {
  auto& [communicator, members, operation, device, numbered, list] = calls;
  in("communicator", communicator)("members", members)("operation", operation)("device", device)(
      "numbered", numbered)("calls", list);
}

void Fields(auto& in, Of<RankDigest> auto& digest) {
  auto& [analysis, host, host_steps, devices, collectives] = digest;
  in("analysis", analysis)("host", host)("host_steps", host_steps)("devices", devices)(
      "collectives", collectives);
}

}  // namespace trainprof
