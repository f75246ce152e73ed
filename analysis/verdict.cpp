#include "analysis/verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainprof {
namespace {

// Time in which device work may only be missing from the trace is nobody's loss.
bool IsLoss(const AccountLine& line) {
  if (line.name == Name(DeviceClass::kIdleUnrecorded)) return false;
  return line.name.starts_with("idle_") || line.name.starts_with("exposed_");
}

// Of the devices that train.
const DeviceReport* WorstDevice(const RankAnalysis& rank) {
  const DeviceReport* worst = nullptr;
  for (const DeviceReport& device : rank.devices) {
    if (!device.stray && (worst == nullptr || device.busy < worst->busy)) worst = &device;
  }
  return worst;
}

std::string BusyText(const RankAnalysis& rank, const DeviceReport& device) {
  const double low = 100 * rank.DeviceShare(device.busy);
  const double high = 100 * rank.DeviceShare(device.busy_high);
  constexpr double kVisible = 0.05;  // percentage points that a figure with one decimal shows
  std::string text = high - low < kVisible ? fmt::format("GPU busy {:.1f} %", low)
                                           : fmt::format(
                                                 "GPU busy {:.1f} to {:.1f} % (device work "
                                                 "is missing from the trace)",
                                                 low, high);
  const auto training = std::count_if(rank.devices.begin(), rank.devices.end(),
                                      [](const DeviceReport& d) { return !d.stray; });
  if (training > 1) text += fmt::format(" (GPU {}, the least of {})", device.id, training);
  return text;
}

}  // namespace

std::string Verdict(const RankAnalysis& rank) {
  std::string text;
  if (rank.steps.count() > 0) {
    text = fmt::format("median step {:.1f} ms", rank.steps.Median().ToMilliseconds());
  } else {
    text = fmt::format("no steps found in {:.1f} ms", rank.window.ToMilliseconds());
  }
  const DeviceReport* const device = WorstDevice(rank);
  const std::string_view unit = rank.steps.count() > 0 ? "ms/step" : "ms";
  if (device != nullptr) text += "; " + BusyText(rank, *device);

  const std::vector<AccountLine>& account = device ? device->account : rank.host_account;
  const AccountLine* biggest = nullptr;
  for (const AccountLine& line : account) {
    const bool counts = device ? IsLoss(line) : line.name == "input_wait" || line.name == "copy";
    if (counts && line.total.ns > 0 && (!biggest || line.total > biggest->total)) biggest = &line;
  }
  if (biggest != nullptr) {
    const double ms =
        device ? rank.DevicePerStepMs(biggest->total) : rank.PerStepMs(biggest->total);
    const double share = device ? rank.DeviceShare(biggest->total) : rank.Share(biggest->total);
    text += fmt::format("; biggest loss: {}{}, {:.1f} {} ({:.0f} %)",
                        biggest->name.starts_with("idle_") ? "GPU idle, " : "", biggest->title, ms,
                        unit, 100 * share);
  } else if (device == nullptr && !rank.has_host_phases) {
    text += "; nothing in the trace names what the host was doing";
  }
  return text;
}

}  // namespace trainprof
