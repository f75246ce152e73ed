// What the host's samples say that matters: a GPU that is throttled, workers at 100 % of a core,
// swapping, a quota that bites. Facts with their figures; no cause is claimed and no gain.
#pragma once

#include <string>
#include <vector>

#include "analysis/steps/steps.h"

namespace trainprof {

struct HostFact {
  std::string id;    // "gpu_throttled": stable, for programs
  std::string text;  // "GPU 0 was throttled 37 % of the time: SW power cap"
  double value = 0;  // the figure in `text`
  std::string unit;  // "%", "ms/step", "MiB", "kills"

  bool operator==(const HostFact&) const = default;
};

// Over the steps' window, where samples cover it. Empty when nothing stands out, and when there are
// no samples. O(counters log window).
std::vector<HostFact> FindHostFacts(const Trace& trace, const Steps& steps);

}  // namespace trainprof
