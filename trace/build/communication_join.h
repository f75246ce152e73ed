// Finds kernels that move data between devices though nothing in their names says so: custom ones.
#pragma once

#include "trace/tables/trace.h"

namespace trainprof {

// Gives these kernels of sorted, joined tables a collective of which nothing else is known (see
// Communicates()):
//  - one that torch.distributed launched itself while it recorded a collective (record_param_comms), and no operator within that (which gathers what is to be sent);
//  - one on a stream that communicates: kernels that do so by name, by record, or by what is said above take half of
//    its kernels' time at least, and another stream of the device has more of the kernels' time that is left. So a
//    stream that computes as well is none.
// O(kernels + ranges); of devices with one stream O(1).
void JoinCommunication(Trace& trace);

}  // namespace trainprof
