// When a device's collective only waited for another device of the same process, which came later.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// The law. Two communication kernels on two devices are parts of one collective where they have the same
// name (where both are numbered, the same communicator and number), overlap, and end within kSameEnd; of
// several on the other device, the one that ends closest, of these the first. A part waits until the last
// of its collective's begins.
//
// All leave a collective together, but for the moments that kernels take to end (kHandOver, as long).
inline constexpr Duration kSameEnd = Microseconds(20);

// Operations that waited, of device_ops, and until when; by row. `ops_of`: by device, in the order of their
// begin. Nothing where only one device communicates. O(n + k * r * log k) for k communication
// kernels, r of which run at once.
using CollectiveWaits = std::vector<std::pair<Row, TraceTime>>;
CollectiveWaits FindCollectiveWaits(const Trace& trace,
                                    std::span<const std::vector<uint32_t>> ops_of);

}  // namespace trainprof
