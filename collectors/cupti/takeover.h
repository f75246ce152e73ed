// Another client of CUPTI in this process may take it over without a word: it registers buffers and a
// clock of its own, and switches kinds on and off, but subscribes to nothing (torch.profiler's Kineto
// since August 2026). From then on CUPTI fills its buffers, none of ours, and calls its clock.
//
// That is seen by asking. cuptiGetTimestamp calls the clock that is registered: ours, or the answer is
// of another time (so has it the machine code of 12.1 to 13.5). Kineto's last act is to throw a switch
// that we have set, that each thread has a buffer.
#pragma once

#include "collectors/cupti/session.h"

namespace trainprof::collectors {

// To be called when our clock and switch are set: a CUPTI that does not tell of one then never does.
void NoteWhatIsOurs(Session& session);

// False: another client has CUPTI. To be called while it is not lent, by the control thread.
bool IsOurs(Session& session);

// The other has ended what it did. One that is no Kineto, or uses CUPTI before 12.3, does not show it.
bool OthersAreDone(Session& session);

// CUpti_ActivityAttribute: older headers lack it.
inline constexpr int kBuffersPerThread = 9;

}  // namespace trainprof::collectors
