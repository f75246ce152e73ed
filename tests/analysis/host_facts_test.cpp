#include "analysis/host/host_facts.h"

#include <gtest/gtest.h>

#include "analysis/model.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

// Counters of a host in ms; the window is 100 to 1100 ms, ten steps.
class HostFacts : public ::testing::Test {
 protected:
  HostFacts() {
    for (int i = 0; i < 10; ++i) {
      const Interval span = At(100 + i * 100);
      steps_.steps.push_back({.range = span, .span = span, .device = span});
    }
    steps_.window = IntervalSet::Union({{Ms(100), Ms(1100)}});
  }
  static TraceTime Ms(int64_t ms) { return TraceTime{ms * 1'000'000}; }
  static Interval At(int64_t ms) { return {Ms(ms), Ms(ms + 100)}; }

  struct Value {
    const char* series;
    double value;
  };
  void Add(int64_t ms, const char* counter, std::initializer_list<Value> values, int64_t pid = 1,
           const char* category = "host") {
    std::vector<Arg> args;
    for (const Value& value : values) {
      args.push_back(
          {builder_.Intern(value.series), {.type = ArgValue::Type::kDouble, .real = value.value}});
    }
    const ProcessId process = builder_.FindOrAddProcess(pid);
    builder_.process(process).name = builder_.Intern("python");
    builder_.AddCounter({.begin = Ms(ms),
                         .end = Ms(ms),
                         .name = builder_.Intern(counter),
                         .track = builder_.FindOrAddThread(process, pid),
                         .category = builder_.Intern(category),
                         .args = builder_.AddArgs(args)});
  }
  // "id: text" a line.
  std::string Facts() {
    const Trace trace = std::move(builder_).Build();
    if (stepping_pid_ != 0) steps_.thread = TrackId{0};
    std::string text;
    for (const HostFact& fact : FindHostFacts(trace, steps_)) {
      text += fact.id + ": " + fact.text + "\n";
    }
    return text;
  }

  TraceBuilder builder_;
  Steps steps_;
  int64_t stepping_pid_ = 0;
};

TEST_F(HostFacts, NothingIsSaidWithoutSamplesOrNews) {
  Add(0, "CPU % of all cores", {{"user", 50}, {"system", 5}});
  Add(2000, "CPU % of all cores", {{"user", 50}, {"system", 5}});
  Add(0, "GPU 0 throttled", {{"SW power cap", 1}}, 1, "somebody else's");
  Add(2000, "GPU 0 throttled", {{"SW power cap", 1}}, 1, "somebody else's");
  EXPECT_EQ(Facts(), "");
}

TEST_F(HostFacts, WhereNothingElseWasRecordedTheySayWhatTheRunUsed) {
  steps_.steps.clear();
  for (const int64_t ms : {0, 2000}) {
    Add(ms, "CPU % of one core", {{"user", 50}, {"system", 10}}, 1);
    Add(ms, "CPU % of one core", {{"user", 20}, {"system", 0}}, 2);
    Add(ms, "Disk vda MB/s", {{"read", 3}, {"written", 1}});
  }
  EXPECT_EQ(Facts(),
            "run_cpu: the run's processes took 80 % of a core on average\n"
            "disk_traffic: the machine's disks: 3 MB read, 1 MB written\n");
}

TEST_F(HostFacts, WhatWasNotSampledIsNotSaid) {
  steps_.steps.clear();
  EXPECT_EQ(Facts(), "");
}

TEST_F(HostFacts, ThrottlingCountsWithinTheWindowAlone) {
  Add(0, "GPU 0 throttled", {{"SW power cap", 0}, {"HW slowdown", 1}});
  Add(100, "GPU 0 throttled", {{"SW power cap", 0}, {"HW slowdown", 0}});
  Add(730, "GPU 0 throttled", {{"SW power cap", 1}, {"HW slowdown", 0}});
  Add(5000, "GPU 0 throttled", {{"SW power cap", 1}, {"HW slowdown", 0}});
  EXPECT_EQ(Facts(), "gpu_throttled: GPU 0 was throttled 37 % of the time: SW power cap\n");
}

TEST_F(HostFacts, GpusOfOthersAreLeftAside) {
  for (const int64_t ms : {0, 2000}) {
    Add(ms, "GPU 0 throttled", {{"SW power cap", 1}});
    Add(ms, "GPU 1 throttled", {{"SW power cap", 1}});
    Add(ms, "GPU 0 used by this run", {{"used", 0}});
    Add(ms, "GPU 1 used by this run", {{"used", 1}});
  }
  EXPECT_EQ(Facts(), "gpu_throttled: GPU 1 was throttled 100 % of the time: SW power cap\n");
}

TEST_F(HostFacts, ANarrowLinkCountsUnderLoad) {
  const auto link = [&](int64_t ms, double generation) {
    Add(ms, "GPU 0 PCIe link",
        {{"generation", generation},
         {"lanes", 4},
         {"generation at most", 5},
         {"lanes at most", 16}});
  };
  link(0, 1);
  link(3000, 1);
  Add(0, "GPU 0 utilisation %", {{"gpu", 0}});
  Add(600, "GPU 0 utilisation %", {{"gpu", 90}});
  Add(3000, "GPU 0 utilisation %", {{"gpu", 90}});
  EXPECT_EQ(
      Facts(),
      "pcie_link: GPU 0: PCIe link at gen1 x4 of gen5 x16, 100 % of the time that the GPU was "
      "busy\n");
}

// Gains are less sure there (RankModel).
TEST_F(HostFacts, AHostWhoseCoresAreAllBusyIsContended) {
  const auto is_contended = [&](double user) {
    builder_ = {};
    const TrackId thread = builder_.FindOrAddThread(builder_.FindOrAddProcess(1), 1);
    for (const Step& step : steps_.steps) {
      builder_.AddRange({{step.span.begin}, {step.span.end}, builder_.Intern("train_step"), thread},
                        RangeKind::kUserAnnotation);
    }
    for (const int64_t ms : {0, 2000}) Add(ms, "CPU % of all cores", {{"user", user}});
    const Trace trace = std::move(builder_).Build();
    return RankModel(trace).host_is_contended;
  };
  EXPECT_FALSE(is_contended(60));
  EXPECT_TRUE(is_contended(96));
}

TEST_F(HostFacts, AnIdleGpusLinkMaySleep) {
  for (const int64_t ms : {0, 2000}) {
    Add(ms, "GPU 0 PCIe link",
        {{"generation", 1}, {"lanes", 16}, {"generation at most", 5}, {"lanes at most", 16}});
    Add(ms, "GPU 0 utilisation %", {{"gpu", 3}});
  }
  EXPECT_EQ(Facts(), "");
}

TEST_F(HostFacts, WorkersAtFullCpuAndNotTheTrainingProcess) {
  stepping_pid_ = 1;
  for (const int64_t ms : {0, 2000}) {
    Add(ms, "CPU % of one core", {{"user", 350}, {"system", 1}}, 1);
    Add(ms, "CPU % of one core", {{"user", 96}, {"system", 2}}, 2);
    Add(ms, "CPU % of one core", {{"user", 97}, {"system", 2}}, 3);
    Add(ms, "CPU % of one core", {{"user", 20}, {"system", 2}}, 4);
  }
  EXPECT_EQ(Facts(),
            "processes_busy: 2 of 3 processes beside the training one took 98 % of a core or more "
            "(python)\n");
}

TEST_F(HostFacts, MachineAndControlGroup) {
  for (const int64_t ms : {0, 2000}) {
    Add(ms, "Swap MB/s", {{"in", 20.97152}, {"out", 0}});
    Add(ms, "Disk vda busy %", {{"busy", 98}});
    Add(ms, "Disk vda MB/s", {{"read", 210}, {"written", 1}});
    Add(ms, "Stalled on I/O %", {{"some", 90}, {"all", 12}});
    Add(ms, "cgroup CPU %", {{"used", 200}, {"throttled", 15}});
    Add(ms, "cgroup out-of-memory kills", {{"kills", 2}});
    Add(ms, "CPU % of all cores", {{"user", 80}, {"system", 15}});
  }
  EXPECT_EQ(Facts(),
            "disk_busy: Disk vda was busy 98 % of the time, 210 MB/s read, 1 MB/s written\n"
            "cpu_busy: all cores together were busy 95 %\n"
            "swap_in: 20 MiB were swapped in\n"
            "io_stall: all runnable tasks waited for I/O 12 % of the time\n"
            "cgroup_throttled: the CPU quota of the control group held its CPUs back 15.0 ms/step "
            "in all\n"
            "oom_kills: the out-of-memory killer has ended 2 processes of the control group\n");
}

// Of all processes of the run: 30 of 40 MB/s over the window.
TEST_F(HostFacts, ReadsThatMissThePageCache) {
  for (const int64_t ms : {0, 2000}) {
    Add(ms, "Files MB/s", {{"read, caches too", 25}, {"read from storage", 20}}, 1);
    Add(ms, "Files MB/s", {{"read, caches too", 15}, {"read from storage", 10}}, 2);
  }
  EXPECT_EQ(
      Facts(),
      "read_from_storage: the run's processes read 3.0 MB/step from storage, 75 % of all that they "
      "read: the page cache does not hold it\n");
}

TEST_F(HostFacts, ReadsOfThePageCacheAreSaidWhereTheyAreMany) {
  for (const int64_t ms : {0, 2000}) {
    Add(ms, "Files MB/s", {{"read, caches too", 900}, {"read from storage", 19}});
  }
  EXPECT_EQ(
      Facts(),
      "read_from_caches: the run's processes read 90.0 MB/step, 2.1 % of it from storage: the "
      "page cache holds nearly all\n");
}

TEST_F(HostFacts, FewReadsAreNoFact) {
  for (const int64_t ms : {0, 2000}) {
    Add(ms, "Files MB/s", {{"read, caches too", 19}, {"read from storage", 19}});
  }
  EXPECT_EQ(Facts(), "");
}

// Only those of the thread that steps, within the window; one within another counts once.
TEST_F(HostFacts, PausesForGarbageAreSummed) {
  const ProcessId process = builder_.FindOrAddProcess(1);
  const TrackId stepping = builder_.FindOrAddThread(process, 1);
  const TrackId other = builder_.FindOrAddThread(process, 2);
  stepping_pid_ = 1;
  const auto add = [&](TrackId thread, const char* name, int64_t begin, int64_t end) {
    builder_.AddRange(
        {.begin = Ms(begin), .end = Ms(end), .name = builder_.Intern(name), .track = thread},
        RangeKind::kUserAnnotation);
  };
  add(stepping, "gc.collect (generation 2)", 50, 120);
  add(stepping, "gc.collect (generation 2)", 300, 340);
  add(stepping, "gc.collect", 310, 320);
  add(stepping, "gc.collector", 400, 440);
  add(other, "gc.collect (generation 0)", 500, 700);
  EXPECT_EQ(
      Facts(),
      "garbage_collection: Python's garbage collector stopped the training thread for 6.0 ms/step (6 %), "
      "40.0 ms at the longest: gc.freeze() once all is set up leaves it less to look at; gc.disable(), with "
      "gc.collect() now and then, chooses when\n");
}

TEST_F(HostFacts, FewPausesForGarbageAreNoNews) {
  const TrackId stepping = builder_.FindOrAddThread(builder_.FindOrAddProcess(1), 1);
  stepping_pid_ = 1;
  builder_.AddRange(
      {.begin = Ms(300), .end = Ms(309), .name = builder_.Intern("gc.collect"), .track = stepping},
      RangeKind::kUserAnnotation);
  EXPECT_EQ(Facts(), "");
}

// By samples of the stepping thread within the window, and who ran beside it in its process.
TEST_F(HostFacts, WaitsForTheInterpreterNameWhoRan) {
  const ProcessId process = builder_.FindOrAddProcess(1);
  const TrackId stepping = builder_.FindOrAddThread(process, 1);
  const TrackId loader = builder_.FindOrAddThread(process, 2);
  const TrackId worker = builder_.FindOrAddThread(builder_.FindOrAddProcess(2), 3);
  stepping_pid_ = 1;
  const auto stack = [&](const char* function, const char* file, int64_t line, StackId caller) {
    return builder_.AddStack(builder_.AddFrame({function, file, line, {}, 0}), caller);
  };
  const StackId decodes =
      stack("zlib.decompress", "<built-in>", 0, stack("decode", "/me/train.py", 12, kNoStack));
  const StackId logs = stack("log", "/me/log.py", 3, kNoStack);
  const auto add = [&](TrackId thread, int64_t ms, ThreadState state, StackId at) {
    builder_.AddRow(builder_.trace().samples,
                    Event{.begin = Ms(ms), .end = Ms(ms), .name = kEmptyString, .track = thread},
                    kEmptyString, state, at, int64_t{20'000'000});
  };
  for (int i = 0; i < 50; ++i) {
    const bool waits = i % 5 == 0;
    add(stepping, 100 + 20 * i, waits ? ThreadState::kGil : ThreadState::kRunning, logs);
    add(loader, 100 + 20 * i, waits ? ThreadState::kRunning : ThreadState::kWaiting, decodes);
    if (i < 4) add(loader, 101 + 20 * i, ThreadState::kRunning, logs);
    add(worker, 100 + 20 * i, ThreadState::kRunning, logs);
    add(stepping, 1200 + 20 * i, ThreadState::kGil, logs);  // no step
  }
  EXPECT_EQ(Facts(),
            "gil_wait: the training thread waited for Python's interpreter lock (GIL) for 20.0 "
            "ms/step (20 %), by 50 samples: other threads of its process run Python meanwhile, "
            "mostly train.py:12 decode. A process of their own does not hold it up\n");
}

TEST_F(HostFacts, FewSamplesOfWaitsForTheInterpreterAreNoNews) {
  const TrackId stepping = builder_.FindOrAddThread(builder_.FindOrAddProcess(1), 1);
  stepping_pid_ = 1;
  for (int i = 0; i < 19; ++i) {
    builder_.AddRow(
        builder_.trace().samples,
        Event{.begin = Ms(200 + i), .end = Ms(200 + i), .name = kEmptyString, .track = stepping},
        kEmptyString, ThreadState::kGil, kNoStack, int64_t{20'000'000});
  }
  EXPECT_EQ(Facts(), "");
}

}  // namespace
}  // namespace trainprof
