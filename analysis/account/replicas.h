// Whether one process lets several devices do the same work on parts of a batch, as torch.nn.DataParallel
// does, by what the devices did alone: weights go from one device to the others, all run the same kernels
// beside each other, and as much comes back.
#pragma once

#include <optional>
#include <vector>

#include "analysis/steps/steps.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct Replicas {
  DeviceId root = kNoDevice;  // sends the weights and takes the gradients
  // Copies between devices, or kernels that broadcast and reduce; rows of device_ops within the steps.
  std::vector<Row> out;
  std::vector<Row> back;
};

// Nothing where there are no steps, or what is sent says otherwise: of stages of a pipeline, which take turns
// or send while they work, and of replicas that do not send their weights. O(n log n).
std::optional<Replicas> FindReplicas(const Trace& trace, const Steps& steps);

}  // namespace trainprof
