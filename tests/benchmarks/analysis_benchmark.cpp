// What the analysis costs beside the trace: the graph of what waited for what, its replay, the whole analysis of
// a rank, and the memory that these take, on generated runs of growing size: 40 threads that launch on streams
// of their own, or one that launches for all, with steps, copies and a wait for the device in each, or, of one more
// run, in the first alone.
//
//   cmake --preset release && cmake --build build/release --target analysis_benchmark
//   build/release/bin/analysis_benchmark              # 1, 10 and 50 million events; 12 GB of memory
//   build/release/bin/analysis_benchmark 2            # two million alone
//   build/release/bin/analysis_benchmark kineto       # a trace of the corpus, repeated until it is 474 MB of JSON
//   build/release/bin/analysis_benchmark FILE         # of that trace, stage by stage
//
// What is neither the graph nor a replay of it, steps, accounts and all rules' checks, is measured by the CPU time on
// one core as well: that is what an analysis was before it had a graph, and what the gates of 22 and 35 M events a
// second are taken to be of, since the graph's own gate is 5 M; the figure with graph and replays, a quarter of it,
// stands beside. Of a file all events count, as in its size:
// instants and the ends of arrows as well.
//
// Exit status: 0 the gates hold, 1 one does not. Each size runs in a process of its own; the fastest of three
// counts, of two for the largest.
#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "analysis/account/host_other.h"
#include "analysis/account/phase_lines.h"
#include "analysis/graph/build.h"
#include "analysis/host/host_facts.h"
#include "analysis/job/analysis.h"
#include "analysis/rule.h"
#include "analysis/saves.h"
#include "tests/benchmarks/machine_unit.h"
#include "tests/benchmarks/repeated_trace.h"
#include "trace/base/parallel.h"
#include "trace/base/spare_blocks.h"
#include "trace/build/trace_builder.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

using Clock = std::chrono::steady_clock;

// The order's gates, and what it names them against: events, edges, seconds, bytes.
constexpr double kLeastBuild = 5e6;    // events a second and core
constexpr double kLeastReplay = 50e6;  // edges a second and core
constexpr double kMostSeconds = 2.5;   // of ten million events
constexpr double kMostBytes = 60;      // an event, beyond the trace
// Events a second of CPU, without graph and replays: of 40 streams, and of a trace of PyTorch's.
constexpr double kLeastRest = 22e6;
constexpr double kLeastOfFile = 35e6;
// Columns round up to pages of 2 MiB, however small the trace.
constexpr double kPages = 64e6;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// From now on. What making the trace took is none of the analysis's.
void ForgetPeak() {
  malloc_trim(0);
  if (FILE* file = fopen("/proc/self/clear_refs", "w")) {
    fputs("5", file);
    fclose(file);
  }
}

double PeakBytes() {
  FILE* file = fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char line[256];
  long kib = 0;
  while (fgets(line, sizeof line, file) != nullptr) {
    if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
  }
  fclose(file);
  return 1024.0 * static_cast<double>(kib);
}

double ResidentBytes() {
  long pages = 0;
  long resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Steps of 200 operators (range, launch, kernel) on each of `threads` threads and their streams, a copy from and
// one to the host, and the wait for it: in each step, or in the first alone.
Trace MakeRun(size_t events, uint32_t threads, bool waits_once) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(1);
  constexpr size_t kOperators = 200;
  const size_t per_step = threads * (3 * kOperators + 5);
  const size_t steps = std::max<size_t>(20, events / per_step);
  const StringId step_name = builder.Intern("train_step");
  const StringId names[] = {builder.Intern("aten::mm"), builder.Intern("aten::add_"),
                            builder.Intern("aten::relu")};
  const StringId kernels[] = {builder.Intern("gemm_128x128"), builder.Intern("elementwise_add"),
                              builder.Intern("elementwise_relu")};
  const StringId launch = builder.Intern("cudaLaunchKernel");
  const StringId copy = builder.Intern("cudaMemcpyAsync");
  const StringId to_device = builder.Intern("Memcpy HtoD (Pinned -> Device)");
  const StringId to_host = builder.Intern("Memcpy DtoH (Device -> Pageable)");
  const StringId sync = builder.Intern("cudaStreamSynchronize");
  int64_t correlation = 0;
  for (uint32_t t = 0; t < threads; ++t) {
    const TrackId thread = builder.FindOrAddThread(process, 100 + t);
    const TrackId stream = builder.FindOrAddStream(process, 0, 7 + t);
    int64_t host = 1000 + 10 * t;
    int64_t gpu = 0;
    const auto run = [&](StringId name, int64_t from, int64_t ns, DeviceOpKind kind,
                         CopyDirection direction, int64_t bytes) {
      const int64_t begin = std::max(gpu + 1200, from + 5000);
      gpu = begin + ns;
      builder.AddDeviceOp({{begin}, {gpu}, name, stream}, kind, direction, bytes, correlation, {});
    };
    for (size_t step = 0; step < steps; ++step) {
      const int64_t begin = host;
      const auto call = [&](StringId name, ApiKind kind, int64_t ns) {
        ++correlation;
        builder.AddApi({{host}, {host + ns}, name, thread}, kind, correlation);
        host += ns;
      };
      call(copy, ApiKind::kCopy, 4000);
      run(to_device, host - 4000, 90'000, DeviceOpKind::kCopy, CopyDirection::kHostToDevice,
          1 << 20);
      for (size_t op = 0; op < kOperators; ++op) {
        const int64_t from = host;
        host += 2500;
        call(launch, ApiKind::kLaunch, 2500);
        builder.AddRange({{from}, {host + 500}, names[op % 3], thread}, RangeKind::kCpuOp);
        run(kernels[op % 3], host - 2500, static_cast<int64_t>(2000 + 1000 * (op % 7)),
            DeviceOpKind::kKernel, CopyDirection::kUnknown, 0);
        host += 1000;
      }
      call(copy, ApiKind::kCopy, 4000);
      run(to_host, host - 4000, 2000, DeviceOpKind::kCopy, CopyDirection::kDeviceToHost, 4);
      if (step == 0 || !waits_once) {
        call(sync, ApiKind::kSync, std::max<int64_t>(2000, gpu + 6000 - host));
      }
      if (t == 0) {
        builder.AddRange({{begin}, {host}, step_name, thread}, RangeKind::kUserAnnotation);
      }
      host += 20'000;
    }
  }
  return std::move(builder).Build();
}

struct Figures {
  double build = 0;
  double replay = 0;
  double whole = 0;
  double user = 0;    // of `whole`, on all cores
  double kernel = 0;  // the same: pages that are asked for and cleared, mostly
};

// What all threads of the process used of the CPU so far.
Figures CpuSoFar() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {0, 0, 0, seconds(use.ru_utime), seconds(use.ru_stime)};
}

// From now on this thread, and those that it starts, have one core: two that share what a processor has, its caches
// and often more, take longer each.
void KeepToOneCore() {
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(static_cast<size_t>(std::max(0, sched_getcpu())), &core);
  sched_setaffinity(0, sizeof core, &core);
}

// CPU time of all that is neither the graph nor a replay, on one core, of each stage the least of so many rounds. As
// RankModel and Examine() do it, one thing behind the other.
class Stages {
 public:
  Stages(const Trace& trace, int rounds) {
    const RankModel model(trace);
    KeepToOneCore();
    for (int round = 0; round < rounds; ++round) Run(trace, model);
  }

  double Seconds() const {
    double sum = 0;
    for (const auto& [name, seconds] : stages_) sum += seconds;
    return sum;
  }
  void Print() const {
    constexpr double kLeastShare = 0.01;  // of all
    for (const auto& [name, seconds] : stages_) {
      const double share = seconds / Seconds();
      if (share >= kLeastShare)
        fmt::print("  {:24} {:7.2f} ms {:5.1f} %\n", name, 1e3 * seconds, 100 * share);
    }
  }

 private:
  void Run(const Trace& trace, const RankModel& model) {
    next_ = 0;
    begin_ = SoFar();
    DeviceRows rows(trace);
    const Steps steps = FindSteps(trace, rows);
    Add("steps");
    const std::vector<bool> blocking = FindBlockingCalls(trace);
    const std::vector<CopyCall> copies = FindCopyCalls(trace, steps.window, blocking);
    const std::vector<CopyCall> saved = FindSavedCopies(model);
    const std::vector<bool> feeders = FindFeeders(trace, steps);
    Add("calls that wait");
    const ThreadActivities activities(trace, blocking);
    const HostAccount host = AccountHost(trace, steps);
    Add("host's account");
    const OtherTime other = OpenOther(trace, steps, host);
    const std::vector<PhaseLines> lines = OpenByLine(trace, steps, host);
    Add("host's phases opened");
    const std::vector<HostFact> facts = FindHostFacts(trace, steps);
    Add("host's facts");
    const std::vector<DeviceAccount> devices =
        AccountDevices(trace, steps, activities, *model.graph, rows);
    Add("devices' accounts");
    std::vector<Finding> findings;
    for (const RegisteredRule& entry : AllRules()) {
      const RuleOutcome outcome = entry.rule->check != nullptr
                                      ? entry.rule->check(model)
                                      : entry.rule->check_rest(model, findings);
      if (const auto* found = std::get_if<std::vector<Diagnosis>>(&outcome)) {
        for (const Diagnosis& diagnosis : *found) findings.push_back(diagnosis.finding);
      }
      Add(entry.slug);
    }
  }
  static double SoFar() {
    const Figures figures = CpuSoFar();
    return figures.user + figures.kernel;
  }
  // What there was since the last one.
  void Add(std::string_view name) {
    const double now = SoFar();
    if (next_ == stages_.size()) stages_.emplace_back(name, now - begin_);
    stages_[next_].second = std::min(stages_[next_].second, now - begin_);
    ++next_;
    begin_ = now;
  }

  std::vector<std::pair<std::string, double>> stages_;
  size_t next_ = 0;
  double begin_ = 0;
};

size_t EventsOf(const Trace& trace) {
  return trace.ranges.size() + trace.api.size() + trace.device_ops.size();
}

// CPU time of a whole analysis, on all cores.
double WholeSeconds(const Trace& trace) {
  const Figures before = CpuSoFar();
  const RankAnalysis analysis = Analyze(trace);
  const Figures after = CpuSoFar();
  return after.user + after.kernel - before.user - before.kernel;
}

int MeasureFile(const std::string& path, double slowness) {
  constexpr int kRounds = 20;
  const Result<Trace> imported = ImportTrace(path);
  if (!imported.ok()) {
    fmt::print(stderr, "analysis_benchmark: {}\n", imported.error());
    return 2;
  }
  const Trace& trace = imported.value();
  const auto events = static_cast<double>(EventsOf(trace) + trace.syncs.size() +
                                          trace.instants.size() + trace.flows.size());
  double whole = 1e9;
  for (int round = 0; round < 3; ++round) whole = std::min(whole, WholeSeconds(trace));
  const Stages stages(trace, kRounds);
  const double rate = events / stages.Seconds();
  const double least = kLeastOfFile / slowness;
  fmt::print("{}: {:.0f} events, {:.0f} of them ranges, calls and operations\n", path, events,
             static_cast<double>(EventsOf(trace)));
  stages.Print();
  fmt::print(
      "without graph and replays {:.1f} M events/s a core ({:.2f} of {:.1f}), with all of them {:.1f}\n",
      rate * 1e-6, rate / least, least * 1e-6, events / whole * 1e-6);
  return rate >= least ? 0 : 1;
}

int MeasureRepeated(double slowness) {
  setenv("TRAINPROF_BENCHMARK_MB", "474", 0);
  const RepeatedTrace file;
  if (file.path().empty()) {
    fmt::print(stderr, "analysis_benchmark: the repeated trace cannot be written\n");
    return 2;
  }
  return MeasureFile(file.path(), slowness);
}

bool Measure(size_t events, uint32_t threads, bool waits_once, int rounds, double slowness) {
  const Trace trace = MakeRun(events, threads, waits_once);
  const auto count = static_cast<double>(EventsOf(trace));
  const Steps steps = FindSteps(trace);
  const std::vector<bool> blocking = FindBlockingCalls(trace);
  ForgetPeak();
  const double resident = ResidentBytes();
  Figures best{1e9, 1e9, 1e9, 0, 0};
  double edges = 0;
  for (int round = 0; round < rounds; ++round) {
    {
      auto begin = Clock::now();
      const Graph graph = BuildGraph(trace, steps, blocking);
      best.build = std::min(best.build, SecondsSince(begin));
      begin = Clock::now();
      const std::vector<int64_t> ends = Replay(graph, graph.recorded);
      best.replay = std::min(best.replay, SecondsSince(begin));
      edges = static_cast<double>(graph.from.size());
    }
    const Figures before = CpuSoFar();
    const auto begin = Clock::now();
    const RankAnalysis analysis = Analyze(trace);
    const double whole = SecondsSince(begin);
    if (whole >= best.whole) continue;
    const Figures after = CpuSoFar();
    best.whole = whole;
    best.user = after.user - before.user;
    best.kernel = after.kernel - before.kernel;
  }
  const double bytes = std::max(0.0, PeakBytes() - resident - kPages) / count;
  const double rest = count / Stages(trace, rounds).Seconds();
  const double least_build = kLeastBuild / slowness;
  const double least_replay = kLeastReplay / slowness;
  const double least_rest = kLeastRest / slowness;
  const double expected = kMostSeconds * slowness * count / 10e6;
  fmt::print(
      "{:5.1f} M events, {:2} threads{}: graph {:5.1f} M events/s ({:.1f}x the gate), replay {:4.0f} M edges/s "
      "({:.1f}x), analysis {:6.2f} s ({:.2f} of {:.2f} s; CPU: {:.2f} s and {:.2f} s in the kernel), {:3.0f} B/event beyond the trace and 64 MB ({:.2f} of {:.0f}), without graph and replays {:.1f} M events/s a core ({:.2f} of {:.1f}), with all of them {:.1f}\n",
      count * 1e-6, threads, waits_once ? ", one wait" : "", count / best.build * 1e-6,
      count / best.build / least_build, edges / best.replay * 1e-6,
      edges / best.replay / least_replay, best.whole, best.whole / expected, expected, best.user,
      best.kernel, bytes, bytes / kMostBytes, kMostBytes, rest * 1e-6, rest / least_rest,
      least_rest * 1e-6, count / (best.user + best.kernel) * 1e-6);
  return count / best.build >= least_build && edges / best.replay >= least_replay &&
         best.whole <= expected && bytes <= kMostBytes && (threads == 1 || rest >= least_rest);
}

bool MeasureApart(size_t events, uint32_t threads, bool waits_once, int rounds, double slowness) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const bool holds = Measure(events, threads, waits_once, rounds, slowness);
    fflush(stdout);
    _exit(holds ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace
}  // namespace trainprof

int main(int argc, char** argv) {
  trainprof::ShareOneHeap();
  trainprof::KeepSpareBlocks();  // as the programs do
  std::vector<double> millions = {1, 10, 50};
  const double slowness = trainprof::Slowness();
  if (argc > 1 && argv[1] == std::string_view("kineto"))
    return trainprof::MeasureRepeated(slowness);
  if (argc > 1 && std::atof(argv[1]) <= 0) return trainprof::MeasureFile(argv[1], slowness);
  if (argc > 1) millions = {std::atof(argv[1])};
  bool holds = true;
  for (const double size : millions) {
    const auto events = static_cast<size_t>(size * 1e6);
    const int rounds = size > 20 ? 2 : 3;
    for (const uint32_t threads : {1u, 40u}) {
      holds = trainprof::MeasureApart(events, threads, false, rounds, slowness) && holds;
    }
    holds = trainprof::MeasureApart(events, 1, true, rounds, slowness) && holds;
  }
  fmt::print("gates: {}\n", holds ? "hold" : "FAIL");
  return holds ? 0 : 1;
}
