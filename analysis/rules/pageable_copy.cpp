// host-to-device copies from pageable memory, of more than 64 KiB, that block the host  =>  pin the
// memory
//
// A copy from pageable memory is staged by the driver while the calling thread waits; from pinned
// memory with non_blocking=True the thread goes on and the copy overlaps with compute.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/account/drain.h"
#include "analysis/host/copy_calls.h"
#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

// Of the steps' time.
constexpr double kWarnShare = 0.02;

struct Copies {
  std::vector<Row> rows;        // pageable, whose call in the window waited
  std::vector<Row> sync_calls;  // behind them
  int64_t bytes = 0;
  Duration blocked;
};

Copies Collect(const RankModel& model) {
  Copies copies;
  const DeviceOpTable& ops = model.trace.device_ops;
  for (const CopyCall& copy : model.copies) {
    const size_t op = Index(copy.op);
    if (ops.direction[op] != CopyDirection::kHostToDevice) continue;
    const bool pageable = ops.Uses(op, MemoryKind::kPageable);
    // Small ones are cpu-tensor's.
    if (!pageable || ops.bytes[op] <= kPageableAsyncBytes || !copy.Waits()) continue;
    copies.rows.push_back(copy.op);
    if (copy.sync != kNoRow) copies.sync_calls.push_back(copy.sync);
    copies.bytes += ops.bytes[op];
    copies.blocked += copy.blocked;
  }
  return copies;
}

// The part of these copies during which no kernel ran on their device, on the worst device.
Duration Exposed(const RankModel& model, const std::vector<Row>& rows) {
  const DeviceOpTable& ops = model.trace.device_ops;
  Duration worst;
  for (const DeviceAccount& device : model.devices) {
    std::vector<Interval> copies;
    for (const Row row : rows) {
      const DeviceId of = model.trace.tracks[Index(ops.track[Index(row)])].device;
      if (of == device.device) copies.push_back(ops.interval(row));
    }
    const IntervalSet exposed = IntervalSet::Union(std::move(copies))
                                    .IntersectWith(device.exposed_copy)
                                    .IntersectWith(model.device_steps.device_window);
    worst = std::max(worst, exposed.Total());
  }
  return worst;
}

Duration DrainAfter(const RankModel& model, const std::vector<Row>& rows) {
  std::vector<Row> calls;
  for (const Row row : rows) calls.push_back(model.trace.device_ops.launch[Index(row)]);
  return DrainOf(*model.graph, calls, model.devices, model.device_steps.device_window);
}

void Describe(const RankModel& model, const Copies& copies, Finding& finding) {
  const DeviceOpTable& ops = model.trace.device_ops;
  std::vector<Row> worst = copies.rows;
  finding.where = model.sites.FindLaunches(worst);
  KeepWorst(worst, [&](Row a, Row b) { return ops.bytes[Index(a)] > ops.bytes[Index(b)]; });
  for (const Row row : worst) {
    const Interval when = ops.interval(row);
    const auto bytes = static_cast<double>(ops.bytes[Index(row)]);
    finding.evidence.push_back(
        {fmt::format("{:.1f} MB at {:.1f} GB/s, the call blocked for {:.2f} ms", bytes * 1e-6,
                     bytes / std::max<double>(1, when.Length().ns),
                     model.trace.api.interval(ops.launch[Index(row)]).Length().ToMilliseconds()),
         when, Table::kDeviceOps, row});
  }
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (!TellsHostMemory(model.trace)) {
    return Skipped{"the trace does not say whether host memory was pageable (ROCm does not)"};
  }
  const Copies copies = Collect(model);
  const auto bytes_per_step = copies.bytes / model.device_steps.divisor();
  if (copies.rows.empty()) return std::vector<Diagnosis>{};

  const Duration exposed = Exposed(model, copies.rows);
  const Duration cost = exposed + DrainAfter(model, copies.rows);
  Finding finding;
  finding.severity = model.ShareOfWindow(cost) > kWarnShare ? Severity::kWarning : Severity::kNote;
  finding.title = fmt::format(
      "Pageable copies: {:.1f} MB{} from pageable host memory block the host for {} {}",
      static_cast<double>(bytes_per_step) * 1e-6, model.device_steps.count() > 0 ? "/step" : "",
      MsText(model.PerStepMs(copies.blocked)), model.Unit());
  finding.count = static_cast<int64_t>(copies.rows.size());
  finding.cost = cost;
  Describe(model, copies, finding);
  const Language language = LanguageOf(model.trace);
  finding.advice = fmt::format(
      "Let the loader pin its batches and copy them without waiting, so that the copy overlaps "
      "with compute: {}. Do not call pin_memory() in the loop itself: it copies on the host first. "
      "Send images as uint8 and normalise on the GPU: float batches move four times the bytes.",
      InItsLanguage(language, "DataLoader(pin_memory=True), then x.to(device, non_blocking=True)",
                    "pin_memory() on the loader's own threads, then x.to(device, "
                    "/*non_blocking=*/true)"));
  finding.fix = language == Language::kCpp ? "data = data.pin_memory();   // on a worker's thread\n"
                                             "x = data.to(device, /*non_blocking=*/true);"
                                           : "loader = DataLoader(..., pin_memory=True)\n"
                                             "x = x.to(device, non_blocking=True)";
  finding.verify = "Record again: copies read \"Pinned -> Device\" and their calls return at once.";
  return std::vector<Diagnosis>{
      {std::move(finding), {Edit::kPinCopies, copies.rows, kNoDevice, false, copies.sync_calls}}};
}

// Of the exposed copies, those from pageable memory, and the drains behind them.
constexpr ExplainedClass kExplains[] = {{DeviceClass::kExposedCopy, true},
                                        {DeviceClass::kIdleSyncDrain, true}};

}  // namespace

extern const Rule pageable_copy = {"TP102", "copies from pageable memory block the host", Check,
                                   kExplains};

}  // namespace trainprof::rules
