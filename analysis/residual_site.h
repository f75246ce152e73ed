// Where most of the time stands that the graph does not explain: how far a replay may be trusted, and what to look at
// where it may not.
#pragma once

#include <string>

#include "analysis/model.h"

namespace trainprof {

struct ResidualSite {
  std::string
      name;  // of the operation that began later than anything recorded explains; empty: there is none
  int64_t count = 0;  // in the window of devices
  Duration total;

  bool operator==(const ResidualSite&) const = default;
};

// Of the residuals that StepReplay::identity_error() counts, summed by name. O(residuals * log(steps)).
ResidualSite LargestResidual(const RankModel& model);

}  // namespace trainprof
