#include "tests/analysis/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

class Simulator {
 public:
  Simulator(const RandomProgram& program, const Tweak& tweak) : program_(program), tweak_(tweak) {
    const ProcessId process = builder_.FindOrAddProcess(1);
    thread_ = builder_.FindOrAddThread(process, 1);
    for (int s = 0; s < program.streams; ++s) {
      streams_.push_back({builder_.FindOrAddStream(process, 0, 7 + s), 0, 0, 0, 0});
    }
  }

  Simulation Run() && {
    Simulation simulation;
    int number = 0;
    for (const auto& step : program_.steps) {
      const int64_t begin = now_;
      for (const Action& action : step) Do(action);
      Work(kCallNs);
      AddRange(fmt::format("ProfilerStep#{}", number++), begin);
    }
    builder_.trace().source = SourceKind::kKineto;
    simulation.trace = std::move(builder_).Build();
    return simulation;
  }

 private:
  struct Stream {
    TrackId track;
    int64_t end = 0;         // of what was launched last
    int64_t not_before = 0;  // for events it waits for
    int64_t event = 0;       // when the event recorded last is reached
    int64_t record = 0;      // the call that recorded it; 0: none
  };

  void Work(int64_t ns) { now_ += ns; }

  void AddRange(const std::string& name, int64_t begin) {
    builder_.AddRange({.begin = TraceTime{begin},
                       .end = TraceTime{now_},
                       .name = builder_.Intern(name),
                       .track = thread_},
                      RangeKind::kUserAnnotation);
  }
  int64_t AddCall(const char* name, int64_t begin) {
    builder_.AddApi({.begin = TraceTime{begin},
                     .end = TraceTime{now_},
                     .name = builder_.Intern(name),
                     .track = thread_},
                    ApiKindOf(name), ++correlation_);
    return correlation_;
  }
  void AddSync(const Stream& stream, SyncKind kind, int64_t begin, int64_t awaited,
               int64_t record) {
    const Event event{.begin = TraceTime{begin},
                      .end = TraceTime{now_},
                      .name = builder_.Intern(Name(kind)),
                      .track = stream.track};
    builder_.AddRow(builder_.trace().syncs, event, kEmptyString, correlation_, kind, int64_t{1},
                    kNoCorrelation, awaited, kNoCorrelation, record, kNoCorrelation);
  }

  // When the operation of a call that began now begins.
  int64_t StartOf(const Stream& stream) const {
    int64_t start = now_ + kLatencyNs;
    if (stream.end > 0) start = std::max(start, stream.end + kGapNs);
    if (stream.not_before > 0) start = std::max(start, stream.not_before + kGapNs);
    return start;
  }

  void Launch(Stream& stream, const Action& action, DeviceOpKind kind, const char* call,
              const char* name, CopyDirection direction) {
    int64_t start = StartOf(stream);
    // One engine copies in each direction.
    int64_t& engine = engine_ends_[direction == CopyDirection::kDeviceToHost ? 1 : 0];
    if (kind == DeviceOpKind::kCopy) start = std::max(start, engine);
    const int64_t begin = now_;
    stream.not_before = 0;
    stream.end = start + action.ns;
    if (kind == DeviceOpKind::kCopy) engine = stream.end;
    device_end_ = std::max(device_end_, stream.end);
    now_ += kCallNs;
    const bool waits = direction == CopyDirection::kDeviceToHost && tweak_.waits;
    if (waits) now_ = std::max(begin + kCallNs, stream.end + kWakeNs);
    AddCall(call, begin);
    DeviceOpDetails details;
    if (waits) details.target = MemoryKind::kPageable;
    builder_.AddDeviceOp({.begin = TraceTime{start},
                          .end = TraceTime{stream.end},
                          .name = builder_.Intern(name),
                          .track = stream.track},
                         kind, direction, kind == DeviceOpKind::kCopy ? 1 << 20 : 0, correlation_,
                         details);
  }

  // A call that waits until the device has reached `target`.
  void Wait(const char* call, const Stream& stream, SyncKind kind, int64_t target) {
    const int64_t begin = now_;
    if (!tweak_.waits || target <= now_) {
      now_ += kCallNs;
    } else {
      now_ = std::max(now_ + kCallNs, target + kWakeNs);
    }
    AddCall(call, begin);
    AddSync(stream, kind, begin, kNoCorrelation, kNoCorrelation);
  }

  void Do(const Action& action) {
    Stream& stream = streams_[static_cast<size_t>(action.stream)];
    Stream& other = streams_[static_cast<size_t>(action.other)];
    switch (action.does) {
      case Does::kWork:
        return Work(action.ns);
      case Does::kLaunch:
        return Launch(stream, action, DeviceOpKind::kKernel, "cudaLaunchKernel", "kernel",
                      CopyDirection::kUnknown);
      case Does::kCopyIn:
        return Launch(stream, action, DeviceOpKind::kCopy, "cudaMemcpyAsync",
                      "Memcpy HtoD (Pinned -> Device)", CopyDirection::kHostToDevice);
      case Does::kCopyOut:
        return Launch(stream, action, DeviceOpKind::kCopy, "cudaMemcpyAsync",
                      "Memcpy DtoH (Device -> Pageable)", CopyDirection::kDeviceToHost);
      case Does::kSyncStream:
        return Wait("cudaStreamSynchronize", stream, SyncKind::kStream, stream.end);
      case Does::kSyncDevice:
        return Wait("cudaDeviceSynchronize", stream, SyncKind::kContext, device_end_);
      case Does::kRecordEvent: {
        const int64_t begin = now_;
        Work(kCallNs);
        stream.event = stream.end;
        stream.record = AddCall("cudaEventRecord", begin);
        return;
      }
      case Does::kWaitEvent: {
        if (other.record == 0 || &other == &stream) return;
        const int64_t begin = now_;
        Work(kCallNs);
        if (tweak_.events) stream.not_before = std::max(stream.not_before, other.event);
        AddCall("cudaStreamWaitEvent", begin);
        AddSync(stream, SyncKind::kStreamWaits, begin, 7 + action.other, other.record);
        return;
      }
      case Does::kInput: {
        if (!tweak_.inputs) return;
        const int64_t begin = now_;
        Work(action.ns);
        AddRange("data_wait", begin);
        return;
      }
    }
  }

  const RandomProgram& program_;
  const Tweak tweak_;
  TraceBuilder builder_;
  TrackId thread_{};
  std::vector<Stream> streams_;
  int64_t now_ = 100'000;
  int64_t device_end_ = 0;
  int64_t engine_ends_[2] = {0, 0};
  int64_t correlation_ = 0;
};

}  // namespace

RandomProgram DrawProgram(Random& random) {
  RandomProgram program;
  program.streams = static_cast<int>(random.Between(1, 3));
  const int64_t steps = random.Between(4, 12);
  const int64_t actions = random.Between(3, 14);
  std::vector<Action> loop;
  const auto stream = [&] { return static_cast<int>(random.Between(0, program.streams - 1)); };
  for (int64_t i = 0; i < actions; ++i) {
    constexpr Does kChoices[] = {Does::kLaunch,     Does::kLaunch,     Does::kLaunch,
                                 Does::kWork,       Does::kCopyIn,     Does::kCopyOut,
                                 Does::kSyncStream, Does::kSyncDevice, Does::kRecordEvent,
                                 Does::kWaitEvent,  Does::kInput};
    Action action;
    action.does = random.Of(kChoices);
    action.stream = stream();
    action.other = stream();
    action.ns = random.Between(1, random.Chance(30) ? 2'000'000 : 60'000);
    loop.push_back(action);
  }
  // Each step does the same, with other times.
  for (int64_t step = 0; step < steps; ++step) {
    program.steps.push_back(loop);
    for (Action& action : program.steps.back()) {
      action.ns = std::max<int64_t>(1, action.ns * random.Between(80, 120) / 100);
    }
    // Something to learn from, and an operation whose end is the step's.
    program.steps.back().push_back({Does::kLaunch, 0, 0, random.Between(1000, 50'000)});
  }
  return program;
}

Simulation Simulate(const RandomProgram& program, const Tweak& tweak) {
  return Simulator(program, tweak).Run();
}

}  // namespace trainprof
