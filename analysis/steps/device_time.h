// When steps began and ended on the devices: a host that runs ahead issues a step long before the
// device does it, so that the host's clock tells how fast work is queued, not how fast it is done.
#pragma once

#include <vector>

#include "analysis/steps/steps.h"
#include "trace/tables/trace.h"

namespace trainprof {

// The law. An operation is launched in the step in whose span its call begins, on whichever thread.
// Operations of a stream run in the order of their launches, so one without a recorded call was
// launched by its own begin, and no later than the next one of its stream; one that waited behind
// the first recorded launch of its device was launched before that step.
//  - A step ends when the last operation launched in it ends, and begins when the step before it
//    ended; none ends before an earlier one. What runs beside a device's main stream (the one with
//    most kernel time; of several the one that began first) and outlives the next step's work there holds
//    no step up: a checkpoint's copies, say.
//  - A step of which no launch was recorded up to its end (it launched nothing, or recording was
//    off) ends with the host, or with the step before it where that is later.
//  - A step whose last launches have no row (Step::end_is_known), and the last one of an input that
//    ends early, ends with the host if that is later.
//  - With no step right before it, a step begins when the host began it, or when the work launched
//    before ended, where that is later. Where launches before it were not recorded, or have no
//    rows, and its first operation waited for longer than kLaunchLatency, something unrecorded held
//    it: the step begins with it. Did none wait, the step's begin is not known
//    (Step::begin_is_known) if at its end the device was behind the host by more than kNegligible
//    of the steps' time; nor is it where the host began the step while the devices had nothing to do,
//    and its first operation came sooner than that of any step behind another one, by more than
//    kNegligible of the steps' time: what the step before it left them waiting for is not in it.
// Only devices that train count (kStrayShare). Rows of unknown kinds are operations as well.
//
// Sets Step::device of all `steps`, which are in time order. False, and the devices' times are the
// spans, where fewer than half of the devices' operations have a recorded call: what launched them
// is then not known. O(operations * log(steps)) at worst, linear in traces of one loop. Can be
// cancelled.
bool SetDeviceTimes(const Trace& trace, DeviceRows& rows, std::vector<Step>& steps);

// Where recording was off, or began or ended within a step, its times are not known: it ends no
// earlier than SetDeviceTimes() says, and no earlier than `work`, what a step keeps the devices busy
// with, behind the step before it. Where none is before it, it is as long as that or as its span,
// as far as a known step follows. Sets that for those of `steps` that are not in `known`, up to the
// next one that is. Both are in time order. O(steps).
void SetUnknownTimes(Duration work, const Steps& known, Steps& steps);

// From the begin of the first operation of a device that trains to the end of the last one, and
// further where rows are missing: from the first launch without one, to the trace's end where no
// later launch has one, and all of the trace where any may be missing. Empty where there is no
// operation. O(operations + calls).
Interval DeviceExtent(const Trace& trace, DeviceRows& rows);

// An idle device starts an operation within this time after its call, with margin: 5 to 10 us.
inline constexpr Duration kLaunchLatency = Microseconds(20);

// Less of the steps' time changes no figure that is printed.
inline constexpr double kNegligible = 0.01;

}  // namespace trainprof
