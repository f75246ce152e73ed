// What streams wait for on the device: the operations on both sides of an event's edge, and functions
// of the host.
#pragma once

#include <vector>

#include "analysis/host/call_sites.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct StreamWait {
  Row sync = kNoRow;    // of syncs; kNoRow: the wait is the null stream's
  Row before = kNoRow;  // of device_ops: the last one that the event stands behind
  Row behind = kNoRow;  // the last one of the waiting stream that was launched before the wait
  Row after = kNoRow;   // the first one that waited
  Row null = kNoRow;    // the null stream's work that both wait for, or one of the two
};

// Waits for an event of another stream, where the calls that recorded it and asked for the wait are
// in the trace and something was launched on both sides. In the order of the rows. O(n log n).
std::vector<StreamWait> FindStreamWaits(const Trace& trace);

// What the null stream's work puts one behind the other, though nothing was asked for: what a blocking
// stream was asked for before it and what another one was behind it, and each of them and that work.
// Of several streams before it that which ended last. O(n log n + null stream's work x streams).
std::vector<StreamWait> FindNullStreamWaits(const Trace& trace);

// Where the wait was asked for, if that call's stack tells, else where what waited was launched.
Site SiteOf(const StreamWait& wait, const Trace& trace, const SiteFinder& sites);

// Rows of syncs: functions of the host that a stream of this device waited for.
std::vector<Row> FindHostFunctions(const Trace& trace, DeviceId device);

// Whether the trace asks for such waits, and shows none of them: they were not recorded.
bool MissesStreamWaits(const Trace& trace);

// When the row's wait lasted; a host function's run.
Interval TimeOfSync(const Trace& trace, Row sync);

}  // namespace trainprof
