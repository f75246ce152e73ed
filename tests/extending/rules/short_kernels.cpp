// An example: a rule. Most kernels are shorter than a launch takes  =>  fuse them
#include <fmt/format.h>

#include <algorithm>

#include "analysis/rule.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

constexpr Duration kShort = Microseconds(5);  // about what cudaLaunchKernel takes
constexpr double kMost = 0.5;                 // of the kernels

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  const DeviceOpTable& ops = model.trace.device_ops;
  int64_t kernels = 0;
  std::vector<Row> found;
  for (uint32_t row = 0; row < ops.size(); ++row) {
    CancelPoint(row);
    const Interval when = ops.interval(Row{row});
    if (ops.kind[row] != DeviceOpKind::kKernel || !model.InDeviceWindow(when)) continue;
    ++kernels;
    if (when.Length() < kShort) found.push_back(Row{row});
  }
  if (static_cast<double>(found.size()) <= kMost * static_cast<double>(kernels)) {
    return std::vector<Diagnosis>{};
  }
  Duration idle;
  for (const DeviceAccount& device : model.devices) {
    idle = std::max(idle, device.Of(DeviceClass::kIdleLaunchBound));
  }
  Finding finding;
  finding.title = fmt::format("Short kernels: {} of {} take less than {} us", found.size(), kernels,
                              kShort.ns / 1000);
  finding.count = static_cast<int64_t>(found.size());
  finding.cost = idle;
  const Row first = found.front();
  finding.evidence.push_back({std::string(model.trace.Text(ops.name[Index(first)])),
                              ops.interval(first), Table::kDeviceOps, first});
  finding.advice = "Fuse them: torch.compile, or one call for many tensors (torch._foreach_add_).";
  finding.verify = "Record again: fewer kernels a step, and less time that waits for launches.";
  return std::vector<Diagnosis>{{std::move(finding), {Edit::kDropWork, std::move(found)}}};
}

}  // namespace

extern const Rule short_kernels = {"TP901", "kernels shorter than their launch", Check};

}  // namespace trainprof::rules
