// Two habits in one loop. Each is a habit of its own on the command line: what either is worth is measured
// with the other one on.
#include <array>
#include <vector>

#include "tests/scenarios/scenario.h"
#include "tests/scenarios/vocabulary.h"

namespace scenarios {
namespace {

const Registered loader_and_item("loader_and_item", "makes batches in the loop and reads the loss",
                                 [](Run& run) {
                                   const Net net({.device_us = run.Draw(1500, 3000),
                                                  .kernels = 24,
                                                  .op_us = run.Draw(5, 15),
                                                  .before_us = run.Draw(200, 500)});
                                   const double batch_us = run.Draw(1500, 3500);
                                   Habit& alone = run.Has("inline", "loader", "data_wait");
                                   Habit& read = run.Has("item", "read-back");
                                   const cudaStream_t stream = NewStream();
                                   Loader loader(4, 8, [=](int64_t) { return 0.3 * batch_us; });
                                   void* const loss = DeviceMemory(4);
                                   float value = 0;
                                   run.Steps(stream, [&](int64_t) {
                                     {
                                       const Range range("data_wait");
                                       alone ? HostWork(batch_us) : loader.Next();
                                     }
                                     net.Step(stream);
                                     if (!read) return;
                                     read.At();
                                     Check(cudaMemcpyAsync(&value, loss, sizeof value,
                                                           cudaMemcpyDeviceToHost, stream));
                                     Check(cudaStreamSynchronize(stream));
                                   });
                                 });

const Registered item_and_pageable(
    "item_and_pageable", "reads the loss and copies batches from pageable memory", [](Run& run) {
      const Net net({.device_us = run.Draw(1500, 3000),
                     .kernels = 24,
                     .op_us = run.Draw(5, 15),
                     .before_us = run.Draw(200, 600)});
      const size_t bytes = static_cast<size_t>(run.DrawInt(4, 12)) << 20;
      // Of copies that each draw their own, two runs of 50 steps differ by 3 % of the step.
      run.Machine("h2d_pageable_gbps", run.Draw(4, 9));
      Habit& read = run.Has("item", "read-back");
      Habit& pageable = run.Has("pageable", "pageable-copy", "h2d_copy");
      const cudaStream_t stream = NewStream();
      CopyAhead ahead(bytes);
      void* const host = PageableMemory(bytes);
      void* const device = DeviceMemory(bytes);
      float value = 0;
      run.Steps(stream, [&](int64_t) {
        {
          const Range range("h2d_copy");
          if (pageable) {
            pageable.At();
            Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
          } else {
            ahead.Next(stream);
          }
        }
        net.Step(stream);
        if (!pageable) ahead.Done(stream);
        if (!read) return;
        read.At();
        Check(cudaMemcpyAsync(&value, device, sizeof value, cudaMemcpyDeviceToHost, stream));
        Check(cudaStreamSynchronize(stream));
      });
    });

const Registered sync_and_malloc("sync_and_malloc",
                                 "waits for the device and allocates in each step", [](Run& run) {
                                   const double device_us = run.Draw(1200, 2400);
                                   const Net net({.device_us = device_us,
                                                  .kernels = 24,
                                                  .op_us = 6,
                                                  .before_us = device_us * run.Draw(0.2, 0.5)});
                                   const double malloc_us = run.Draw(60, 200);
                                   run.Machine("malloc_call_ns", malloc_us * 1e3);
                                   Habit& sync = run.Has("sync", "sync-call");
                                   Habit& allocates = run.Has("malloc", "allocation");
                                   const cudaStream_t stream = NewStream();
                                   run.Steps(stream, [&](int64_t) {
                                     void* memory = nullptr;
                                     allocates.At();
                                     if (allocates) Check(cudaMalloc(&memory, 1 << 20));
                                     net.Step(stream);
                                     if (allocates) Check(cudaFree(memory));
                                     sync.At();
                                     if (sync) Check(cudaStreamSynchronize(stream));
                                   });
                                 });

const Registered work_and_loader(
    "work_and_loader", "works on the host in a range and waits for a slow loader", [](Run& run) {
      const double device_us = run.Draw(1500, 2500);
      const Net net({.device_us = device_us, .kernels = 20, .op_us = 4});
      const double work_us = device_us * run.Draw(0.6, 1);
      const double batch_us = device_us * run.Draw(1, 1.6);
      Habit& works = run.Has("work", "host-work", "tokenize");
      Habit& alone = run.Has("inline", "loader", "data_wait");
      const cudaStream_t stream = NewStream();
      run.Steps(stream, [&](int64_t) {
        {
          const Range range("data_wait");
          if (alone) HostWork(batch_us);
        }
        net.Forward(stream);
        if (works) {
          const Range range("tokenize");
          HostWork(work_us);
        }
        net.Backward(stream);
        net.Optimizer(stream);
      });
    });

const Registered communication_and_loader(
    "communication_and_loader", "exchanges behind the backward pass and waits for batches",
    [](Run& run) {
      const double device_us = run.Draw(1500, 2500);
      const Net net({.device_us = device_us, .kernels = 24, .op_us = 3});
      const double exchange_us = device_us * run.Draw(0.2, 0.3);
      const double batch_us = device_us * run.Draw(1.5, 2.2);
      Habit& behind = run.Has("behind", "communication");
      Habit& alone = run.Has("inline", "loader", "data_wait");
      const cudaStream_t stream = NewStream(StreamKind::kNonBlocking);
      const cudaStream_t exchange = NewStream(StreamKind::kNonBlocking);
      const void* const all_reduce =
          NewKernel("_Z34ncclDevKernel_AllReduce_Sum_f32_RING_LLP11ncclDevComm", exchange_us);
      run.Steps(stream, [&](int64_t) {
        {
          const Range range("data_wait");
          if (alone) HostWork(batch_us);
        }
        net.Forward(stream);
        if (!behind) {
          Order(stream, exchange);
          Launch(all_reduce, exchange);
        }
        net.Backward(stream);
        if (behind) {
          Order(stream, exchange);
          Launch(all_reduce, exchange);
        }
        Order(exchange, stream);
        net.Optimizer(stream);
      });
    });

const Registered sync_and_copy(
    "sync_and_copy", "waits for its stream and copies in it", [](Run& run) {
      const double device_us = run.Draw(1500, 3000);
      const Net net({.device_us = device_us,
                     .kernels = 24,
                     .op_us = 6,
                     .before_us = device_us * run.Draw(0.2, 0.5)});
      const size_t bytes = static_cast<size_t>(run.DrawInt(12, 40)) << 20;
      Habit& sync = run.Has("sync", "sync-call");
      Habit& in_line = run.Has("in_line", "exposed-copy", "h2d_copy");
      const cudaStream_t stream = NewStream();
      CopyAhead ahead(bytes);
      void* const host = PinnedMemory(bytes);
      void* const device = DeviceMemory(bytes);
      run.Steps(stream, [&](int64_t) {
        {
          const Range range("h2d_copy");
          if (in_line) {
            in_line.At();
            Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
          } else {
            ahead.Next(stream);
          }
        }
        net.Step(stream);
        if (!in_line) ahead.Done(stream);
        sync.At();
        if (sync) Check(cudaStreamSynchronize(stream));
      });
    });

const Registered tensors_and_item(
    "tensors_and_item", "makes small tensors on the host and reads the loss", [](Run& run) {
      const double device_us = run.Draw(600, 1200);
      const Net net({.device_us = device_us,
                     .kernels = 24,
                     .op_us = device_us / 80,
                     .before_us = 0.2 * device_us});
      const int64_t tensors = run.DrawInt(6, 14);
      const double make_us = run.Draw(15, 35);
      Habit& on_host = run.Has("on_host", "cpu-tensor");
      Habit& read = run.Has("item", "read-back");
      const cudaStream_t stream = NewStream();
      void* const host = PageableMemory(4096);
      void* const device = DeviceMemory(4096);
      const void* const use = NewKernel("_ZN3net3addEPfPKfi", 4);
      float value = 0;
      run.Steps(stream, [&](int64_t) {
        for (int64_t i = 0; i < tensors; ++i) {
          if (on_host) {
            HostWork(make_us);
            on_host.At();
            Check(cudaMemcpyAsync(device, host, 4096, cudaMemcpyHostToDevice, stream));
          }
          Launch(use, stream);
        }
        net.Step(stream);
        if (!read) return;
        read.At();
        Check(cudaMemcpyAsync(&value, device, sizeof value, cudaMemcpyDeviceToHost, stream));
        Check(cudaStreamSynchronize(stream));
      });
    });

}  // namespace
}  // namespace scenarios
