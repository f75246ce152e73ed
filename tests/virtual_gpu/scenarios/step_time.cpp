// A loop whose time per step on the device is known: events at the end of two steps say how long
// the steps between them took there, whatever the host did meanwhile. How the host keeps pace is
// the choice: --pace ahead (never waits), queue (more launches than a queue holds), graph (one
// launch a step), every (waits each --every steps), sync (waits in each).
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/virtual_gpu/vgpu.h"

namespace {

void Check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "step_time: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

struct Options {
  std::string pace = "ahead";
  int steps = 60;
  int warmup = 10;  // of which the recording makes no figures either
  int kernels = 6;
  int every = 5;
  double kernel_us = 400;
  double host_us = 50;
};

Options Parse(int argc, char** argv) {
  Options o;
  CLI::App app("A loop whose time per step on the device is known.");
  app.add_option("--pace", o.pace)
      ->check(CLI::IsMember({"ahead", "queue", "graph", "every", "sync"}));
  app.add_option("--steps", o.steps);
  app.add_option("--warmup", o.warmup);
  app.add_option("--kernels", o.kernels, "in a step");
  app.add_option("--every", o.every);
  app.add_option("--kernel-us", o.kernel_us, "mean duration of a kernel");
  app.add_option("--host-us", o.host_us, "host work in a step");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return o;
}

class Loop {
 public:
  explicit Loop(const Options& options) : options_(options) {
    VgpuKernelSpec spec = {};
    spec.name = "_Z4gemmPf";
    spec.registers = 64;
    spec.least_ns = 800 * options.kernel_us;
    spec.greatest_ns = 1200 * options.kernel_us;
    kernel_ = vgpuDeclareKernel(nullptr, &spec);
    Check(cudaStreamCreate(&stream_));
    Check(cudaEventCreate(&begin_));
    Check(cudaEventCreate(&end_));
    if (options_.pace != "graph") return;
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    LaunchAll();
    cudaGraph_t graph = nullptr;
    Check(cudaStreamEndCapture(stream_, &graph));
    Check(cudaGraphInstantiate(&graph_, graph, 0));
  }

  // Milliseconds a step.
  double Run() {
    for (int step = 0; step < options_.steps; ++step) {
      nvtxRangePushA("step");
      Step(step);
      nvtxRangePop();
    }
    Check(cudaStreamSynchronize(stream_));
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return static_cast<double>(milliseconds) / (options_.steps - options_.warmup);
  }

 private:
  void LaunchAll() {
    for (int i = 0; i < options_.kernels; ++i) {
      Check(cudaLaunchKernel(kernel_, dim3(256), dim3(128), nullptr, 0, stream_));
    }
  }

  void Step(int step) {
    vgpuHostWork(1000 * options_.host_us);
    if (graph_ != nullptr) {
      Check(cudaGraphLaunch(graph_, stream_));
    } else {
      LaunchAll();
    }
    if (step == options_.warmup - 1) Check(cudaEventRecord(begin_, stream_));
    if (step == options_.steps - 1) Check(cudaEventRecord(end_, stream_));
    const bool waits = options_.pace == "sync" ||
                       (options_.pace == "every" && step % options_.every == options_.every - 1);
    if (waits) Check(cudaStreamSynchronize(stream_));
  }

  Options options_;
  const void* kernel_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  Loop loop(options);
  std::printf("%.6f ms a step\n", loop.Run());
  return 0;
}
