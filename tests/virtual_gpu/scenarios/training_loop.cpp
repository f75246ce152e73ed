// A training loop on the virtual GPU with the trainer's habits as switches and its output lines:
// loader, copy, forward, backward, optimizer, each in its NVTX range, in plain CUDA runtime calls.
// It ends by saying what the machine truly did.
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/virtual_gpu/vgpu.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int64_t steps = 60;
  int64_t warmup = 5;
  int64_t log_every = 10;
  int workers = 4;
  double decode_us = 2'000;  // host work to make a batch
  int queue = 0;  // batches made before the first step; 0: none, and two a worker at most
  int64_t batch_kib = 4'096;
  int kernels = 120;  // in a step
  double kernel_us = 60;
  double op_us = 0;  // host work before each launch, as a framework does
  int item_every = 0;
  bool cpu_tensors = false;
  bool pin_memory = true;
  bool cuda_graph = false;
  bool nvtx = true;
};

Options Parse(int argc, char** argv) {
  Options o;
  std::string pin_memory = "on";
  CLI::App app("A training loop on the virtual GPU; the flags are those of instrumented_trainer.");
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--steps", o.steps, "training steps")->check(CLI::PositiveNumber);
  app.add_option("--warmup", o.warmup, "first steps left out of the means");
  app.add_option("--log-every", o.log_every, "print the loss every N steps");
  app.add_option("--workers", o.workers, "loader threads; 0: the loop makes its batches itself");
  app.add_option("--decode-us", o.decode_us, "host work to make one batch");
  app.add_option("--queue", o.queue, "batches made ahead; so many are there before the first step");
  app.add_option("--batch-kib", o.batch_kib, "size of a batch")->check(CLI::PositiveNumber);
  app.add_option("--kernels", o.kernels, "kernels in a step")->check(CLI::PositiveNumber);
  app.add_option("--kernel-us", o.kernel_us, "mean duration of a kernel");
  app.add_option("--op-us", o.op_us, "host work of a framework before each launch");
  app.add_option("--pin-memory", pin_memory)->check(CLI::IsMember({"on", "off"}));
  app.add_option("--item-every", o.item_every, "habit: read the loss every N steps");
  app.add_flag("--cpu-tensors", o.cpu_tensors, "habit: make small tensors on the host");
  app.add_flag("--cuda-graph", o.cuda_graph, "launch the kernels of a step as one graph");
  app.add_flag("!--no-nvtx", o.nvtx, "no NVTX ranges");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  o.pin_memory = pin_memory == "on";
  o.warmup = std::min(o.warmup, o.steps - 1);
  return o;
}

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "training_loop: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

class Range {
 public:
  Range(const Options& options, const char* name) : marked_(options.nvtx) {
    if (marked_) nvtxRangePushA(name);
  }
  ~Range() {
    if (marked_) nvtxRangePop();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  bool marked_;
};

// Makes batches ahead in `workers` threads, or on demand without.
class Loader {
 public:
  explicit Loader(const Options& options) : options_(options) {
    for (int i = 0; i < options.workers; ++i) workers_.emplace_back([this] { Work(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return workers_.empty() || ready_ >= options_.queue; });
  }
  ~Loader() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void Next() {
    if (workers_.empty()) return vgpuHostWork(options_.decode_us * 1e3);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ready_ > 0; });
    --ready_;
    changed_.notify_all();
  }

 private:
  void Work() {
    const int most = options_.queue > 0 ? options_.queue : 2 * options_.workers;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || ready_ + in_work_ < most; });
      if (stopping_) return;
      ++in_work_;
      lock.unlock();
      vgpuHostWork(options_.decode_us * 1e3);
      lock.lock();
      --in_work_;
      ++ready_;
      changed_.notify_all();
    }
  }

  const Options& options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int ready_ = 0;
  int in_work_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

const void* Kernel(const char* mangled, double mean_us, int registers) {
  VgpuKernelSpec spec{};
  spec.name = mangled;
  spec.registers = registers;
  spec.least_ns = 0.8e3 * mean_us;
  spec.greatest_ns = 1.2e3 * mean_us;
  return vgpuDeclareKernel(nullptr, &spec);
}

class Training {
 public:
  explicit Training(const Options& options)
      : options_(options),
        loader_(options),
        bytes_(static_cast<size_t>(options.batch_kib) * 1024),
        forward_(Kernel("_ZN7virtual11convolutionEPfPKfi", options.kernel_us, 96)),
        backward_(Kernel("_ZN7virtual20convolution_backwardEPfPKfi", options.kernel_us, 128)),
        optimizer_(Kernel("_ZN7virtual5adamwEPfi", options.kernel_us, 40)) {
    Check(cudaStreamCreate(&stream_), "cudaStreamCreate");
    Check(cudaMalloc(&device_batch_, bytes_), "cudaMalloc");
    Check(cudaMalloc(&device_noise_, kNoiseBytes), "cudaMalloc");
    Check(cudaMalloc(&device_loss_, sizeof(float)), "cudaMalloc");
    if (options.pin_memory) {
      Check(cudaMallocHost(&batch_, bytes_), "cudaMallocHost");
    } else {
      batch_ = std::malloc(bytes_);
    }
    if (options.cuda_graph) Capture();
  }

  ~Training() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    for (void* memory : {device_batch_, device_noise_, device_loss_}) cudaFree(memory);
    options_.pin_memory ? static_cast<void>(cudaFreeHost(batch_)) : std::free(batch_);
    cudaStreamDestroy(stream_);
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // Returns what the step waited for data.
  Clock::duration Step(int64_t index) {
    const Range step(options_, "step");
    const Clock::time_point begin = Clock::now();
    {
      const Range range(options_, "data_wait");
      loader_.Next();
    }
    const Clock::duration waited = Clock::now() - begin;
    {
      const Range range(options_, "h2d_copy");
      Check(cudaMemcpyAsync(device_batch_, batch_, bytes_, cudaMemcpyHostToDevice, stream_),
            "copy");
    }
    if (options_.cpu_tensors) MakeNoise();
    if (options_.cuda_graph) {
      Check(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch");
    } else {
      LaunchAll();
    }
    if (options_.item_every > 0 && (index + 1) % options_.item_every == 0) ReadLoss();
    return waited;
  }

  void Synchronize() { Check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  static constexpr size_t kNoiseBytes = 16 * 1024;
  static constexpr int kNoiseTensors = 4;  // a step

  // Half of the kernels forward, a third backward, the rest the optimizer's.
  void LaunchAll() {
    LaunchPhase("forward", forward_, options_.kernels / 2, {256, 4, 1});
    LaunchPhase("backward", backward_, options_.kernels / 3, {512, 2, 1});
    LaunchPhase("optimizer", optimizer_,
                options_.kernels - options_.kernels / 2 - options_.kernels / 3, {64, 1, 1});
  }

  void LaunchPhase(const char* name, const void* kernel, int count, dim3 grid) {
    const Range range(options_, name);
    void* arguments[] = {&device_batch_};
    for (int i = 0; i < count; ++i) {
      if (options_.op_us > 0) vgpuHostWork(options_.op_us * 1e3);
      Check(cudaLaunchKernel(kernel, grid, dim3(128), arguments, 0, stream_), "cudaLaunchKernel");
    }
  }

  void Capture() {
    cudaGraph_t graph = nullptr;
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), "begin capture");
    LaunchAll();
    Check(cudaStreamEndCapture(stream_, &graph), "end capture");
    Check(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
  }

  void MakeNoise() {
    for (int i = 0; i < kNoiseTensors; ++i) {
      const std::vector<float> noise(kNoiseBytes / sizeof(float), 0.02F);
      Check(cudaMemcpyAsync(device_noise_, noise.data(), kNoiseBytes, cudaMemcpyHostToDevice,
                            stream_),
            "copy of the noise");
    }
  }

  void ReadLoss() {
    float loss = 0;
    Check(cudaMemcpyAsync(&loss, device_loss_, sizeof loss, cudaMemcpyDeviceToHost, stream_),
          "loss");
    Check(cudaStreamSynchronize(stream_), "wait for the loss");
  }

  const Options& options_;
  Loader loader_;
  size_t bytes_;
  const void* forward_;
  const void* backward_;
  const void* optimizer_;
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  void* batch_ = nullptr;
  void* device_batch_ = nullptr;
  void* device_noise_ = nullptr;
  void* device_loss_ = nullptr;
};

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// The losses are made up: what counts is that they are the same, recorded or not.
void Log(const Options& options, int64_t done, double ms_per_step) {
  if (done != 1 && done % options.log_every != 0 && done != options.steps) return;
  std::printf("step %lld loss %.4f %.1f ms/step\n", static_cast<long long>(done),
              2.0 / static_cast<double>(done), ms_per_step);
  std::fflush(stdout);
}

void Train(const Options& options) {
  Training training(options);
  Clock::time_point measured_from = Clock::now();
  const Clock::time_point begun = measured_from;
  Clock::duration waited{};
  for (int64_t i = 0; i < options.steps; ++i) {
    if (i == options.warmup) {
      training.Synchronize();
      measured_from = Clock::now();
      waited = {};
    }
    waited += training.Step(i);
    Log(options, i + 1, Milliseconds(Clock::now() - begun) / static_cast<double>(i + 1));
  }
  training.Synchronize();
  const auto measured = static_cast<double>(options.steps - options.warmup);
  const double step_ms = Milliseconds(Clock::now() - measured_from) / measured;
  const double wait_ms = Milliseconds(waited) / measured;
  std::printf("mean of %.0f steps after warm-up: %.2f ms/step, of it %.2f ms (%.1f %%) data wait\n",
              measured, step_ms, wait_ms, 100 * wait_ms / step_ms);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  Train(options);
  VgpuCounts counts{};
  vgpuGetCounts(&counts);
  std::printf("device did %llu kernels, %llu copies, %llu memsets\n",
              static_cast<unsigned long long>(counts.kernels),
              static_cast<unsigned long long>(counts.copies),
              static_cast<unsigned long long>(counts.memsets));
}
