// Copies that the device, or the host, waits for; memory that is allocated in the loop.
#include <vector>

#include "tests/scenarios/scenario.h"
#include "tests/scenarios/vocabulary.h"

namespace scenarios {
namespace {

constexpr size_t kMiB = 1 << 20;

Net DeviceBound(Run& run) {
  return Net({.device_us = run.Draw(2000, 4000), .kernels = run.DrawInt(16, 40), .op_us = 4});
}

size_t DrawMiB(Run& run, int64_t least, int64_t greatest) {
  return static_cast<size_t>(run.DrawInt(least, greatest)) * kMiB;
}

// A step whose batch is copied by `copy` where `habit` is on, else ahead of it on another stream.
void WithBatch(Run& run, const Net& net, size_t bytes, const Habit& habit,
               const std::function<void(cudaStream_t)>& copy) {
  const cudaStream_t stream = NewStream();
  CopyAhead ahead(bytes);
  run.Steps(stream, [&](int64_t) {
    {
      const Range range("h2d_copy");
      habit ? copy(stream) : ahead.Next(stream);
    }
    net.Step(stream);
    if (!habit) ahead.Done(stream);
  });
}

const Registered pageable_big("pageable_big", "copies its batch from pageable memory",
                              [](Run& run) {
                                const Net net = DeviceBound(run);
                                const size_t bytes = DrawMiB(run, 4, 16);
                                Habit& pageable = run.Has("pageable", "pageable-copy", "h2d_copy");
                                void* const host = PageableMemory(bytes);
                                void* const device = DeviceMemory(bytes);
                                WithBatch(run, net, bytes, pageable, [&](cudaStream_t stream) {
                                  pageable.At();
                                  Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
                                                        stream));
                                });
                              });

const Registered pinned_blocking("pinned_blocking",
                                 "copies its batch from pinned memory, by a call that waits",
                                 [](Run& run) {
                                   const Net net = DeviceBound(run);
                                   const size_t bytes = DrawMiB(run, 12, 48);
                                   Habit& blocking =
                                       run.Has("blocking", "blocking-copy", "h2d_copy");
                                   void* const host = PinnedMemory(bytes);
                                   void* const device = DeviceMemory(bytes);
                                   WithBatch(run, net, bytes, blocking, [&](cudaStream_t) {
                                     blocking.At();
                                     Check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
                                   });
                                 });

const Registered copy_in_line("copy_in_line", "copies its batch in the kernels' stream",
                              [](Run& run) {
                                const Net net = DeviceBound(run);
                                const size_t bytes = DrawMiB(run, 12, 48);
                                Habit& in_line = run.Has("in_line", "exposed-copy", "h2d_copy");
                                void* const host = PinnedMemory(bytes);
                                void* const device = DeviceMemory(bytes);
                                WithBatch(run, net, bytes, in_line, [&](cudaStream_t stream) {
                                  in_line.At();
                                  Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
                                                        stream));
                                });
                              });

const Registered copy_within("copy_within", "copies activations within the device again and again",
                             [](Run& run) {
                               const Net net = DeviceBound(run);
                               const size_t bytes = DrawMiB(run, 128, 512);
                               Habit& copies = run.Has("contiguous", "exposed-copy");
                               const cudaStream_t stream = NewStream();
                               void* const from = DeviceMemory(bytes);
                               void* const to = DeviceMemory(bytes);
                               run.Steps(stream, [&](int64_t) {
                                 net.Forward(stream);
                                 for (int i = 0; copies && i < 2; ++i) {
                                   copies.At();
                                   Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                                         stream));
                                 }
                                 net.Backward(stream);
                                 net.Optimizer(stream);
                               });
                             });

const Registered offload("offload", "copies its weights to the host, in the kernels' stream",
                         [](Run& run) {
                           const Net net = DeviceBound(run);
                           const size_t bytes = DrawMiB(run, 12, 48);
                           Habit& in_line = run.Has("in_line", "exposed-copy");
                           const cudaStream_t stream = NewStream();
                           const cudaStream_t other = NewStream(StreamKind::kNonBlocking);
                           void* const host = PinnedMemory(bytes);
                           void* const device = DeviceMemory(bytes);
                           run.Steps(stream, [&](int64_t) {
                             net.Step(stream);
                             in_line.At();
                             Check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost,
                                                   in_line ? stream : other));
                           });
                         });

const Registered cpu_tensors(
    "cpu_tensors", "makes small tensors on the host and copies them", [](Run& run) {
      const double device_us = run.Draw(500, 900);
      const Net net({.device_us = device_us, .kernels = 24, .op_us = device_us / 32});
      const int64_t tensors = run.DrawInt(8, 20);
      const double make_us = run.Draw(15, 40);
      const auto bytes = static_cast<size_t>(run.DrawInt(1024, 16384));
      Habit& on_host = run.Has("on_host", "cpu-tensor");
      const cudaStream_t stream = NewStream();
      void* const host = PageableMemory(bytes);
      void* const device = DeviceMemory(bytes);
      const void* const use = NewKernel("_ZN3net3addEPfPKfi", 4);
      run.Steps(stream, [&](int64_t) {
        for (int64_t i = 0; i < tensors; ++i) {
          if (on_host) {
            HostWork(make_us);
            on_host.At();
            Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
          }
          Launch(use, stream);
        }
        net.Step(stream);
      });
    });

const Registered malloc_in_loop("malloc_in_loop", "takes and frees device memory in each step",
                                [](Run& run) {
                                  const Net net = DeviceBound(run);
                                  const size_t bytes = DrawMiB(run, 1, 64);
                                  const int64_t blocks = run.DrawInt(2, 5);
                                  Habit& allocates = run.Has("malloc", "allocation");
                                  const cudaStream_t stream = NewStream();
                                  run.Steps(stream, [&](int64_t) {
                                    std::vector<void*> memory(
                                        static_cast<size_t>(allocates ? blocks : 0));
                                    for (void*& block : memory) {
                                      allocates.At();
                                      Check(cudaMalloc(&block, bytes));
                                    }
                                    net.Step(stream);
                                    for (void* block : memory) Check(cudaFree(block));
                                  });
                                });

const Registered host_alloc_in_loop(
    "host_alloc_in_loop", "pins memory anew for each batch", [](Run& run) {
      const double pin_us = run.Draw(300, 900);
      run.Machine("malloc_call_ns", pin_us * 1e3);
      const double device_us = run.Draw(700, 1100);
      const Net net({.device_us = device_us, .kernels = 20, .op_us = device_us / 40});
      // So small that copying it in line costs nothing to speak of.
      const size_t bytes = static_cast<size_t>(run.DrawInt(32, 128)) << 10;
      Habit& pins = run.Has("pin", "allocation");
      const cudaStream_t stream = NewStream();
      void* const device = DeviceMemory(bytes);
      void* kept = PinnedMemory(bytes);
      run.Steps(stream, [&](int64_t) {
        void* host = kept;
        pins.At();
        if (pins) Check(cudaHostAlloc(&host, bytes, cudaHostAllocDefault));
        Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
        net.Step(stream);
        if (pins) Check(cudaFreeHost(host));
      });
    });

}  // namespace
}  // namespace scenarios
