// Host functions in a stream (cudaLaunchHostFunc) or a graph: called on a thread of the driver when their turn
// has come. A stream keeps the time of the setting host_function_ns free for one; what is issued
// behind it does not wait longer where the function takes longer, but synchronizing calls do.
#pragma once

#include "tests/virtual_gpu/model/machine.h"
#include "tests/virtual_gpu/model/tool.h"

namespace vgpu {

using HostFunction = void (*)(void* argument);

// Returns at once. While the stream is captured it becomes a node of the graph.
void LaunchHostFunction(Stream& stream, HostFunction function, void* argument);

struct HostTurn {
  int64_t at_ns;
  HostFunction function;
  void* argument;
  HostFunctionRun run;  // without times
};
// Of the API call that this thread is in.
HostTurn TurnIn(const Stream& stream, int64_t at_ns, HostFunction function, void* argument);
void CallInTurn(const HostTurn& turn);

// Until all host functions that this process has launched have returned. Not from within one.
void WaitForHostFunctions();

}  // namespace vgpu
