#include "analysis/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/coverage.h"

namespace trainprof {
namespace {

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

// In the unit that a reader would choose: "43.4 s", "182.0 ms", "31.2 us".
std::string TimeText(double ms) {
  if (ms >= 10'000) return fmt::format("{:.1f} s", ms / 1000);
  if (ms > 0 && ms < 0.1) return fmt::format("{:.1f} us", ms * 1000);
  return fmt::format("{:.1f} ms", ms);
}

// "; biggest loss: ...".
std::string LossText(const AccountLine& loss, double ms, double share, bool has_steps) {
  constexpr double kWorthNaming = 0.01;
  if (share < kWorthNaming) return "; no loss of 1 % or more";
  return fmt::format("; biggest loss: {}{}, {}{} ({:.0f} %)",
                     loss.name.starts_with("idle_") ? "GPU idle, " : "", loss.title, TimeText(ms),
                     has_steps ? "/step" : "", 100 * share);
}

}  // namespace

std::string Verdict(const RankAnalysis& rank) {
  std::string text;
  if (rank.steps.count() > 0) {
    text = "median step " + TimeText(rank.steps.Median().ToMilliseconds());
  } else {
    text = "no steps found in " + TimeText(rank.window.ToMilliseconds());
  }
  const DeviceReport* const device = WorstDevice(rank);
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
    text += LossText(*biggest, ms, share, rank.steps.count() > 0);
  } else if (device == nullptr && !rank.has_host_phases) {
    text += "; nothing in the trace names what the host was doing";
  }
  return text;
}

}  // namespace trainprof
