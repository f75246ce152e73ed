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
// Kinds: step, annotation (on a stream the GPU's), op, overhead, python, call, kernel, copy, memset, host-function (of thread 2, on
// the stream that waits for it), gap (recording off; no name), device-gap (of devices and calls alone). "recording" on a line of its own makes the trace
// one of our own.
#pragma once

#include <string_view>

#include "trace/tables/trace.h"

namespace trainprof {

// Throws std::invalid_argument with the line that is wrong.
Trace TraceFromScript(std::string_view script);

}  // namespace trainprof
