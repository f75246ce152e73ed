// What a device did in each step, by the names of its operations.
#pragma once

#include <span>

#include "analysis/job/digest.h"
#include "analysis/steps/steps.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Fills `device.operations` and `device.others`. Operations are cut at the steps' ends on the
// devices, as the account's times are, so that both add up. `steps` in the order of time. O(n log s), s steps. Can be cancelled.
void SumOperations(const Trace& trace, DeviceId of, std::span<const Step> steps,
                   DeviceSteps& device);

}  // namespace trainprof
