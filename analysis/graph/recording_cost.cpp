#include "analysis/graph/recording_cost.h"

#include <algorithm>
#include <charconv>

#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

// Of a launch on the virtual GPU, by cupti_overhead_benchmark: 0.8 us where its thread has done something else meanwhile,
// half of that in a row of launches.
constexpr Duration kCall = Microseconds(1);
// Where the recording does not tell what one took: what a walk costs some programs.
constexpr Duration kStack = Microseconds(10);

}  // namespace

RecordingCost RecordingCostOf(const Trace& trace) {
  if (trace.source != SourceKind::kRecording) return {};
  RecordingCost cost{kCall, kStack};
  const std::string_view text = EnvironmentValue(trace.environment, fact::kCuptiStackCostNs);
  int64_t ns = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), ns).ec == std::errc()) {
    cost.stack = Nanoseconds(std::clamp<int64_t>(ns, 0, Milliseconds(1).ns));
  }
  return cost;
}

}  // namespace trainprof
