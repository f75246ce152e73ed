// What other streams did when an operation began late: as it seems, what it waited for. No file tells it.
#pragma once

#include <optional>
#include <set>

#include "analysis/graph/streams.h"
#include "analysis/graph/usual_times.h"

namespace trainprof {

class OtherStreams {
 public:
  // Keeps references. `nodes`: by item of `streams`; 0: none yet, and so nothing that was waited for.
  OtherStreams(const Trace& trace, const Streams& streams, const EventWaits& waits,
               const std::vector<NodeId>& nodes)
      : trace_(trace), streams_(streams), waits_(waits), nodes_(nodes) {}

  // What ended at most kHandOver before the item began, and behind `explained`: within a graph launch,
  // whose order no file tells, and where the trace does not record what streams wait for.
  // O(streams log items).
  std::optional<uint32_t> EndedJustBefore(uint32_t item, const Streams::Stream& stream,
                                          TraceTime explained) const;

  // Of the device what ran when a kernel began, where that stream was busy all the while the kernel could
  // have begun: it needs processors that others have until their last blocks. Of several what ends first.
  std::optional<uint32_t> HeldDeviceUntil(uint32_t item, const Streams::Stream& stream,
                                          TraceTime explained) const;

 private:
  const Trace& trace_;
  const Streams& streams_;
  const EventWaits& waits_;
  const std::vector<NodeId>& nodes_;
};

// Calls that asked for a host function of which no row tells.
std::set<Row> UnansweredFunctions(const Trace& trace);

}  // namespace trainprof
