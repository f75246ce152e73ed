// What the gate says, for programs: the report's `gate`.
#pragma once

#include <nlohmann/json.hpp>

#include "profiler/gate/gate.h"

namespace trainprof {

nlohmann::ordered_json GateJson(const JobAnalysis& job, const GateResult& gate);

}  // namespace trainprof
