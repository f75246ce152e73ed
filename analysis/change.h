// What fixing a finding changes, as an edit of what was recorded. What that is worth is worked out
// in one place (analysis/gain.h): no rule does.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/base/ids.h"

namespace trainprof {

enum class Edit : uint8_t {
  kRemoveWaits,    // calls no longer wait for the device; rows of trace.api
  kOverlapCopies,  // copies run beside other work, their calls return at once; of trace.device_ops
  kPinCopies,  // copies from pageable memory become pinned, their calls return at once; of device_ops
  kDropWork,       // what is not launched any more, with its calls; of trace.device_ops
  kFeedInput,      // the batch is there when the loop asks for it; the waits, of trace.ranges
  kDropCalls,      // calls go, and what they waited for; of trace.api
  kDropHostWork,   // the host's own work within ranges goes; of trace.ranges
  kLaunchAsGraph,  // launches of a step become one; of trace.api
  kOverlapCommunication,  // nothing on the device waits for collectives; of trace.device_ops
  kDropDependencies,      // streams no longer wait for events; of trace.syncs
  kFillIdle,              // the device has work whenever it stands idle
};

struct Change {
  Edit edit;
  std::vector<Row> rows;        // of the table that the edit names, each once
  DeviceId device = kNoDevice;  // of kFillIdle
  bool in_other_steps = false;  // the rows are of steps without GPU detail (RankModel::other_steps)
};

}  // namespace trainprof
