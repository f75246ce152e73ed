#include "tests/scenarios/vocabulary.h"

#include <nvtx3/nvToolsExt.h>
#include <time.h>

#include <cstdlib>

#include "tests/scenarios/scenario.h"
#include "tests/virtual_gpu/vgpu.h"

namespace scenarios {

Range::Range(const char* name) { nvtxRangePushA(name); }
Range::~Range() { nvtxRangePop(); }

void HostWork(double us) { vgpuHostWork(us * 1e3); }

void Pause(double us) {
  const auto ns = static_cast<int64_t>(us * 1e3);
  const timespec request = {ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&request, nullptr);
}

cudaStream_t NewStream(StreamKind kind) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(
      &stream, kind == StreamKind::kBlocking ? cudaStreamDefault : cudaStreamNonBlocking));
  return stream;
}

cudaEvent_t NewEvent() {
  cudaEvent_t event = nullptr;
  Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

void* DeviceMemory(size_t bytes) {
  void* memory = nullptr;
  Check(cudaMalloc(&memory, bytes));
  return memory;
}

void* PinnedMemory(size_t bytes) {
  void* memory = nullptr;
  Check(cudaMallocHost(&memory, bytes));
  return memory;
}

void* PageableMemory(size_t bytes) { return std::malloc(bytes); }

const void* NewKernel(const char* mangled, double us) {
  VgpuKernelSpec spec{};
  spec.name = mangled;
  spec.registers = 64;
  spec.least_ns = 0.9e3 * us;
  spec.greatest_ns = 1.1e3 * us;
  return vgpuDeclareKernel(nullptr, &spec);
}

void Launch(const void* kernel, cudaStream_t stream) {
  Check(cudaLaunchKernel(kernel, dim3(256), dim3(128), nullptr, 0, stream));
}

void Order(cudaStream_t from, cudaStream_t to) {
  cudaEvent_t event = NewEvent();
  Check(cudaEventRecord(event, from));
  Check(cudaStreamWaitEvent(to, event, 0));
  Check(cudaEventDestroy(event));
}

Net::Net(const Cost& cost)
    : cost_(cost),
      forward_(
          NewKernel("_ZN3net7forwardEPfPKfi", cost.device_us / static_cast<double>(cost.kernels))),
      backward_(
          NewKernel("_ZN3net8backwardEPfPKfi", cost.device_us / static_cast<double>(cost.kernels))),
      optimizer_(
          NewKernel("_ZN3net4adamEPfi", cost.device_us / static_cast<double>(cost.kernels))) {}

void Net::Forward(cudaStream_t stream) const {
  if (cost_.before_us > 0) HostWork(cost_.before_us);
  const Range range("forward");
  LaunchAll(forward_, cost_.kernels / 2, stream);
}

void Net::Backward(cudaStream_t stream) const {
  const Range range("backward");
  LaunchAll(backward_, cost_.kernels / 3, stream);
}

void Net::Optimizer(cudaStream_t stream) const {
  const Range range("optimizer");
  LaunchAll(optimizer_, cost_.kernels - cost_.kernels / 2 - cost_.kernels / 3, stream);
}

void Net::Step(cudaStream_t stream) const {
  Forward(stream);
  Backward(stream);
  Optimizer(stream);
}

void Net::LaunchAll(const void* kernel, int64_t count, cudaStream_t stream) const {
  for (int64_t i = 0; i < count; ++i) {
    if (cost_.op_us > 0) HostWork(cost_.op_us);
    Launch(kernel, stream);
  }
}

Loader::Loader(int workers, int ahead, std::function<double(int64_t)> batch_us, int ready)
    : ahead_(ahead), batch_us_(std::move(batch_us)) {
  for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { Work(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return made_ >= ready; });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Loader::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return made_ > taken_; });
  ++taken_;
  changed_.notify_all();
}

void Loader::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || begun_ - taken_ < ahead_; });
    if (stopping_) return;
    const int64_t batch = begun_++;
    lock.unlock();
    Pause(batch_us_(batch));
    lock.lock();
    ++made_;
    changed_.notify_all();
  }
}

CopyAhead::CopyAhead(size_t bytes)
    : bytes_(bytes), host_(PinnedMemory(bytes)), stream_(NewStream(StreamKind::kNonBlocking)) {
  for (size_t slot = 0; slot < 2; ++slot) {
    device_[slot] = DeviceMemory(bytes);
    arrived_[slot] = NewEvent();
    read_[slot] = NewEvent();
  }
  Copy(slot_);
}

void CopyAhead::Copy(size_t slot) {
  Check(cudaStreamWaitEvent(stream_, read_[slot], 0));
  Check(cudaMemcpyAsync(device_[slot], host_, bytes_, cudaMemcpyHostToDevice, stream_));
  Check(cudaEventRecord(arrived_[slot], stream_));
}

void CopyAhead::Next(cudaStream_t compute) {
  Check(cudaStreamWaitEvent(compute, arrived_[slot_], 0));
  Copy(1 - slot_);
}

void CopyAhead::Done(cudaStream_t compute) {
  Check(cudaEventRecord(read_[slot_], compute));
  slot_ = 1 - slot_;
}

Helper::Helper() : thread_([this] { Loop(); }) {}

Helper::~Helper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Helper::Begin(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void Helper::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !work_; });
}

void Helper::Do(std::function<void()> work) {
  Begin(std::move(work));
  Wait();
}

void Helper::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || work_; });
    if (!work_) return;
    lock.unlock();
    work_();
    lock.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
}

Background::Background(std::function<void()> work)
    : thread_([this, work = std::move(work)] {
        while (true) {
          {
            const std::lock_guard lock(mutex_);
            if (stopping_) return;
          }
          work();
        }
      }) {}

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  thread_.join();
}

Logger::Logger()
    : device_(DeviceMemory(sizeof(float))),
      stream_(NewStream(StreamKind::kNonBlocking)),
      thread_([this] {
        Pause(4000);
        float value = 0;
        Check(cudaMemcpyAsync(&value, device_, sizeof value, cudaMemcpyDeviceToHost, stream_));
        Check(cudaStreamSynchronize(stream_));
      }) {}

}  // namespace scenarios
