// What this machine can record: samples of its GPUs, which NVML gives.
#include <stdexcept>

#include "collectors/machine/nvml.h"
#include "profiler/doctor/machine.h"
#include "profiler/doctor/machine_probe.h"
#include "profiler/process/isolated.h"

namespace trainprof {

MachineCheck CheckNvml(SignalInbox& inbox) {
  const auto ask = [] {
    const auto described = DescribeNvml();
    if (!described.ok()) throw std::runtime_error(described.error());
    return described.value();
  };
  const IsolatedResult asked = RunIsolated(ask, {kProbeLimit}, inbox);
  if (asked.ok) return {"nvml", "NVML", CheckState::kOk, "GPU samples by " + asked.text, ""};
  return {"nvml", "NVML", CheckState::kMissing, asked.text,
          "comes with the driver; in a container start it with --gpus all (capability utility)"};
}

}  // namespace trainprof
