// Stacks of calls that block, copy or make streams wait: CUPTI calls OnCall as they begin and end.
#pragma once

#include "collectors/cupti/api.h"

namespace trainprof::collectors {

// Before the first OnCall. False: no memory.
bool PrepareStacks();

// Takes a stack when the call took over 20 us, or is one of those of which a few a site are looked at (copies, waits
// for events, functions of the host), as long as walking stays within 1 % of the thread's time.
void CUPTIAPI OnCall(void* session, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                     const void* data);

}  // namespace trainprof::collectors
