// Loops that lose nothing, though each does what loses time elsewhere. They have no habit: nothing may be found.
#include <array>
#include <vector>

#include "tests/scenarios/scenario.h"
#include "tests/scenarios/vocabulary.h"

namespace scenarios {
namespace {

const Registered healthy_long_kernels(
    "healthy_long_kernels", "six long kernels a step", [](Run& run) {
      const Net net({.device_us = run.Draw(3000, 5000), .kernels = 6, .op_us = 3});
      const cudaStream_t stream = NewStream();
      run.Steps(stream, [&](int64_t) { net.Step(stream); });
    });

const Registered healthy_full_queue(
    "healthy_full_queue", "more small kernels than the stream's queue holds", [](Run& run) {
      const int64_t kernels = run.DrawInt(90, 150);
      const Net net({.device_us = run.Draw(14, 25) * static_cast<double>(kernels),
                     .kernels = kernels,
                     .op_us = 1});
      const cudaStream_t stream = NewStream();
      run.Steps(stream, [&](int64_t) { net.Step(stream); });
    });

const Registered healthy_many_steps(
    "healthy_many_steps", "hundreds of short steps, of which a recording shows a few in detail",
    [](Run& run) {
      run.Take(400);
      const Net net({.device_us = run.Draw(600, 900), .kernels = 8, .op_us = 3});
      const cudaStream_t stream = NewStream();
      run.Steps(stream, [&](int64_t) { net.Step(stream); });
    });

const Registered healthy_graph("healthy_graph", "a step is one CUDA graph", [](Run& run) {
  const int64_t kernels = run.DrawInt(60, 160);
  const Net net({.device_us = run.Draw(12, 25) * static_cast<double>(kernels),
                 .kernels = kernels,
                 .op_us = 0});
  const cudaStream_t stream = NewStream();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t step = nullptr;
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  net.Step(stream);
  Check(cudaStreamEndCapture(stream, &graph));
  Check(cudaGraphInstantiate(&step, graph, 0));
  run.Steps(stream, [&](int64_t) { Check(cudaGraphLaunch(step, stream)); });
});

const Registered healthy_two_streams("healthy_two_streams", "two streams at once", [](Run& run) {
  const double device_us = run.Draw(1500, 3000);
  const Net left({.device_us = device_us, .kernels = 20, .op_us = 3});
  const Net right({.device_us = run.Draw(0.5, 0.9) * device_us, .kernels = 16, .op_us = 3});
  const cudaStream_t a = NewStream();
  const cudaStream_t b = NewStream();
  run.Steps(a, [&](int64_t) {
    Order(a, b);
    left.Step(a);
    right.Step(b);
    Order(b, a);
  });
});

const Registered healthy_old_event(
    "healthy_old_event", "waits for the step before last, so that it is not too far ahead",
    [](Run& run) {
      const Net net({.device_us = run.Draw(2000, 4000), .kernels = 30, .op_us = 4});
      const cudaStream_t stream = NewStream();
      std::array<cudaEvent_t, 2> done{NewEvent(), NewEvent()};
      run.Steps(stream, [&](int64_t i) {
        net.Step(stream);
        Check(cudaEventRecord(done[i % 2], stream));
        if (i > 0) Check(cudaEventSynchronize(done[(i + 1) % 2]));
      });
    });

const Registered healthy_item(
    "healthy_item", "reads a loss that is long there, on a stream of its own", [](Run& run) {
      const Net net({.device_us = run.Draw(2000, 4000), .kernels = 30, .op_us = 4});
      const cudaStream_t stream = NewStream(StreamKind::kNonBlocking);
      const cudaStream_t reads = NewStream(StreamKind::kNonBlocking);
      void* const loss = DeviceMemory(4);
      float value = 0;
      std::array<cudaEvent_t, 2> done{NewEvent(), NewEvent()};
      run.Steps(stream, [&](int64_t i) {
        net.Step(stream);
        Check(cudaEventRecord(done[i % 2], stream));
        if (i == 0) return;
        Check(cudaStreamWaitEvent(reads, done[(i + 1) % 2], 0));
        Check(cudaMemcpyAsync(&value, loss, sizeof value, cudaMemcpyDeviceToHost, reads));
        Check(cudaStreamSynchronize(reads));
      });
    });

const Registered healthy_batches(
    "healthy_batches", "loads, copies and computes, all at once", [](Run& run) {
      const double device_us = run.Draw(2500, 4500);
      const Net net({.device_us = device_us, .kernels = 30, .op_us = 4});
      const size_t bytes = static_cast<size_t>(run.DrawInt(4, 24)) << 20;
      const cudaStream_t stream = NewStream(StreamKind::kNonBlocking);
      Loader loader(4, 8, [=](int64_t) { return device_us * 2; });
      CopyAhead ahead(bytes);
      run.Steps(stream, [&](int64_t) {
        {
          const Range range("data_wait");
          loader.Next();
        }
        ahead.Next(stream);
        net.Step(stream);
        ahead.Done(stream);
      });
    });

const Registered healthy_other_thread(
    "healthy_other_thread", "another thread allocates, and nobody waits for it", [](Run& run) {
      const Net net({.device_us = run.Draw(2000, 4000), .kernels = 30, .op_us = 4});
      const cudaStream_t stream = NewStream(StreamKind::kNonBlocking);
      Background other([] {
        void* const memory = PinnedMemory(1 << 20);
        Pause(1500);
        Check(cudaFreeHost(memory));
      });
      run.Steps(stream, [&](int64_t) { net.Step(stream); });
    });

const Registered healthy_exchange(
    "healthy_exchange", "exchanges gradients beside the backward pass", [](Run& run) {
      const double device_us = run.Draw(2000, 3500);
      const Net net({.device_us = device_us, .kernels = 30, .op_us = 3});
      const cudaStream_t stream = NewStream(StreamKind::kNonBlocking);
      const cudaStream_t exchange = NewStream(StreamKind::kNonBlocking);
      const void* const all_reduce =
          NewKernel("_Z34ncclDevKernel_AllReduce_Sum_f32_RING_LLP11ncclDevComm", 0.25 * device_us);
      run.Steps(stream, [&](int64_t) {
        net.Forward(stream);
        Order(stream, exchange);
        Launch(all_reduce, exchange);
        net.Backward(stream);
        Order(exchange, stream);
        net.Optimizer(stream);
      });
    });

}  // namespace
}  // namespace scenarios
