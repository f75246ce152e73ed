// Loops whose host does too much itself, or is kept from doing it.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "tests/scenarios/scenario.h"
#include "tests/scenarios/vocabulary.h"

namespace scenarios {
namespace {

const Registered launch_bound(
    "launch_bound", "many small kernels, launched one by one; the fix is a CUDA graph",
    [](Run& run) {
      const int64_t kernels = run.DrawInt(60, 160);
      const double kernel_us = run.Draw(4, 9);
      const double op_us = run.Draw(6, 14);
      Habit& one_by_one = run.Has("one_by_one", "launch-bound");
      const cudaStream_t stream = NewStream();
      const Net net({.device_us = kernel_us * static_cast<double>(kernels),
                     .kernels = kernels,
                     .op_us = one_by_one ? op_us : 0});
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t step = nullptr;
      if (!one_by_one) {
        Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        net.Step(stream);
        Check(cudaStreamEndCapture(stream, &graph));
        Check(cudaGraphInstantiate(&step, graph, 0));
      }
      run.Steps(stream, [&](int64_t) {
        one_by_one ? net.Step(stream) : Check(cudaGraphLaunch(step, stream));
      });
    });

const Registered slow_framework("slow_framework",
                                "operators of half a millisecond between launches", [](Run& run) {
                                  const int64_t kernels = run.DrawInt(6, 12);
                                  const double kernel_us = run.Draw(120, 250);
                                  const double op_us = kernel_us * run.Draw(1.5, 3);
                                  Habit& slow = run.Has("eager", "launch-bound");
                                  const cudaStream_t stream = NewStream();
                                  const Net net(
                                      {.device_us = kernel_us * static_cast<double>(kernels),
                                       .kernels = kernels,
                                       .op_us = slow ? op_us : 5});
                                  run.Steps(stream, [&](int64_t) { net.Step(stream); });
                                });

// Host work in each step that is as long as the device's, or longer.
void WorkInLoop(Run& run, const char* range_name) {
  const double device_us = run.Draw(1500, 2500);
  const Net net({.device_us = device_us, .kernels = run.DrawInt(12, 30), .op_us = 4});
  const double work_us = device_us * run.Draw(1.2, 2);
  Habit& works = run.Has("work", "host-work", range_name == nullptr ? "" : range_name);
  const cudaStream_t stream = NewStream();
  run.Steps(stream, [&](int64_t) {
    net.Forward(stream);
    if (works) {
      if (range_name != nullptr) {
        const Range range(range_name);
        HostWork(work_us);
      } else {
        HostWork(work_us);
      }
    }
    net.Backward(stream);
    net.Optimizer(stream);
  });
}

const Registered named_work("named_work", "works on the host in a range of its own",
                            [](Run& run) { WorkInLoop(run, "tokenize"); });
const Registered silent_work("silent_work", "works on the host, and nothing says so",
                             [](Run& run) { WorkInLoop(run, nullptr); });

const Registered work_behind_item(
    "work_behind_item", "reads the loss and then works on the host for long, in a range",
    [](Run& run) {
      const double device_us = run.Draw(1500, 2500);
      const Net net({.device_us = device_us, .kernels = run.DrawInt(12, 30), .op_us = 4});
      const double work_us = run.Draw(1200, 2400);
      Habit& works = run.Has("work", "host-work", "compute metrics");
      Habit& read = run.Has("item", "read-back");
      const cudaStream_t stream = NewStream();
      void* const loss = DeviceMemory(4);
      float value = 0;
      run.Steps(stream, [&](int64_t) {
        net.Step(stream);
        if (read) {
          read.At();
          Check(cudaMemcpyAsync(&value, loss, sizeof value, cudaMemcpyDeviceToHost, stream));
        }
        if (!works) return;
        const Range range("compute metrics");
        HostWork(work_us);
      });
    });

// What every n-th step does in addition.
const Registered pauses("pauses", "stands still every few steps, as a garbage collector makes it",
                        [](Run& run) {
                          const double device_us = run.Draw(1500, 2500);
                          const Net net({.device_us = device_us, .kernels = 20, .op_us = 4});
                          const int64_t every = run.DrawEvery(5, 10);
                          const double pause_us = run.Draw(8000, 20000);
                          Habit& stands = run.Has("pause", "host-work");
                          const cudaStream_t stream = NewStream();
                          std::array<cudaEvent_t, 2> done{NewEvent(), NewEvent()};
                          run.Steps(stream, [&](int64_t i) {
                            net.Step(stream);
                            Check(cudaEventRecord(done[i % 2], stream));
                            if (i > 0) Check(cudaEventSynchronize(done[(i + 1) % 2]));
                            if (stands && i % every == 0) HostWork(pause_us);
                          });
                        });

const Registered checkpoints(
    "checkpoints", "every few steps copies weights to the host and writes them", [](Run& run) {
      const double device_us = run.Draw(1500, 2500);
      const Net net({.device_us = device_us, .kernels = 20, .op_us = 4});
      const int64_t every = run.DrawEvery(5, 10);
      const size_t bytes = static_cast<size_t>(run.DrawInt(8, 24)) << 20;
      const double write_us = run.Draw(9000, 20000);
      Habit& saves = run.Has("save", "checkpoint", "save_checkpoint");
      const cudaStream_t stream = NewStream();
      void* const weights = DeviceMemory(bytes);
      void* const host = PageableMemory(bytes);
      run.Steps(stream, [&](int64_t i) {
        net.Step(stream);
        if (!saves || i % every != 0) return;
        const Range range("save_checkpoint");
        Check(cudaMemcpyAsync(host, weights, bytes, cudaMemcpyDeviceToHost, stream));
        Pause(write_us);
      });
    });

// Another thread of the process takes the loop's processor, a burst at a time.
class Rival {
 public:
  // On the thread of the loop, which stays on its processor from now on.
  Rival(double every_us, double burst_us)
      : every_us_(every_us),
        burst_us_(burst_us),
        is_pinned_(PinToThisProcessor()),
        thread_([this] { Work(); }) {
    while (!is_ready_) Pause(100);
  }

 private:
  static bool PinToThisProcessor() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(std::max(0, sched_getcpu())), &one);
    return pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
  }

  void Work() {
    if (!is_ready_) {
      int policy = SCHED_OTHER;
      sched_param parameter{};
      pthread_getschedparam(pthread_self(), &policy, &parameter);
      if (policy == SCHED_FIFO) {  // a loop that goes before all others
        ++parameter.sched_priority;
        pthread_setschedparam(pthread_self(), policy, &parameter);
      }
      is_ready_ = true;
    }
    Pause(every_us_);
    HostWork(burst_us_);
  }

  const double every_us_;
  const double burst_us_;
  const bool is_pinned_;  // before the thread is made, which inherits it
  std::atomic<bool> is_ready_ = false;
  Background thread_;
};

const Registered preempted(
    "preempted", "shares its processor with a thread that takes it in bursts", [](Run& run) {
      const double device_us = run.Draw(1200, 2000);
      const int64_t kernels = run.DrawInt(16, 30);
      const Net net({.device_us = device_us,
                     .kernels = kernels,
                     .op_us = 0.7 * device_us / static_cast<double>(kernels)});
      const double burst_us = run.Draw(1500, 3000);
      Habit& shares = run.Has("shares", "preempted");
      const cudaStream_t stream = NewStream();
      const auto rival = shares ? std::make_unique<Rival>(0.6 * burst_us, burst_us) : nullptr;
      run.Steps(stream, [&](int64_t) { net.Step(stream); });
    });

}  // namespace
}  // namespace scenarios
