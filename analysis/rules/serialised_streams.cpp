// small kernels of several streams wait for each other through events, though they would fit the device
// together  =>  fewer edges
//
// Whether one needs what the other made, a trace does not show: it is said, and the gain may be 0.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/account/account.h"
#include "analysis/host/program.h"
#include "analysis/host/stream_waits.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/base/kernel_names.h"
#include "trace/tables/communication.h"

namespace trainprof::rules {
namespace {

constexpr double kEdgesMayBeNeeded = 0.5;  // confidence

uint64_t BlocksOf(const Trace& trace, Row op) {
  const LaunchConfig* const config = trace.ConfigOf(op);
  if (config == nullptr || config->grid == LaunchConfig::kNoShape) return 0;
  uint64_t blocks = 1;
  for (const uint32_t side : config->grid)
    blocks *= std::max<uint64_t>(1, std::min(side, 1u << 20));
  return blocks;
}

struct Found {
  std::vector<StreamWait> waits;
  Duration together;                    // that the two sides could have run beside each other
  std::set<Row> kernels;                // on either side of such a wait
  std::map<TrackId, Duration> streams;  // their time, by stream
  bool edges_within_device = false;     // between kernels of two streams of one device
  bool sizes_known = false;
};

bool IsCompute(const Trace& trace, Row op) {
  return trace.device_ops.kind[Index(op)] == DeviceOpKind::kKernel && !Communicates(trace, op);
}

// How much earlier the kernel behind the wait could have begun, and still beside the one before: not
// before its launch, nor before its own stream was free.
Duration Headroom(const Trace& trace, const StreamWait& wait) {
  const DeviceOpTable& ops = trace.device_ops;
  TraceTime free =
      std::max(ops.begin[Index(wait.before)], trace.api.end[Index(ops.launch[Index(wait.after)])]);
  if (wait.behind != kNoRow) free = std::max(free, ops.end[Index(wait.behind)]);
  const Duration room = ops.end[Index(wait.before)] - std::min(free, ops.end[Index(wait.before)]);
  return std::min(room, ops.interval(wait.after).Length());
}

Found Collect(const RankModel& model) {
  const Trace& trace = model.trace;
  const DeviceOpTable& ops = trace.device_ops;
  Found found;
  for (const StreamWait& wait : FindStreamWaits(trace)) {
    const DeviceId device = trace.tracks[Index(ops.track[Index(wait.after)])].device;
    if (trace.tracks[Index(ops.track[Index(wait.before)])].device != device) continue;
    if (!IsCompute(trace, wait.before) || !IsCompute(trace, wait.after)) continue;
    if (!model.InDeviceWindow(ops.interval(wait.after))) continue;
    found.edges_within_device = true;
    const uint64_t before = BlocksOf(trace, wait.before);
    const uint64_t after = BlocksOf(trace, wait.after);
    const int32_t multiprocessors = trace.devices[Index(device)].num_sms;
    if (before == 0 || after == 0 || multiprocessors <= 0) continue;
    found.sizes_known = true;
    // A block each at most: they fit together whatever a block takes.
    if (before + after > static_cast<uint64_t>(multiprocessors)) continue;
    // The edge is what held the second one up.
    const Duration apart = ops.begin[Index(wait.after)] - ops.end[Index(wait.before)];
    if (apart.ns < 0 || apart > kHandOver) continue;
    found.together += Headroom(trace, wait);
    for (const Row op : {wait.before, wait.after}) {
      if (!found.kernels.insert(op).second) continue;
      found.streams[ops.track[Index(op)]] += ops.interval(op).Length();
    }
    found.waits.push_back(wait);
  }
  return found;
}

// The streams beside each other take as long as the longest of them.
Duration CostOf(const Found& found) {
  Duration all;
  Duration longest;
  for (const auto& [stream, total] : found.streams) {
    all += total;
    longest = std::max(longest, total);
  }
  return std::min(found.together, all - longest);
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (MissesStreamWaits(model.trace)) {
    return Skipped{"the trace does not say what streams waited for"};
  }
  Found found = Collect(model);
  if (found.edges_within_device && !found.sizes_known) {
    return Skipped{"the trace does not say how large kernels and devices are"};
  }
  const Duration cost = CostOf(found);
  if (found.waits.empty() || model.ShareOfWindow(cost) < kLeastShare) {
    return std::vector<Diagnosis>{};
  }
  const DeviceOpTable& ops = model.trace.device_ops;
  Finding finding;
  finding.cost = cost;
  finding.severity = SeverityOfLoss(model.ShareOfWindow(cost));
  if (finding.severity == Severity::kError) finding.severity = Severity::kWarning;
  finding.count = static_cast<int64_t>(found.waits.size());
  finding.title = fmt::format(
      "Serialised streams: {} of {} streams wait for each other, and would fit the GPU together: up to {:.2f} {}",
      Counted(finding.count, "small kernel", "small kernels"), found.streams.size(),
      model.PerStepMs(cost), model.Unit());
  finding.confidence = kEdgesMayBeNeeded;
  finding.confidence_reasons.push_back(
      "the trace does not show whether a kernel needs what the one before it made");
  std::vector<Row> rows;
  for (size_t i = 0; i < found.waits.size(); ++i) {
    CancelPoint(i);
    rows.push_back(found.waits[i].sync);
    AddSite(finding.where, model.sites.FindCall(ops.launch[Index(found.waits[i].after)]));
  }
  KeepWorst(found.waits, [&](const StreamWait& a, const StreamWait& b) {
    return Headroom(model.trace, a) > Headroom(model.trace, b);
  });
  for (const StreamWait& wait : found.waits) {
    const Interval when = ops.interval(wait.after);
    finding.evidence.push_back(
        {fmt::format("{} ({} blocks, {:.3f} ms) began when {} ({} blocks) had ended",
                     FunctionOf(model.trace.Text(ops.name[Index(wait.after)])),
                     BlocksOf(model.trace, wait.after), when.Length().ToMilliseconds(),
                     FunctionOf(model.trace.Text(ops.name[Index(wait.before)])),
                     BlocksOf(model.trace, wait.before)),
         when, Table::kDeviceOps, wait.after});
  }
  const Language language = LanguageOf(model.trace);
  finding.advice = fmt::format(
      "If these kernels do not need each other's results, let their streams run side by side: fork once "
      "({}) and join once at the end, instead of a wait between any two. If they do, one stream does the "
      "same with less.",
      InItsLanguage(language, "side.wait_stream(main) ... main.wait_stream(side)",
                    "one event recorded, one CUDAEvent::block, at each end"));
  finding.fix = language == Language::kCpp
                    ? "fork.record(main); fork.block(side);\n/* all work of main and of side */\n"
                      "join.record(side); join.block(main);"
                    : "side.wait_stream(main)\nwith torch.cuda.stream(side):\n    y2 = branch2(x)\n"
                      "y1 = branch1(x)\nmain.wait_stream(side)   # and y2.record_stream(main)";
  finding.verify = "Record again: kernels of these streams overlap, and the step is shorter.";
  return std::vector<Diagnosis>{{std::move(finding), {Edit::kDropDependencies, std::move(rows)}}};
}

}  // namespace

extern const Rule serialised_streams = {"TP502", "streams that wait for each other without need",
                                        Check};

}  // namespace trainprof::rules
