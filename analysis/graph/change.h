// What fixing a finding changes, as an edit of what was recorded. What that is worth is worked out
// in one place (analysis/gain.h): no rule does.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/base/ids.h"
#include "trace/base/interval_set.h"

namespace trainprof {

// A time of a thread.
struct ThreadSpan {
  TrackId thread = kNoTrack;
  Interval interval;
};

// Those that are less work to make come first: a line that goes, and then what moves, and what is written anew.
enum class Edit : uint8_t {
  kRemoveWaits,     // calls no longer wait for the device; rows of trace.api
  kPinCopies,       // pageable copies become pinned and asynchronous; of trace.device_ops
  kDropCalls,       // calls go, and what they wait for without saying so; of trace.api
  kUseTensorCores,  // matrix products at their rate; of trace.device_ops
  kDropWork,  // what is not launched any more, with its calls and what made it; of trace.device_ops
  kFeedInput,      // the batch is there when the loop asks for it; the waits, of trace.ranges
  kOverlapCopies,  // copies run beside other work, their calls return at once; of trace.device_ops
  kDropHostWork,   // what the host does inside them goes, or moves off the loop; of trace.ranges
  kLaunchAsGraph,  // launches become one launch of a graph a step; of trace.api
  kOverlapCommunication,  // collectives run beside other kernels; of trace.device_ops
  kDropDependencies,      // streams no longer wait; of trace.syncs
  kKeepReplicas,  // each device keeps its weights: they are not sent any more; of trace.device_ops
  kFillIdle,      // the device has work whenever it stands idle: the last resort
};

struct Change {
  Edit edit;
  std::vector<Row> rows;        // of the table that the edit names, each once
  DeviceId device = kNoDevice;  // of kFillIdle
  bool in_other_steps = false;  // the rows are of steps without GPU detail (RankModel::other_steps)
  // Rows of trace.api. Of copies: calls behind them that wait for them, and then need not. Of
  // kDropDependencies: those that asked for host functions of which no row tells.
  std::vector<Row> calls{};
  // Of kDropHostWork: times that no range holds, and which go, too.
  std::vector<ThreadSpan> spans{};
  // Rows of trace.device_ops. Of kDropDependencies: work of the null stream that leaves it for a stream
  // which neither waits for others nor holds them up. Of kKeepReplicas: gradients that come back. Of kDropHostWork:
  // copies to the host that it works on; they may run beside other work, then.
  std::vector<Row> ops{};
};

}  // namespace trainprof
