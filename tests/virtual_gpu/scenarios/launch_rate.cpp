// What a launch costs the host when the device takes no time: the virtual GPU's own cost, the base
// of what a collector adds. Run it alone, with CUDA_INJECTION64_PATH=libvgpu_probe_injection.so
// (CUPTI and a client that only counts), and with the collector; the differences are theirs.
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tests/virtual_gpu/vgpu.h"

int main(int argc, char** argv) {
  int launches = 100'000;
  int rounds = 10;
  CLI::App app("Launches kernels as fast as it can and prints what one costs.");
  app.add_option("--launches", launches, "kernels in a round")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds, "the fastest and the middle one are printed")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  vgpuSet("scale", 0, 0);
  VgpuKernelSpec spec = {};
  spec.name = "_Z5emptyv";
  spec.least_ns = 2000;
  const void* kernel = vgpuDeclareKernel(nullptr, &spec);
  cudaStream_t stream;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 1;
  std::vector<double> costs_ns;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i)
      cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, stream);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    costs_ns.push_back(took.count() / launches);
    cudaStreamSynchronize(stream);
  }
  std::sort(costs_ns.begin(), costs_ns.end());
  std::printf("%d launches: %.0f ns each (fastest round), %.0f ns (middle round)\n",
              launches * rounds, costs_ns.front(), costs_ns[costs_ns.size() / 2]);
}
