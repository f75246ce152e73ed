// What a trace should hold about devices and does not: launches without a row of what they started,
// and device rows of kinds that nobody here knows. Both were work; when and how long is not known,
// or not understood.
#pragma once

#include <string>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// Calls that start work on a device (kernels, graphs, copies, memsets) and whose id no device row
// carries, in order of begin. Not among them: calls that failed, what was captured into a graph,
// and what may have been of 0 bytes, which has no row, and no argument says which that is: memsets, unless no memset of
// the trace has a row (others take microseconds on the device), and copies whose call took less than 1 us. Nothing is missing where operations have no ids
// and none was joined: the source gives none. Of a trace with launches joined.
// O((calls + ranges + operations) log calls).
std::vector<Row> LaunchesWithoutRow(const Trace& trace);

// Rows of `ranges` that stand on devices and are of an unknown kind.
std::vector<Row> UnknownDeviceRows(const Trace& trace);
// The calls that launched these, by their id; kNoRow where that is not known. Of several calls of one
// id the first. O(rows log rows + calls log rows).
std::vector<Row> CallsOfUnknownRows(const Trace& trace, const std::vector<Row>& rows);
// "25814 x mtia_ccp_events, 12 without a category".
std::string NamesOfUnknownDeviceRows(const Trace& trace);

// Counts both in trace.quality. Recordings count their own launches (trace/recording).
void CountMissingRows(Trace& trace);

}  // namespace trainprof
