// The phases of a training loop by the functions of torch that samples of its stacks show: for a
// program in which nothing named them.
#pragma once

#include "analysis/account/account.h"

namespace trainprof {

// What the moment is part of: the loader's next, a collective, backward, a module, an optimizer's
// step. What loads wins over what is called to load, and a pass over the step that it is within;
// kNone: none of these is on the stack. O(frames).
Phase PhaseOfStack(const Trace& trace, StackId stack);

struct SampledPhases {
  TrackId thread = kNoTrack;  // the one that trains; kNoTrack: no sample shows one
  Timeline<Phase> phases;     // each sample stands for the time until the next one
};

// Of the thread that steps, or, where that has no samples, the one that was longest in the passes and
// the optimizer. O(samples + frames).
SampledPhases FindSampledPhases(const Trace& trace, const Steps& steps);

}  // namespace trainprof
