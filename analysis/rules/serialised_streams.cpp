// kernels of several streams wait for each other through events or the null stream, though they would fit
// the device together  =>  fewer edges
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
#include "trace/tables/occupancy.h"

namespace trainprof::rules {
namespace {

constexpr double kEdgesMayBeNeeded = 0.5;  // confidence
// So many operations before and behind a wait are looked at: what lies farther away is not counted.
constexpr int kMostOfARun = 256;
// Of a device: what runs beside nothing, and what an engine of its own does.
constexpr double kNotBeside = 2;
constexpr double kNextToNothing = 1e-9;

// What share of its device an operation needs; 0: not known.
double NeedOf(const Trace& trace, Row op) {
  if (Communicates(trace, op)) return kNotBeside;
  if (trace.device_ops.kind[Index(op)] != DeviceOpKind::kKernel) return kNextToNothing;
  const LaunchConfig* const config = trace.ConfigOf(op);
  if (config == nullptr || config->grid == LaunchConfig::kNoShape) return 0;
  const Device& device =
      trace.devices[Index(trace.tracks[Index(trace.device_ops.track[Index(op)])].device)];
  if (device.num_sms <= 0) return 0;
  const auto product = [](const LaunchConfig::Shape& shape) {
    int64_t product = 1;
    for (const uint32_t side : shape) product *= std::max<int64_t>(1, std::min(side, 1u << 20));
    return product;
  };
  const int64_t blocks = product(config->grid);
  // A block each at most: they fit whatever a block takes.
  const double alone = static_cast<double>(blocks) / device.num_sms;
  const double held =
      ShareOfDevice({device.compute_major, device.compute_minor}, device.num_sms,
                    config->theoretical_occupancy_percent / 100, blocks, product(config->block));
  return held > 0 ? std::min(held, alone) : alone;
}

bool IsCompute(const Trace& trace, Row op) {
  return trace.device_ops.kind[Index(op)] == DeviceOpKind::kKernel && !Communicates(trace, op);
}

// Operations of a stream that follow each other at once.
struct Run {
  std::vector<Row> ops;
  double need = 0;  // of a device, by the largest
  Duration total;
};

// From `op` on, forwards or back, as long as each fits beside what needs `beside`, until they take `enough`.
Run RunFrom(const Trace& trace, Row op, bool is_back, double beside, Duration enough) {
  const DeviceOpTable& ops = trace.device_ops;
  const auto [first, last] = ops.rows_of(ops.track[Index(op)]);
  Run run;
  for (uint32_t row = Index(op);;) {
    const double need = NeedOf(trace, Row{row});
    if (need == 0 || need + beside > 1) break;
    run.need = std::max(run.need, need);
    run.total += ops.interval(Row{row}).Length();
    run.ops.push_back(Row{row});
    if (run.total >= enough || run.ops.size() == kMostOfARun) break;
    if (is_back ? row == first : row + 1 == last) break;
    const uint32_t next = is_back ? row - 1 : row + 1;
    const Duration apart =
        is_back ? ops.begin[row] - ops.end(next) : ops.begin[next] - ops.end(row);
    if (apart > kHandOver) break;
    row = next;
  }
  return run;
}

struct Held {
  StreamWait wait;
  Duration headroom;  // how much of both sides could have run beside each other
};

struct Found {
  std::vector<Held> waits;
  Duration together;                    // that the two sides could have run beside each other
  std::set<Row> kernels;                // on either side of such a wait
  std::map<TrackId, Duration> streams;  // their time, by stream
  bool edges_within_device = false;     // between kernels of two streams of one device
  bool sizes_known = false;
};

// How much earlier the kernel behind the wait could have begun: not before its launch, nor before its own
// stream was free.
Duration Headroom(const Trace& trace, const StreamWait& wait) {
  const DeviceOpTable& ops = trace.device_ops;
  TraceTime free = trace.api.end(Index(ops.launch[Index(wait.after)]));
  if (wait.behind != kNoRow) free = std::max(free, ops.end(Index(wait.behind)));
  const TraceTime end = ops.end(Index(wait.before));
  return end - std::min(free, end);
}

void Collect(const RankModel& model, const std::vector<StreamWait>& waits, Found& found) {
  const Trace& trace = model.trace;
  const DeviceOpTable& ops = trace.device_ops;
  for (const StreamWait& wait : waits) {
    CancelPoint();
    const DeviceId device = trace.tracks[Index(ops.track[Index(wait.after)])].device;
    if (trace.tracks[Index(ops.track[Index(wait.before)])].device != device) continue;
    if (!IsCompute(trace, wait.before) || !IsCompute(trace, wait.after)) continue;
    if (!model.InDeviceWindow(ops.interval(wait.after))) continue;
    found.edges_within_device = true;
    const double before = NeedOf(trace, wait.before);
    const double after = NeedOf(trace, wait.after);
    if (before == 0 || after == 0) continue;
    found.sizes_known = true;
    // The edge is what held the second one up.
    const TraceTime held_until =
        wait.null == kNoRow
            ? ops.end(Index(wait.before))
            : std::max(ops.end(Index(wait.before)),
                       wait.null == wait.after ? TraceTime{INT64_MIN} : ops.end(Index(wait.null)));
    const Duration apart = ops.begin[Index(wait.after)] - held_until;
    if (apart.ns < 0 || apart > kHandOver) continue;
    const Duration room = Headroom(trace, wait);
    const Run left = RunFrom(trace, wait.before, true, after, room);
    const Run right = RunFrom(trace, wait.after, false, left.need, room);
    const Duration headroom = std::min({room, left.total, right.total});
    if (headroom.ns <= 0) continue;
    found.together += headroom;
    for (const Run* run : {&left, &right}) {
      for (const Row op : run->ops) {
        if (!found.kernels.insert(op).second) continue;
        found.streams[ops.track[Index(op)]] += ops.interval(op).Length();
      }
    }
    found.waits.push_back({wait, headroom});
  }
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

// Their change: waits that nobody asks for any more, and work that leaves the null stream.
Change ChangeOf(const Found& found) {
  std::vector<Row> syncs;
  std::vector<Row> null_ops;
  for (const auto& [wait, headroom] : found.waits) {
    (wait.null == kNoRow ? syncs : null_ops).push_back(wait.null == kNoRow ? wait.sync : wait.null);
  }
  std::sort(null_ops.begin(), null_ops.end());
  null_ops.erase(std::unique(null_ops.begin(), null_ops.end()), null_ops.end());
  return {Edit::kDropDependencies, std::move(syncs), kNoDevice, false, {}, {}, std::move(null_ops)};
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (MissesStreamWaits(model.trace)) {
    return Skipped{"the trace does not say what streams waited for"};
  }
  Found found;
  Collect(model, FindStreamWaits(model.trace), found);
  Collect(model, FindNullStreamWaits(model.trace), found);
  if (found.edges_within_device && !found.sizes_known) {
    return Skipped{"the trace does not say how large kernels and devices are"};
  }
  const Duration cost = CostOf(found);
  if (found.waits.empty() || model.ShareOfWindow(cost) < kLeastShare) {
    return std::vector<Diagnosis>{};
  }
  const DeviceOpTable& ops = model.trace.device_ops;
  Change change = ChangeOf(found);
  const bool is_null = !change.ops.empty();
  Finding finding;
  finding.cost = cost;
  finding.severity = SeverityOfLoss(model.ShareOfWindow(cost));
  if (finding.severity == Severity::kError) finding.severity = Severity::kWarning;
  finding.count = static_cast<int64_t>(found.waits.size());
  finding.title = fmt::format(
      "Serialised streams: {} of {} streams {}wait for each other, and would fit the GPU together: up to {:.2f} {}",
      Counted(static_cast<int64_t>(found.kernels.size()), "kernel", "kernels"),
      found.streams.size(), is_null ? "and the default stream's " : "", model.PerStepMs(cost),
      model.Unit());
  finding.confidence = kEdgesMayBeNeeded;
  finding.confidence_reasons.push_back(
      "the trace does not show whether a kernel needs what the one before it made");
  for (const auto& [wait, headroom] : found.waits) {
    CancelPoint();
    AddSite(finding.where, SiteOf(wait, model.trace, model.sites));
  }
  KeepWorst(found.waits, [](const Held& a, const Held& b) { return a.headroom > b.headroom; });
  for (const auto& [wait, headroom] : found.waits) {
    const Interval when = ops.interval(wait.after);
    const auto describe = [&](Row op) {
      return fmt::format(
          "{} ({} of the GPU, {:.3f} ms)", FunctionOf(model.trace.Text(ops.name[Index(op)])),
          Percent(NeedOf(model.trace, op)), ops.interval(op).Length().ToMilliseconds());
    };
    finding.evidence.push_back(
        {fmt::format(
             "{} began when {} had ended; {:.3f} ms of both streams' work fit beside each other",
             describe(wait.after), describe(wait.before), headroom.ToMilliseconds()),
         when, Table::kDeviceOps, wait.after});
  }
  const Language language = LanguageOf(model.trace);
  if (!change.rows.empty()) {
    finding.advice = fmt::format(
        "If these kernels do not need each other's results, let their streams run side by side: fork once "
        "({}) and join once at the end, instead of a wait between any two. If they do, one stream does the "
        "same with less.",
        InItsLanguage(language, "side.wait_stream(main) ... main.wait_stream(side)",
                      "one event recorded, one CUDAEvent::block, at each end"));
    finding.fix =
        language == Language::kCpp
            ? "fork.record(main); fork.block(side);\n/* all work of main and of side */\n"
              "join.record(side); join.block(main);"
            : "side.wait_stream(main)\nwith torch.cuda.stream(side):\n    y2 = branch2(x)\n"
              "y1 = branch1(x)\nmain.wait_stream(side)   # and y2.record_stream(main)";
  }
  if (is_null) {
    if (!finding.advice.empty()) finding.advice += " ";
    finding.advice +=
        "Work on the default stream waits for all that blocking streams of its device were asked for before "
        "it, and they wait for it: launch it into one of them, into one that was made with "
        "cudaStreamNonBlocking, or compile with --default-stream per-thread.";
    finding.fix +=
        std::string(finding.fix.empty() ? "" : "\n") +
        "cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);\n"
        "kernel<<<grid, block, 0, side>>>(...);   // and events where results are needed";
  }
  finding.verify = "Record again: kernels of these streams overlap, and the step is shorter.";
  return std::vector<Diagnosis>{{std::move(finding), std::move(change)}};
}

}  // namespace

extern const Rule serialised_streams = {"TP502", "streams that wait for each other without need",
                                        Check};

}  // namespace trainprof::rules
