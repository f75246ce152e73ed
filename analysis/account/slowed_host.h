// What recording GPU detail takes of the host's time, measured in the run itself: ranges are recorded throughout, calls in
// samples of steps alone, and so it is known how long each phase takes without.
#pragma once

#include "analysis/account/account.h"
#include "analysis/graph/graph.h"
#include "analysis/graph/recording_cost.h"
#include "analysis/steps/steps.h"

namespace trainprof {

struct SlowedHost {
  Duration per_step;  // of the thread that steps, in a step with detail
  // As in RecordingCost; empty where nothing is known. Of phases that are no slower, with nothing gone, where
  // RecordingCostOf assumes more than can be.
  std::vector<SlowedTime> times;

  // Of either kind of step, before medians are compared.
  static constexpr size_t kFewest = 10;
};

// `detail` and `others`: steps with GPU detail and without. Phases that wait for a device for more than a tenth of their
// time are left out, since it decides how long they take. O(n log n) in phases and steps, + waits.
SlowedHost CompareHost(const Trace& trace, const Graph& graph, const HostAccount& host,
                       const Steps& detail, const Steps& others);

}  // namespace trainprof
