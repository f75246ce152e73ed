// Loops that wait for their batches.
#include <array>

#include "tests/scenarios/scenario.h"
#include "tests/scenarios/vocabulary.h"

namespace scenarios {
namespace {

// A net whose kernels take longer than all that the host does.
Net DeviceBound(Run& run) {
  return Net({.device_us = run.Draw(1500, 3500), .kernels = run.DrawInt(16, 40), .op_us = 3});
}

const Registered loader_inline("loader_inline", "the loop makes its batches itself", [](Run& run) {
  const Net net = DeviceBound(run);
  const double batch_us = run.Draw(2500, 5000);
  Habit& alone = run.Has("inline", "loader", "data_wait");
  const cudaStream_t stream = NewStream();
  Loader loader(4, 8, [=](int64_t) { return 0.4 * batch_us; });
  run.Steps(stream, [&](int64_t) {
    {
      const Range range("data_wait");
      alone ? HostWork(batch_us) : loader.Next();
    }
    net.Step(stream);
  });
});

const Registered loader_slow("loader_slow", "one worker, slower than the step", [](Run& run) {
  const Net net = DeviceBound(run);
  const double batch_us = run.Draw(3800, 7000);
  Habit& slow = run.Has("one_worker", "loader", "data_wait");
  const cudaStream_t stream = NewStream();
  Loader loader(slow ? 1 : 6, 8, [=](int64_t) { return batch_us; });
  run.Steps(stream, [&](int64_t) {
    {
      const Range range("data_wait");
      loader.Next();
    }
    net.Step(stream);
  });
});

const Registered loader_bursts("loader_bursts", "every fifth batch opens a new shard in the loop",
                               [](Run& run) {
                                 const Net net = DeviceBound(run);
                                 const double shard_us = run.Draw(9000, 18000);
                                 Habit& shards = run.Has("shards", "loader", "data_wait");
                                 const cudaStream_t stream = NewStream();
                                 // Runs ahead of the device by two steps at most, as loops that look at an older loss do.
                                 std::array<cudaEvent_t, 2> done{NewEvent(), NewEvent()};
                                 run.Steps(stream, [&](int64_t i) {
                                   {
                                     const Range range("data_wait");
                                     HostWork(60);
                                     if (shards && i % 5 == 4) Pause(shard_us);
                                   }
                                   net.Step(stream);
                                   Check(cudaEventRecord(done[i % 2], stream));
                                   if (i > 0) Check(cudaEventSynchronize(done[(i + 1) % 2]));
                                 });
                               });

const Registered loader_late(
    "loader_late", "a full queue hides for some dozen steps that the loader is too slow",
    [](Run& run) {
      run.Take(240);
      const double device_us = run.Draw(1500, 2500);
      const Net net({.device_us = device_us, .kernels = run.DrawInt(12, 24), .op_us = 3});
      const double batch_us = device_us * run.Draw(1.3, 1.6) + 300;
      Habit& slow = run.Has("one_worker", "loader", "data_wait");
      if (slow) run.IsUnsteady();
      const cudaStream_t stream = NewStream();
      Loader loader(
          slow ? 1 : 4, 16, [=](int64_t) { return batch_us; }, 16);
      std::array<cudaEvent_t, 2> done{NewEvent(), NewEvent()};
      run.Steps(stream, [&](int64_t i) {
        {
          const Range range("data_wait");
          loader.Next();
        }
        net.Step(stream);
        Check(cudaEventRecord(done[i % 2], stream));
        if (i > 0) Check(cudaEventSynchronize(done[(i + 1) % 2]));
      });
    });

// What decodes a batch copies it to the device too, on a stream and a thread of its own.
void PrefetchThread(Run& run, const char* range_of_worker) {
  const Net net = DeviceBound(run);
  const double batch_us = run.Draw(4000, 7000);
  const size_t bytes = static_cast<size_t>(run.DrawInt(1, 6)) << 20;
  Habit& slow = run.Has("slow_decoder", "loader", "data_wait");
  const double made_us = slow ? batch_us : 0.15 * batch_us;
  const cudaStream_t stream = NewStream(StreamKind::kNonBlocking);
  const cudaStream_t copies = NewStream(StreamKind::kNonBlocking);
  void* const host = PinnedMemory(bytes);
  void* const device = DeviceMemory(bytes);
  Helper worker;
  const auto make = [&] {
    if (range_of_worker != nullptr) {
      const Range range(range_of_worker);
      Pause(made_us);
    } else {
      Pause(made_us);
    }
    Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, copies));
  };
  worker.Begin(make);
  run.Steps(stream, [&](int64_t) {
    {
      const Range range("data_wait");
      worker.Wait();
    }
    Order(copies, stream);
    worker.Begin(make);
    net.Step(stream);
  });
  worker.Wait();
}

const Registered prefetch_thread("prefetch_thread",
                                 "a slow thread decodes, in a range, and copies to the device",
                                 [](Run& run) { PrefetchThread(run, "decode"); });
const Registered prefetch_thread_silent("prefetch_thread_silent",
                                        "a slow thread decodes without a range and copies",
                                        [](Run& run) { PrefetchThread(run, nullptr); });

const Registered loader_hidden(
    "loader_hidden", "batches made in the loop, behind a queue of kernels that is never empty",
    [](Run& run) {
      const double device_us = run.Draw(3000, 5000);
      const Net net({.device_us = device_us, .kernels = run.DrawInt(16, 32), .op_us = 3});
      const double batch_us = device_us * run.Draw(0.2, 0.4);
      Habit& made = run.Has("inline", "loader", "data_wait");
      const cudaStream_t stream = NewStream();
      run.Steps(stream, [&](int64_t) {
        {
          const Range range("data_wait");
          if (made) HostWork(batch_us);
        }
        net.Step(stream);
      });
    });

}  // namespace
}  // namespace scenarios
