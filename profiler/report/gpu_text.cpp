#include "profiler/report/gpu_text.h"

#include <fmt/format.h>

#include <vector>

#include "analysis/words.h"
#include "profiler/report/text.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {

std::string DeviceFactsText(const DeviceReport& device) {
  std::vector<std::string> facts;
  if (!device.compute_capability.empty()) {
    facts.push_back("compute capability " + device.compute_capability);
  }
  if (device.multiprocessors > 0) {
    facts.push_back(fmt::format("{} multiprocessors", device.multiprocessors));
  }
  constexpr double kGiB = 1 << 30;
  if (device.memory_bytes > 0) {
    facts.push_back(fmt::format("{:.1f} GiB", static_cast<double>(device.memory_bytes) / kGiB));
  }
  if (device.is_mig_slice) facts.push_back("a MIG slice");
  return facts.empty() ? std::string() : fmt::format(" ({})", Join(facts));
}

std::string GpuName(const DeviceReport& device) {
  return fmt::format("GPU {}{}{}", device.id, device.name.empty() ? "" : " ", device.name);
}

std::string_view GpuRecordingState(const RankAnalysis& rank) {
  const std::string_view state = EnvironmentValue(rank.environment, fact::kCuptiState);
  return state == fact::kGpuRecording ? "" : state;
}

std::string CuptiMemoryText(const RankAnalysis& rank) {
  const std::string_view memory = EnvironmentValue(rank.environment, fact::kCuptiDeviceMemory);
  if (rank.devices.empty() || memory.empty()) return "";
  return fmt::format("  recording them, CUPTI takes {}\n", memory);
}

}  // namespace trainprof
