// Which operations of a device move data between devices for a collective.
#pragma once

#include "trace/tables/trace.h"

namespace trainprof {

// By its kernel's name, by the source's record of a collective, or by what launched it or runs beside it
// (trace/build/communication_join.h).
inline bool Communicates(const Trace& trace, Row op) {
  if (trace.device_ops.kind[Index(op)] != DeviceOpKind::kKernel) return false;
  return trace.device_ops.collective[Index(op)] != kNoCollective ||
         trace.Facts(trace.device_ops.name[Index(op)]).is_communication != 0;
}

}  // namespace trainprof
