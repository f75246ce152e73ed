// Loops in which the host waits for the device.
#include <array>

#include "tests/scenarios/scenario.h"
#include "tests/scenarios/vocabulary.h"

namespace scenarios {
namespace {

// Host and device have about as much to do: who lets them take turns loses much.
Net EvenNet(Run& run) {
  const double device_us = run.Draw(1200, 3000);
  const int64_t kernels = run.DrawInt(16, 48);
  const double launching = run.Draw(0.1, 0.4);
  const double before = run.Draw(0.1, 0.5);
  return Net({.device_us = device_us,
              .kernels = kernels,
              .op_us = launching * device_us / static_cast<double>(kernels),
              .before_us = before * device_us});
}

const Registered item("item", "reads the loss in each step", [](Run& run) {
  const Net net = EvenNet(run);
  Habit& read = run.Has("item", "read-back");
  const cudaStream_t stream = NewStream();
  void* const loss = DeviceMemory(4);
  float value = 0;
  run.Steps(stream, [&](int64_t) {
    net.Step(stream);
    if (!read) return;
    read.At();
    Check(cudaMemcpyAsync(&value, loss, sizeof value, cudaMemcpyDeviceToHost, stream));
    Check(cudaStreamSynchronize(stream));
  });
});

const Registered item_every("item_every", "reads the loss every few steps", [](Run& run) {
  const Net net = EvenNet(run);
  const int64_t every = run.DrawEvery(2, 5);
  Habit& read = run.Has("item", "read-back");
  const cudaStream_t stream = NewStream();
  void* const loss = DeviceMemory(4);
  float value = 0;
  run.Steps(stream, [&](int64_t i) {
    net.Step(stream);
    if (!read || i % every != 0) return;
    read.At();
    Check(cudaMemcpyAsync(&value, loss, sizeof value, cudaMemcpyDeviceToHost, stream));
    Check(cudaStreamSynchronize(stream));
  });
});

const Registered item_many("item_many", "reads three metrics in the forward pass", [](Run& run) {
  const Net net = EvenNet(run);
  const double compare_us = run.Draw(10, 30);  // with all else still less than the device has to do
  Habit& read = run.Has("item", "read-back");
  const cudaStream_t stream = NewStream();
  void* const metrics = DeviceMemory(4);
  float value = 0;
  run.Steps(stream, [&](int64_t) {
    net.Forward(stream);
    for (int metric = 0; metric < 3; ++metric) {
      if (read) {
        read.At();
        Check(cudaMemcpyAsync(&value, metrics, sizeof value, cudaMemcpyDeviceToHost, stream));
      }
      HostWork(compare_us);
    }
    net.Backward(stream);
    net.Optimizer(stream);
  });
});

const Registered sync_stream("sync_stream", "waits for its stream in each step", [](Run& run) {
  const Net net = EvenNet(run);
  Habit& sync = run.Has("sync", "sync-call");
  const cudaStream_t stream = NewStream();
  run.Steps(stream, [&](int64_t) {
    net.Step(stream);
    sync.At();
    if (sync) Check(cudaStreamSynchronize(stream));
  });
});

const Registered sync_device("sync_device", "waits for the device every few steps, as timers do",
                             [](Run& run) {
                               const Net net = EvenNet(run);
                               const int64_t every = run.DrawEvery(2, 5);
                               Habit& sync = run.Has("sync", "sync-call");
                               const cudaStream_t stream = NewStream();
                               run.Steps(stream, [&](int64_t i) {
                                 net.Step(stream);
                                 sync.At();
                                 if (sync && i % every == 0) Check(cudaDeviceSynchronize());
                               });
                             });

const Registered sync_event("sync_event", "waits for the event of its last kernel", [](Run& run) {
  const Net net = EvenNet(run);
  Habit& sync = run.Has("sync", "sync-call");
  const cudaStream_t stream = NewStream();
  const cudaEvent_t done = NewEvent();
  run.Steps(stream, [&](int64_t) {
    net.Step(stream);
    Check(cudaEventRecord(done, stream));
    sync.At();
    if (sync) Check(cudaEventSynchronize(done));
  });
});

const Registered sync_then_tiny("sync_then_tiny",
                                "waits, launches a tiny kernel, and then works on the host",
                                [](Run& run) {
                                  // All of the host's own, less than the device has to do.
                                  const double device_us = run.Draw(1500, 3000);
                                  const int64_t kernels = run.DrawInt(16, 48);
                                  const double op_us =
                                      run.Draw(0.1, 0.3) * device_us / static_cast<double>(kernels);
                                  const Net net({.device_us = device_us,
                                                 .kernels = kernels,
                                                 .op_us = op_us,
                                                 .before_us = run.Draw(0.05, 0.2) * device_us});
                                  const double work_us = run.Draw(0.2, 0.35) * device_us;
                                  Habit& sync = run.Has("sync", "sync-call");
                                  const cudaStream_t stream = NewStream();
                                  const void* const zero = NewKernel("_ZN3net4zeroEPfi", 2);
                                  run.Steps(stream, [&](int64_t) {
                                    net.Step(stream);
                                    sync.At();
                                    if (sync) Check(cudaStreamSynchronize(stream));
                                    Launch(zero, stream);
                                    HostWork(work_us);
                                  });
                                });

const Registered sync_two_phases("sync_two_phases",
                                 "waits between forward and backward, for a guard on the loss",
                                 [](Run& run) {
                                   const Net net = EvenNet(run);
                                   Habit& sync = run.Has("sync", "sync-call");
                                   const cudaStream_t stream = NewStream();
                                   run.Steps(stream, [&](int64_t) {
                                     net.Forward(stream);
                                     sync.At();
                                     if (sync) Check(cudaStreamSynchronize(stream));
                                     net.Backward(stream);
                                     net.Optimizer(stream);
                                   });
                                 });

const Registered autograd_thread(
    "autograd_thread", "another thread launches the backward pass; the loss is read", [](Run& run) {
      const Net net = EvenNet(run);
      Habit& read = run.Has("item", "read-back");
      const cudaStream_t stream = NewStream();
      void* const loss = DeviceMemory(4);
      float value = 0;
      Helper autograd;
      run.Steps(stream, [&](int64_t) {
        net.Forward(stream);
        autograd.Do([&] { net.Backward(stream); });
        net.Optimizer(stream);
        if (!read) return;
        read.At();
        Check(cudaMemcpyAsync(&value, loss, sizeof value, cudaMemcpyDeviceToHost, stream));
        Check(cudaStreamSynchronize(stream));
      });
    });

const Registered null_stream("null_stream",
                             "a small blocking copy on the default stream orders all streams",
                             [](Run& run) {
                               const Net net = EvenNet(run);
                               Habit& copy = run.Has("cudaMemcpy", "read-back");
                               const cudaStream_t stream = NewStream();
                               void* const loss = DeviceMemory(4096);
                               void* const host = PinnedMemory(4096);
                               run.Steps(stream, [&](int64_t) {
                                 net.Step(stream);
                                 copy.At();
                                 if (copy)
                                   Check(cudaMemcpy(host, loss, 4096, cudaMemcpyDeviceToHost));
                               });
                             });

}  // namespace
}  // namespace scenarios
