// Which operations of a device move data between devices for a collective.
#pragma once

#include "trace/tables/trace.h"

namespace trainprof {

// By its kernel's name, or by the source's record of a collective.
inline bool Communicates(const Trace& trace, Row op) {
  if (trace.device_ops.kind[Index(op)] != DeviceOpKind::kKernel) return false;
  return trace.device_ops.collective[Index(op)] != kNoCollective ||
         trace.Facts(trace.device_ops.name[Index(op)]).is_communication != 0;
}

}  // namespace trainprof
