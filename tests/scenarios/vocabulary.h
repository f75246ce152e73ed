// What scenarios are made of: ranges, host work, a net's kernels, loaders, copies ahead, helper threads.
// All durations are microseconds.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace scenarios {

// An NVTX range of the calling thread.
class Range {
 public:
  explicit Range(const char* name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

void HostWork(double us);  // uses the processor
void Pause(double us);     // sleeps: a disk, a network

inline constexpr int kQuietPriority = 20;  // of --quiet, SCHED_FIFO

enum class StreamKind { kBlocking, kNonBlocking };  // with the default stream
cudaStream_t NewStream(StreamKind kind = StreamKind::kBlocking);
cudaEvent_t NewEvent();
void* DeviceMemory(size_t bytes);
void* PinnedMemory(size_t bytes);
void* PageableMemory(size_t bytes);

// A launch takes that time, give or take a tenth.
const void* NewKernel(const char* mangled, double us);
void Launch(const void* kernel, cudaStream_t stream);
// What is issued to `to` from now on begins after what was issued to `from`.
void Order(cudaStream_t from, cudaStream_t to);

// The kernels of a step and what a framework does on the host to launch them.
class Net {
 public:
  struct Cost {
    double device_us = 2500;  // of all kernels together
    int64_t kernels = 30;
    double op_us = 4;      // host work before each launch
    double before_us = 0;  // and before the forward pass: bookkeeping, outside its range
  };
  explicit Net(const Cost& cost);

  // Each in its range.
  void Forward(cudaStream_t stream) const;   // half of the kernels
  void Backward(cudaStream_t stream) const;  // a third
  void Optimizer(cudaStream_t stream) const;
  void Step(cudaStream_t stream) const;

 private:
  void LaunchAll(const void* kernel, int64_t count, cudaStream_t stream) const;

  Cost cost_;
  const void* forward_;
  const void* backward_;
  const void* optimizer_;
};

// Batches made ahead by threads that read a disk.
class Loader {
 public:
  // batch_us(i): of batch i. `ahead`: of so many at most; `ready`: there before the first step.
  Loader(int workers, int ahead, std::function<double(int64_t)> batch_us, int ready = 0);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  void Next();  // in a range "data_wait"

 private:
  void Work();

  const int ahead_;
  const std::function<double(int64_t)> batch_us_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t begun_ = 0;
  int64_t made_ = 0;
  int64_t taken_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

// The way of batches to the device beside the kernels: pinned memory, a stream of its own, two buffers.
class CopyAhead {
 public:
  explicit CopyAhead(size_t bytes);
  // What is issued to `compute` from now on has its batch; the next one is on its way.
  void Next(cudaStream_t compute);
  // The kernels that read the batch have been issued.
  void Done(cudaStream_t compute);

 private:
  void Copy(size_t slot);

  size_t bytes_;
  size_t slot_ = 0;
  void* host_;
  cudaStream_t stream_;
  std::array<void*, 2> device_{};
  std::array<cudaEvent_t, 2> arrived_{};
  std::array<cudaEvent_t, 2> read_{};
};

// A thread that does one thing at a time for another, as autograd's does.
class Helper {
 public:
  Helper();
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  void Do(std::function<void()> work);  // returns when it is done
  void Begin(std::function<void()> work);
  void Wait();

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool stopping_ = false;
  std::thread thread_;
};

// A thread that does `work` again and again, until it is destroyed.
class Background {
 public:
  explicit Background(std::function<void()> work);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

 private:
  std::mutex mutex_;
  bool stopping_ = false;
  std::thread thread_;
};

// Reads a number back every few milliseconds, on a stream of its own that the loop never waits for.
class Logger {
 public:
  Logger();

 private:
  void* device_;
  cudaStream_t stream_;
  Background thread_;
};

}  // namespace scenarios
