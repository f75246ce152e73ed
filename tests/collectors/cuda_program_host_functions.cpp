// Functions of the host that streams and graphs call, and when each ran.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/collectors/cuda_program.h"
#include "tests/virtual_gpu/vgpu.h"

namespace cuda_program {
namespace {

using Launch = std::function<void(cudaStream_t)>;

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorName(status));
  std::exit(3);
}

long g_ms = 0;

struct HostCall {
  int64_t begin_ns;
  int64_t end_ns;
  long thread;
};

void TakesSomeTime(void* argument) {
  auto* call = static_cast<HostCall*>(argument);
  call->begin_ns = vgpuNowNs();
  call->thread = gettid();
  usleep(static_cast<useconds_t>(g_ms * 1000));
  call->end_ns = vgpuNowNs();
}

// When each ran, on which thread; then when all had ended.
void Tell(const std::vector<HostCall>& calls) {
  const int64_t ended_ns = vgpuNowNs();
  for (const HostCall& call : calls) {
    std::printf("%lld %lld %ld\n", static_cast<long long>(call.begin_ns),
                static_cast<long long>(call.end_ns), call.thread);
  }
  std::printf("%lld\n", static_cast<long long>(ended_ns));
}

// Functions of the host between kernels of a stream, the last one by the driver.
int InAStream(const Launch& launch, long count) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  std::vector<HostCall> calls(static_cast<size_t>(count));
  for (HostCall& call : calls) {
    launch(stream);
    const bool by_driver = &call == &calls.back();
    const int failed = by_driver ? static_cast<int>(cuLaunchHostFunc(stream, TakesSomeTime, &call))
                                 : cudaLaunchHostFunc(stream, TakesSomeTime, &call);
    if (failed != 0) return 3;
  }
  launch(stream);
  Check(cudaStreamSynchronize(stream), "synchronize");
  Tell(calls);
  return 0;
}

// The same as a node of a graph that is launched so often.
int BetweenKernelsOfAGraph(const Launch& launch, long launches) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  launch(stream);
  HostCall call;
  Check(cudaLaunchHostFunc(stream, TakesSomeTime, &call), "host function");
  launch(stream);
  cudaGraph_t graph = nullptr;
  Check(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t executable = nullptr;
  Check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
  std::vector<HostCall> calls;
  for (long i = 0; i < launches; ++i) {
    Check(cudaGraphLaunch(executable, stream), "graph launch");
    Check(cudaStreamSynchronize(stream), "synchronize");
    calls.push_back(call);
  }
  Tell(calls);
  return 0;
}

// A graph of one, launched between two kernels.
int AloneInAGraph(const Launch& launch, long launches) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  launch(stream);
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  HostCall call;
  Check(cudaLaunchHostFunc(stream, TakesSomeTime, &call), "host function");
  cudaGraph_t graph = nullptr;
  Check(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t executable = nullptr;
  Check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
  for (long i = 0; i < launches; ++i) {
    Check(cudaGraphLaunch(executable, stream), "graph launch");
    Check(cudaStreamSynchronize(stream), "synchronize");
  }
  launch(stream);
  Check(cudaStreamSynchronize(stream), "synchronize");
  return 0;
}

}  // namespace

int HostFunctions(const std::string& mode, const Launch& launch, long count, long ms) {
  g_ms = ms;
  if (mode == "host_functions") return InAStream(launch, count);
  if (mode == "graph_host_functions") return BetweenKernelsOfAGraph(launch, count);
  return AloneInAGraph(launch, count);
}

}  // namespace cuda_program
