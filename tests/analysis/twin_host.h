// What the stepping thread did at a moment, by brute force: the host's part of the twin, see twin.h.
#pragma once

#include <cstdint>

#include "analysis/account/account.h"

namespace trainprof {

bool Covers(const EventColumns& table, size_t row, int64_t moment);
// Is the range around a step?
bool HoldsAStep(const Trace& trace, size_t range);

// The innermost phase range; else a copy to the device; else other threads' autograd; else what lies
// between the loader and the backward pass.
HostClass HostClassAt(const Trace& trace, TrackId stepping, int64_t moment);

}  // namespace trainprof
