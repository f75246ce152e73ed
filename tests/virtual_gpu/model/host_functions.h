// Host functions in a stream (cudaLaunchHostFunc): called on a thread of the driver when their turn
// has come. A stream keeps the time of the setting host_function_ns free for one; what is issued
// behind it does not wait longer where the function takes longer, but synchronizing calls do.
#pragma once

#include "tests/virtual_gpu/model/machine.h"

namespace vgpu {

using HostFunction = void (*)(void* argument);

// Returns at once. False while the stream is captured into a graph, which is not modelled.
bool LaunchHostFunction(Stream& stream, HostFunction function, void* argument);

// Until all host functions that this process has launched have returned. Not from within one.
void WaitForHostFunctions();

}  // namespace vgpu
