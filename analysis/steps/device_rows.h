// What several stages ask of the devices' operations: the order in which they began, and which are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Of two rows of trace.device_ops, whether the first was asked for before the second: what no recorded call asked for
// comes last, and of what one call asked for, what ended first comes first. Says which of two streams that
// begin together stands first, however these are numbered.
bool AskedForBefore(const Trace& trace, uint32_t a, uint32_t b);

// Rows of trace.device_ops by the index of their device; behind the devices those of none.
// Operations that begin together are in the order in which they were asked for, then in that of the table.
// O(n log(streams)). Can be cancelled.
std::vector<std::vector<uint32_t>> OpsByBegin(const Trace& trace);

// Calls visit(row) for the rows of trace.device_ops that are of one device, in the order of the table: stream by
// stream, and by begin in each. Can be cancelled.
template <class Visit>
void VisitOpsOf(const Trace& trace, DeviceId device, Visit visit) {
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    if (trace.tracks[track].device != device) continue;
    const auto [first, last] = trace.device_ops.rows_of(TrackId{track});
    for (uint32_t op = first; op < last; ++op) {
      CancelPoint(op);
      visit(op);
    }
  }
}

// Each found once, when it is first asked for: not every trace's steps need it. Not by several threads at once.
class DeviceRows {
 public:
  explicit DeviceRows(const Trace& trace) : trace_(trace) {}

  const std::vector<std::vector<uint32_t>>& ops();  // OpsByBegin()
  // Of one device, once that was asked for.
  std::span<const uint32_t> Of(DeviceId device) const { return ops_[Index(device)]; }
  const std::vector<Row>& missing();  // LaunchesWithoutRow()

 private:
  const Trace& trace_;
  std::vector<std::vector<uint32_t>> ops_;
  std::optional<std::vector<Row>> missing_;
};

}  // namespace trainprof
