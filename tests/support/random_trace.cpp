// See random_trace.h.
#include "tests/support/random_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trace/base/kernel_names.h"
#include "trace/build/trace_builder.h"
#include "trace/formats/chrome/kineto_words.h"
#include "trace/formats/chrome/stack_text.h"

namespace trainprof {
namespace {

// Around the thresholds of the law: 1 us of rounding, 20 us of hand-over, 1 ms of silence. In us.
constexpr int64_t kLengths[] = {0,   1,    1,    2,    3,    5,    8,    12,  19,  20,
                                21,  22,   30,   40,   60,   100,  250,  500, 980, 998,
                                999, 1000, 1001, 1002, 1020, 1500, 2100, 3000};
constexpr int64_t kLate = 5'000;  // us that an operation may be queued behind others

struct Draw {
  Random random;
  const RandomTraceOptions& options;
  TraceEvents out;
  size_t budget = 0;
  int64_t next_correlation = 1;
  std::vector<int64_t> tails;  // ns, when a stream's last operation ends; by device and stream

  int64_t Length() {
    const int64_t us = random.Of(kLengths);
    if (options.whole_microseconds) return us * 1000;
    return us * 1000 + (random.Chance(50) ? random.Between(0, 999) : 0);
  }
  int64_t ShortLength() { return std::min<int64_t>(Length(), 30'000); }
  bool Spent() const { return out.size() >= budget; }

  void AddRange(int thread, int64_t begin, int64_t end, RangeKind kind, std::string name) {
    out.ranges.push_back({thread, {{begin}, {end}}, kind, std::move(name)});
  }
  int64_t AddCall(int thread, int64_t begin, int64_t end, std::string name, int64_t correlation) {
    out.calls.push_back({thread, {{begin}, {end}}, std::move(name), correlation});
    return end;
  }

  int64_t Host(int thread, int64_t at, int depth);
  int64_t Enclosing(int thread, int64_t at, int depth);
  int64_t LaunchCall(int thread, int64_t at);
  int64_t CopyCall(int thread, int64_t at);
  int64_t SyncCall(int thread, int64_t at);
  int64_t DeviceWork(int64_t at, int64_t correlation);
  void AddPartOf(const OpEvent& op);
  Interval OnStream(OpEvent& op, int64_t earliest);
  void Thread(int thread, int step_count);
  void Disorder();
  void Cross();
};

// An operation's place: after its stream's others (most often), some time after its launch.
Interval Draw::OnStream(OpEvent& op, int64_t earliest) {
  op.device = static_cast<int>(random.Between(0, out.devices - 1));
  op.stream = static_cast<int>(random.Between(0, out.streams - 1));
  int64_t& tail = tails[op.device * out.streams + op.stream];
  int64_t begin = earliest + (random.Chance(60) ? ShortLength() : Length());
  if (tail > begin && tail - begin < kLate * 1000 && !random.Chance(8)) {
    begin = tail + (random.Chance(70) ? random.Between(0, 3) * 1000 : ShortLength());
  }
  const Interval place{{begin}, {begin + Length()}};
  tail = std::max(tail, place.end.ns);
  return place;
}

// A kernel or memset; the end of the operation.
int64_t Draw::DeviceWork(int64_t at, int64_t correlation) {
  constexpr const char* kKernels[] = {"gemm", "ampere_sgemm_128x64_tn", "elementwise",
                                      "ncclDevKernel_AllReduce"};
  OpEvent op{.correlation = correlation};
  op.kind = random.Chance(88) ? DeviceOpKind::kKernel : DeviceOpKind::kMemset;
  op.name = op.kind == DeviceOpKind::kKernel ? random.Of(kKernels) : "Memset (Device)";
  op.interval = OnStream(op, at);
  out.ops.push_back(op);
  if (IsCommunicationKernel(op.name) && out.devices > 1 && random.Chance(50)) AddPartOf(op);
  return op.interval.end.ns;
}

// The same collective on another device: it ends with it, or hardly later.
void Draw::AddPartOf(const OpEvent& op) {
  OpEvent part = op;
  part.device = (op.device + 1) % out.devices;
  part.interval.end.ns += random.Between(-25, 25) * 1000;
  part.interval.begin.ns = std::max<int64_t>(
      0, std::min(part.interval.end.ns, part.interval.begin.ns + random.Between(-9, 9) * 10'000));
  int64_t& tail = tails[part.device * out.streams + part.stream];
  tail = std::max(tail, part.interval.end.ns);
  out.ops.push_back(std::move(part));
}

int64_t Draw::LaunchCall(int thread, int64_t at) {
  const int64_t correlation = next_correlation++;
  const int64_t end = at + ShortLength();
  const bool graph = random.Chance(15);
  const int64_t nodes = graph ? random.Between(2, 5) : random.Chance(97) ? 1 : 0;
  const int64_t from = random.Chance(50) ? at : end;
  for (int64_t n = 0; n < nodes; ++n) DeviceWork(from, correlation);
  return AddCall(thread, at, end, graph ? "cudaGraphLaunch" : "cudaLaunchKernel", correlation);
}

// A copy; one call in two ends with its copy, within the rounding or just outside.
int64_t Draw::CopyCall(int thread, int64_t at) {
  constexpr CopyDirection kDirections[] = {
      CopyDirection::kHostToDevice, CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost,
      CopyDirection::kDeviceToDevice, CopyDirection::kUnknown};
  constexpr int64_t kBytes[] = {0,       4,       4'000,         64 << 10, (64 << 10) + 1,
                                500'001, 4 << 20, (4 << 20) + 1, 64 << 20};
  constexpr const char* kNames[] = {"Memcpy", "Memcpy (Pinned)", "Memcpy (Pageable)"};
  OpEvent op{.kind = DeviceOpKind::kCopy, .correlation = next_correlation++};
  op.name = random.Of(kNames);
  op.direction = random.Of(kDirections);
  op.bytes = random.Of(kBytes);
  op.interval = OnStream(op, at);
  const int64_t with_copy = op.interval.end.ns + random.Between(-2, 2) * 1000;
  const int64_t end = random.Chance(50) ? std::max(at, with_copy) : at + ShortLength();
  AddCall(thread, at, end, "cudaMemcpyAsync", op.correlation);
  out.ops.push_back(std::move(op));
  return end;
}

int64_t Draw::SyncCall(int thread, int64_t at) {
  const int64_t drained = *std::max_element(tails.begin(), tails.end());
  int64_t end = at + Length();
  if (drained >= at && random.Chance(70)) {
    end = std::max(at, drained + (random.Chance(70) ? random.Between(-2, 8) * 1000 : Length()));
  }
  const int64_t correlation = next_correlation++;
  const bool whole = correlation % 4 == 0;
  return AddCall(thread, at, end, whole ? "cudaDeviceSynchronize" : "cudaStreamSynchronize",
                 correlation);
}

// A range with more in it.
int64_t Draw::Enclosing(int thread, int64_t at, int depth) {
  struct Kind {
    RangeKind kind;
    const char* name;
  };
  constexpr Kind kKinds[] = {
      {RangeKind::kUserAnnotation, "data_wait"},
      {RangeKind::kUserAnnotation, "enumerate(DataLoader)#_SingleProcess.__next__"},
      {RangeKind::kCpuOp, "enumerate(DataLoader)#_MultiProcess.__next__"},
      {RangeKind::kUserAnnotation, "forward"},
      {RangeKind::kUserAnnotation, "backward"},
      {RangeKind::kUserAnnotation, "h2d"},
      {RangeKind::kUserAnnotation, "Optimizer.step#SGD.step"},
      {RangeKind::kUserAnnotation, "c10d::all_reduce"},
      {RangeKind::kUserAnnotation, "epoch"},
      {RangeKind::kCpuOp, "aten::linear"},
      {RangeKind::kCpuOp, "aten::add"},
      {RangeKind::kCpuOp, "autograd::engine::evaluate_function: AddmmBackward0"},
      {RangeKind::kGpuAnnotation, "forward"},
      {RangeKind::kOther, "Trace"},
      {RangeKind::kOverhead, "Activity Buffer Request"},
      {RangeKind::kUserAnnotation, "torch.save"},
      {RangeKind::kUserAnnotation, "save_checkpoint"},
      {RangeKind::kUserAnnotation, "gc.collect"},
      {RangeKind::kPythonFunction, "train.py(12): batch"},
      {RangeKind::kPythonFunction, "nn.Module: Linear_0"},
      {RangeKind::kPythonFunction, "torch/utils/checkpoint.py(493): checkpoint"},
      {RangeKind::kPythonFunction, "torch/serialization.py(620): save"},
  };
  constexpr size_t kPython = 5;  // Python and its garbage collection, the last ones
  const size_t kinds = std::size(kKinds) - (options.python ? 0 : kPython);
  const Kind& kind = kKinds[random.Between(0, static_cast<int64_t>(kinds) - 1)];
  int64_t end = at;
  const size_t slot = out.ranges.size();
  AddRange(thread, at, at, kind.kind, kind.name);
  if (random.Chance(40)) end += Length();
  for (int64_t n = random.Between(0, 4); n > 0 && !Spent(); --n) end = Host(thread, end, depth + 1);
  if (random.Chance(40)) end += Length();
  out.ranges[slot].interval.end = {end};
  return end;
}

// One event of a thread with what it contains; its end.
int64_t Draw::Host(int thread, int64_t at, int depth) {
  if (random.Chance(45)) at += Length();
  const int64_t what = random.Between(0, 99);
  if (what < 40) return LaunchCall(thread, at);
  if (what < 50) return CopyCall(thread, at);
  if (what < 59) return SyncCall(thread, at);
  if (what < 66) {
    constexpr const char* kCalls[] = {"cudaMalloc", "cudaFree", "cudaHostAlloc"};
    return AddCall(thread, at, at + Length(), random.Of(kCalls), next_correlation++);
  }
  if (what < 70) {
    constexpr const char* kCalls[] = {"cudaEventQuery", "cudaGetDevice", "cudaStreamWaitEvent"};
    return AddCall(thread, at, at + Length(), random.Of(kCalls), next_correlation++);
  }
  if (depth >= 4) return at + Length();
  return Enclosing(thread, at, depth);
}

void Draw::Thread(int thread, int step_count) {
  int64_t at = Length();
  const bool profiler_steps = random.Chance(50);
  for (int step = 0; step < step_count; ++step) {
    const int64_t begin = at;
    const std::string name = profiler_steps ? fmt::format("ProfilerStep#{}", step + 3) : "step";
    const size_t slot = out.ranges.size();
    AddRange(thread, begin, begin, RangeKind::kUserAnnotation, name);
    for (int64_t n = random.Between(0, 8); n > 0 && !Spent(); --n) at = Host(thread, at, 0);
    at = std::max(at, begin + 1000) + (random.Chance(50) ? Length() : 0);
    out.ranges[slot].interval.end = {at};
    if (random.Chance(30) && !Spent()) at = Host(thread, at, 0);  // between steps
    if (random.Chance(60)) at += Length();
  }
  const size_t share = budget / static_cast<size_t>(out.threads);
  for (size_t before = out.size(); !Spent() && out.size() < before + share;) {
    at = Host(thread, at, 0);
    if (step_count > 0 && random.Chance(25)) break;
  }
}

// Lost launches, operations without an id, operations that a skewed clock moved.
void Draw::Disorder() {
  std::erase_if(out.calls, [&](const CallEvent&) { return random.Chance(4); });
  const int lost = random.Chance(30) ? 25 : 3;
  for (OpEvent& op : out.ops) {
    if (random.Chance(lost)) op.correlation = kNoCorrelation;
    if (random.Chance(4)) {
      const int64_t shift = std::max(-op.interval.begin.ns, random.Of(kLengths) * -1000);
      op.interval.begin.ns += shift;
      op.interval.end.ns += shift;
    }
  }
}

// Host events that overlap without nesting, and step ranges that do.
void Draw::Cross() {
  for (RangeEvent& range : out.ranges) {
    if (random.Chance(10)) range.interval.end.ns += Length();
  }
  for (CallEvent& call : out.calls) {
    if (random.Chance(5))
      call.interval.begin.ns = std::max<int64_t>(0, call.interval.begin.ns - Length());
  }
}

// Streams keep their order, as real ones do: each operation begins behind the last. Drawn waits end
// at any time, so that none may claim to have waited for the whole device.
TraceEvents InOrder(TraceEvents events) {
  for (CallEvent& call : events.calls) {
    if (call.name == "cudaDeviceSynchronize") call.name = "cudaStreamSynchronize";
  }
  std::map<int64_t, int64_t> launched;
  for (const CallEvent& call : events.calls) launched[call.correlation] = call.interval.begin.ns;
  std::stable_sort(events.ops.begin(), events.ops.end(), [&](const OpEvent& a, const OpEvent& b) {
    return launched[a.correlation] < launched[b.correlation];
  });
  std::map<std::pair<int, int>, int64_t> tails;
  for (OpEvent& op : events.ops) {
    int64_t& tail = tails[{op.device, op.stream}];
    const int64_t length = op.interval.Length().ns;
    op.interval.begin.ns = std::max({op.interval.begin.ns, tail, launched[op.correlation]});
    op.interval.end.ns = tail = op.interval.begin.ns + length;
  }
  return events;
}

}  // namespace

TraceEvents DrawTrace(uint64_t seed, const RandomTraceOptions& options) {
  Draw draw{.random = Random(seed), .options = options, .out = {}, .tails = {}};
  Random& random = draw.random;
  draw.out.threads = static_cast<int>(random.Between(1, options.most_threads));
  draw.out.devices = random.Chance(70) ? 1 : options.most_devices;
  draw.out.streams = static_cast<int>(random.Between(1, 3));
  draw.tails.assign(draw.out.devices * draw.out.streams, 0);
  const int64_t most = options.most_events;
  draw.budget = static_cast<size_t>(random.Between(0, random.Chance(20) ? most / 10 : most));
  const int stepping = static_cast<int>(random.Between(0, draw.out.threads - 1));
  const int64_t steps = random.Between(options.least_steps, options.most_steps);
  for (int thread = 0; thread < draw.out.threads; ++thread) {
    draw.Thread(thread, thread == stepping ? static_cast<int>(steps) : 0);
  }
  if (options.disorder && random.Chance(70)) draw.Disorder();
  if (!options.nested) draw.Cross();
  return options.in_order ? InOrder(std::move(draw.out)) : std::move(draw.out);
}

Trace BuildTrace(const TraceEvents& events) {
  TraceBuilder builder;
  StackTexts stacks(builder);
  const ProcessId process = builder.FindOrAddProcess(100);
  std::vector<TrackId> threads;
  for (int t = 0; t < events.threads; ++t) {
    threads.push_back(builder.FindOrAddThread(process, 100 + t));
  }
  std::vector<TrackId> streams;
  for (int d = 0; d < events.devices; ++d) {
    builder.device(builder.FindOrAddDevice(d)).compute_major = 8;  // has tensor cores
    for (int s = 0; s < events.streams; ++s) {
      streams.push_back(builder.FindOrAddStream(process, d, 7 + s));
    }
  }
  const auto event = [&](const Interval& interval, const std::string& name, TrackId track) {
    return Event{
        .begin = interval.begin, .end = interval.end, .name = builder.Intern(name), .track = track};
  };
  for (const RangeEvent& range : events.ranges) {
    Event row = event(range.interval, range.name, threads[range.thread]);
    if (range.kind == RangeKind::kPythonFunction) row.stack = stacks.OfFrame(row.name);
    builder.AddRange(row, range.kind);
  }
  for (const CallEvent& call : events.calls) {
    builder.AddApi(event(call.interval, call.name, threads[call.thread]), ApiKindOf(call.name),
                   call.correlation);
  }
  for (const OpEvent& op : events.ops) {
    const TrackId stream = streams[op.device * events.streams + op.stream];
    const auto [source, target] = MemoryKindsOf(op.name);
    builder.AddDeviceOp(event(op.interval, op.name, stream), op.kind, op.direction, op.bytes,
                        op.correlation, {source, target});
  }
  return std::move(builder).Build();
}

namespace {

// Tries to leave out each stretch of `length` of one list; whether any could go.
template <class T>
bool ShrinkList(TraceEvents& events, std::vector<T> TraceEvents::*list, size_t length,
                const std::function<bool(const TraceEvents&)>& fails) {
  bool shrunk = false;
  for (size_t at = 0; at < (events.*list).size();) {
    TraceEvents less = events;
    auto& items = less.*list;
    items.erase(items.begin() + at, items.begin() + std::min(at + length, items.size()));
    if (fails(less)) {
      events = std::move(less);
      shrunk = true;
    } else {
      at += length;
    }
  }
  return shrunk;
}

}  // namespace

TraceEvents Shrink(TraceEvents events, const std::function<bool(const TraceEvents&)>& fails) {
  for (size_t length = 32; length > 0;) {
    bool shrunk = ShrinkList(events, &TraceEvents::ops, length, fails);
    shrunk = ShrinkList(events, &TraceEvents::calls, length, fails) || shrunk;
    shrunk = ShrinkList(events, &TraceEvents::ranges, length, fails) || shrunk;
    if (!shrunk || length > 1) length /= 2;
  }
  return events;
}

std::string ToText(const TraceEvents& events) {
  std::string text;
  for (const RangeEvent& r : events.ranges) {
    text += fmt::format("range  thread {}  [{}, {})  kind {}  {}\n", r.thread, r.interval.begin.ns,
                        r.interval.end.ns, static_cast<int>(r.kind), r.name);
  }
  for (const CallEvent& c : events.calls) {
    text += fmt::format("call   thread {}  [{}, {})  {}  id {}\n", c.thread, c.interval.begin.ns,
                        c.interval.end.ns, c.name, c.correlation);
  }
  for (const OpEvent& o : events.ops) {
    text += fmt::format("op     device {} stream {}  [{}, {})  {}  {} bytes  direction {}  id {}\n",
                        o.device, o.stream, o.interval.begin.ns, o.interval.end.ns, o.name, o.bytes,
                        static_cast<int>(o.direction), o.correlation);
  }
  return text;
}

}  // namespace trainprof
