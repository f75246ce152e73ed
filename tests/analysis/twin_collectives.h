// What a busy device does, and whether it only waits for another one: a part of the twin (twin.h).
#pragma once

#include "analysis/account/account.h"

namespace trainprof {

// While at least one operation runs there.
DeviceClass BusyClassAt(const Trace& trace, DeviceId device, int64_t moment);

}  // namespace trainprof
