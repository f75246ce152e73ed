// Traces written as text, for tests of steps, accounts and rules:
//
//   thread 1                                      events below are on host thread 1
//   step 0 1000 ProfilerStep#1                    begin and end in us, then the name
//   repeat 3 every 1000                           what stands below, three times, 1000 us apart,
//     op   10 40 aten::item | stack=a.py(3): f    correlation ids shifted alike
//     call 12 38 cudaMemcpyAsync | corr=5
//   end
//   stream 0 7                                    events below are on stream 7 of device 0
//   copy 20 36 Memcpy DtoH (Device -> Pageable) | corr=5 bytes=8
//
// "device 0 108" says how many multiprocessors device 0 has, "device 0 132 9" its compute capability, too.
// "grid=4" gives a kernel 4 blocks of 128 threads, "occupancy=50" half of a multiprocessor's warps. "stream 0 7
// null" (blocking, non-blocking) is how the stream stands to others.
// "stream-wait 10 10 | corr=6 record=5 stream=9 device=1" is call 6 that lets the stream wait for the event
// that call 5 recorded on stream 9 of device 1.
//
// "opened-at=a.py(3): f" on an annotation is where ranges of its name are opened.
//
// Kinds: step, annotation (on a stream the GPU's), op, overhead, python, call, kernel, copy, memset, sync
// (named as by Name(SyncKind), on the stream that waits or is waited for; of an event: on-stream=, on-device=,
// record= the id of the call that recorded it), host-function (of thread 2, on the stream that waits for it),
// cpu (between two looks at a thread: used= us of the CPU, waits=, interruptions=), gap (recording off; no name), device-gap (of devices and calls alone). "recording" on a line of its own makes
// the trace one of our own.
#pragma once

#include <string_view>

#include "trace/tables/trace.h"

namespace trainprof {

// Throws std::invalid_argument with the line that is wrong.
Trace TraceFromScript(std::string_view script);

}  // namespace trainprof
