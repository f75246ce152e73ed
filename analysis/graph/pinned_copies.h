// What pinned copies of a run tell of its link.
#pragma once

#include <cstdint>

#include "trace/tables/trace.h"

namespace trainprof {

// Of pinned copies over PCIe 3 to 5 with 16 lanes, bytes a microsecond.
inline constexpr int64_t kSlowLink = 12'000;
inline constexpr int64_t kFastLink = 48'000;

// Bytes per microsecond of the trace's own large copies from pinned memory; 0 where there are none.
int64_t PinnedBytesPerMicrosecond(const Trace& trace);

}  // namespace trainprof
