// Whether a trace shows training, or a model at work: words and advice differ.
#pragma once

#include <string_view>

#include "analysis/steps/steps.h"
#include "trace/tables/trace.h"

namespace trainprof {

enum class Workload : uint8_t {
  kUnknown,   // nothing tells
  kTraining,  // a backward pass, or an optimizer
  kInference,  // neither, and a server's own names, or steps or many kernels whose operators would show one
};

std::string_view Name(Workload workload);  // "unknown", "training", "inference"

// O(rows + strings). Can be cancelled.
Workload WorkloadOf(const Trace& trace, const Steps& steps);

enum class Server : uint8_t { kNone, kVllm, kSglang };

// The one whose names the trace holds. O(strings). Can be cancelled.
Server ServerOf(const Trace& trace);

}  // namespace trainprof
