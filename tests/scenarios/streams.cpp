// Streams, devices and ranks that wait for each other.
#include <array>
#include <vector>

#include "tests/scenarios/scenario.h"
#include "tests/scenarios/vocabulary.h"

namespace scenarios {
namespace {

const Registered needless_edge(
    "needless_edge", "two streams that an event puts one behind the other", [](Run& run) {
      const double device_us = run.Draw(1200, 2400);
      const Net left({.device_us = device_us, .kernels = 20, .op_us = 3});
      const double share = run.Draw(0.5, 0.9);
      const Net right({.device_us = share * device_us, .kernels = 16, .op_us = 3});
      Habit& edge = run.Has("edge", "serialised");
      const cudaStream_t a = NewStream();
      const cudaStream_t b = NewStream();
      run.Steps(a, [&](int64_t) {
        Order(a, b);  // the batch is there
        left.Step(a);
        edge.At();
        if (edge) Order(a, b);
        right.Step(b);
        Order(b, a);
      });
    });

const Registered default_stream(
    "default_stream", "a kernel on the default stream between those of two others", [](Run& run) {
      const double device_us = run.Draw(1200, 2400);
      const Net left({.device_us = device_us, .kernels = 20, .op_us = 3});
      const Net right({.device_us = run.Draw(0.5, 0.9) * device_us, .kernels = 16, .op_us = 3});
      Habit& on_default = run.Has("default_stream", "serialised");
      const cudaStream_t a = NewStream();
      const cudaStream_t b = NewStream();
      const cudaStream_t third = NewStream(StreamKind::kNonBlocking);
      const void* const norm = NewKernel("_ZN3net4normEPfi", 5);
      run.Steps(a, [&](int64_t) {
        Order(a, b);
        left.Step(a);
        Launch(norm, on_default ? nullptr : third);
        right.Step(b);
        Order(b, a);
      });
    });

const Registered host_function(
    "host_function", "calls the host from its stream in each step", [](Run& run) {
      const double length_us = run.Draw(500, 1500);
      run.Machine("host_function_ns", length_us * 1e3);
      const Net net({.device_us = run.Draw(1500, 2500), .kernels = 20, .op_us = 4});
      Habit& calls = run.Has("callback", "host-function");
      const cudaStream_t stream = NewStream();
      // Ends before the stream goes on: that waits for length_us whatever the function does.
      double sleep_us = 0.8 * length_us;
      const cudaHostFn_t function = [](void* us) { Pause(*static_cast<double*>(us)); };
      run.Steps(stream, [&](int64_t) {
        net.Forward(stream);
        calls.At();
        if (calls) Check(cudaLaunchHostFunc(stream, function, &sleep_us));
        net.Backward(stream);
        net.Optimizer(stream);
      });
    });

// Two halves of a net on two devices; activations go from one to the other.
const Registered pipeline(
    "pipeline", "two devices that take turns; the fix lets the first begin the next batch",
    [](Run& run) {
      run.Machine("devices", 2);
      const double half_us = run.Draw(1200, 2400);
      // Of halves that are as long, the copy would hide behind nothing, fixed or not.
      const double share = run.Draw(0.6, 0.9);
      const size_t bytes = static_cast<size_t>(run.DrawInt(1, 4)) << 20;
      Habit& turns = run.Has("turns", "device-wait");
      std::array<cudaStream_t, 2> stream{};
      std::array<void*, 2> memory{};
      for (int device = 0; device < 2; ++device) {
        Check(cudaSetDevice(device));
        stream[device] = NewStream();
        memory[device] = DeviceMemory(bytes);
      }
      const Net first({.device_us = share * half_us, .kernels = 16, .op_us = 3});
      const Net second({.device_us = half_us, .kernels = 20, .op_us = 3});
      run.Steps(stream[1], [&](int64_t) {
        Check(cudaSetDevice(0));
        turns.At();
        if (turns) Order(stream[1], stream[0]);
        first.Step(stream[0]);
        Check(cudaMemcpyPeerAsync(memory[1], 1, memory[0], 0, bytes, stream[0]));
        Order(stream[0], stream[1]);
        Check(cudaSetDevice(1));
        second.Step(stream[1]);
      });
    });

// One process, two devices, as torch.nn.DataParallel: weights go out and gradients come back each step.
const Registered data_parallel(
    "data_parallel", "sends all weights to the second device in each step", [](Run& run) {
      run.Machine("devices", 2);
      const double device_us = run.Draw(1500, 3000);
      const size_t bytes = static_cast<size_t>(run.DrawInt(16, 64)) << 20;
      Habit& replicates = run.Has("replicate", "data-parallel");
      std::array<cudaStream_t, 2> stream{};
      std::array<void*, 2> memory{};
      std::vector<Net> replica;
      for (int device = 0; device < 2; ++device) {
        Check(cudaSetDevice(device));
        stream[device] = NewStream();
        memory[device] = DeviceMemory(bytes);
        replica.push_back(Net({.device_us = device_us, .kernels = 20, .op_us = 2}));
      }
      const void* const reduce = NewKernel("_ZN3net3addEPfPKfi", 30);
      run.Steps(stream[0], [&](int64_t) {
        if (replicates) {
          replicates.At();
          Check(cudaMemcpyPeerAsync(memory[1], 1, memory[0], 0, bytes, stream[0]));
        }
        Order(stream[0], stream[1]);
        for (int device = 0; device < 2; ++device) {
          Check(cudaSetDevice(device));
          replica[device].Forward(stream[device]);
          replica[device].Backward(stream[device]);
        }
        if (replicates) {
          Check(cudaMemcpyPeerAsync(memory[0], 0, memory[1], 1, bytes, stream[1]));
        }
        Order(stream[1], stream[0]);
        Check(cudaSetDevice(0));
        Launch(reduce, stream[0]);
      });
    });

const Registered communication(
    "communication", "exchanges all gradients behind the backward pass", [](Run& run) {
      const double device_us = run.Draw(2000, 3500);
      const double exchange_us = device_us * run.Draw(0.2, 0.3);
      const Net net({.device_us = device_us, .kernels = run.DrawInt(16, 40), .op_us = 3});
      Habit& behind = run.Has("behind", "communication");
      const cudaStream_t stream = NewStream(StreamKind::kNonBlocking);
      const cudaStream_t exchange = NewStream(StreamKind::kNonBlocking);
      const void* const all_reduce =
          NewKernel("_Z34ncclDevKernel_AllReduce_Sum_f32_RING_LLP11ncclDevComm", exchange_us);
      run.Steps(stream, [&](int64_t) {
        net.Forward(stream);
        if (!behind) {  // of the last layers, while the first ones are still at it
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

}  // namespace
}  // namespace scenarios
