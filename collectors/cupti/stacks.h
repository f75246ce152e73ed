// Stacks of calls that block or copy: CUPTI calls OnCall as they begin and end.
#pragma once

#include "collectors/cupti/api.h"

namespace trainprof::collectors {

// Before the first OnCall. False: no memory.
bool PrepareStacks();

// Takes a stack when the call took over 20 us, or is a small copy to the device (of which a few a
// site), as long as walking stays within 1 % of the thread's time.
void CUPTIAPI OnCall(void* session, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                     const void* data);

}  // namespace trainprof::collectors
