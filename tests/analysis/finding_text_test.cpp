// What findings say: counts and shares as people write them, no names of the engine's own, and
// advice that uses the numbers the trace has.
#include <gtest/gtest.h>

#include "analysis/host/program.h"
#include "analysis/job/analysis.h"
#include "analysis/words.h"
#include "tests/support/trace_script.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

const Finding& Only(const RankAnalysis& analysis, std::string_view rule) {
  for (const Finding& finding : analysis.findings) {
    if (finding.rule == rule) return finding;
  }
  static const Finding none;
  ADD_FAILURE() << "no finding of " << rule;
  return none;
}

// Launches so rarely that the device is busy for `busy_us` of each 100 ms.
RankAnalysis Starved(int busy_us) {
  return Analyze(TraceFromScript(fmt::format(R"(
    thread 1
    repeat 6 every 100000
      step 0 100000 ProfilerStep#1
      call 99100 99110 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 6 every 100000
      kernel 99115 {} gemm | corr=1
    end)",
                                             99115 + busy_us)));
}

TEST(FindingText, SharesBelowOnePercentAreNotZero) {
  EXPECT_EQ(Percent(0), "0 %");
  EXPECT_EQ(Percent(0.0001), "less than 1 %");
  EXPECT_EQ(Percent(0.136), "14 %");
  for (const int busy_us : {2, 800}) {
    const std::string title = Only(Starved(busy_us), "low-utilisation").title;
    EXPECT_TRUE(title.starts_with("Low utilisation: GPU 0 is busy for less than 1 % of the step; "))
        << title;
  }
}

TEST(FindingText, NoSentenceHoldsANameOfTheEngine) {
  const RankAnalysis starved = Starved(800);
  ASSERT_FALSE(starved.findings.empty());
  for (const Finding& finding : starved.findings) {
    std::string text = finding.title + finding.advice + finding.verify;
    for (const Evidence& evidence : finding.evidence) text += evidence.what;
    for (const std::string& reason : finding.confidence_reasons) text += reason;
    for (size_t c = 0; c < kDeviceClasses; ++c) {
      const std::string_view name = Name(static_cast<DeviceClass>(c));
      if (name.find('_') == std::string_view::npos) continue;
      EXPECT_EQ(text.find(name), std::string::npos) << text;
    }
    EXPECT_EQ(text.find("busy_fraction"), std::string::npos) << text;
  }
}

TEST(FindingText, OneCopyIsNotSeveral) {
  const RankAnalysis analysis = Analyze(TraceFromScript(R"(
    thread 1
    step 0 1000 step 0
    call 10 20 cudaLaunchKernel | corr=1
    call 30 560 cudaMemcpyAsync | corr=2
    call 900 910 cudaLaunchKernel | corr=3
    stream 0 7
    kernel 25 500 gemm | corr=1
    copy 520 550 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=1
    kernel 915 990 gemm | corr=3)"));
  const Finding& finding = Only(analysis, "host-sync");
  EXPECT_TRUE(finding.title.starts_with("Host syncs: 1 device-to-host copy blocks the host"))
      << finding.title;
  ASSERT_EQ(finding.evidence.size(), 1u);
  EXPECT_TRUE(finding.evidence[0].what.find("of 1 byte blocked") != std::string::npos)
      << finding.evidence[0].what;
}

// The loader's wait is 400 of 1000 us, with the device or without.
// Steps that wait for 0.4 of their length, which is in us.
Trace Waiting(std::string_view range, bool device, int64_t step = 10'000) {
  const auto at = [&](int64_t thousandths) { return step * thousandths / 1000; };
  std::string script = fmt::format(
      R"(
    thread 1
    repeat 6 every {}
      step 0 {} step
      annotation 0 {} {}
      {}
    end)",
      step, step, at(400), range,
      device ? fmt::format("call {} {} cudaLaunchKernel | corr=1", at(410), at(420))
             : fmt::format("op {} {} aten::add", at(410), at(420)));
  if (device) {
    script += fmt::format("\nstream 0 7\nrepeat 6 every {}\n kernel {} {} gemm | corr=1\nend", step,
                          at(425), step);
  }
  return TraceFromScript(script);
}

std::string AdviceOf(Trace trace) { return Only(Analyze(trace), "input-bound").advice; }

TEST(FindingText, AdviceSpeaksTheProgramsLanguage) {
  Trace python = Waiting("data_wait", true);
  python.environment.emplace_back("command", "/usr/bin/python3.11 train.py");
  EXPECT_NE(AdviceOf(python).find("num_workers="), std::string::npos);
  EXPECT_EQ(AdviceOf(python).find("DataLoaderOptions"), std::string::npos);

  Trace cpp = Waiting("data_wait", true);
  cpp.source = SourceKind::kRecording;
  cpp.environment.emplace_back("command", "build/train --epochs 3");
  EXPECT_EQ(AdviceOf(cpp).find("num_workers"), std::string::npos);
  EXPECT_NE(AdviceOf(cpp).find("DataLoaderOptions"), std::string::npos);

  const std::string unknown = AdviceOf(Waiting("data_wait", true));
  EXPECT_LT(unknown.find("num_workers"), unknown.find("DataLoaderOptions"));
  EXPECT_NE(unknown.find("DataLoaderOptions"), std::string::npos);

  EXPECT_EQ(LanguageOf(Waiting("enumerate(DataLoader)#_SingleProcess", true)), Language::kPython);
  EXPECT_EQ(LanguageOf(TraceFromScript("thread 1\nop 0 9 aten::mm | stack=a.py(3): f")),
            Language::kPython);
}

// The loader's wait is all of the step, and 50,001 workers would not help either.
TEST(FindingText, NoAbsurdNumberOfWorkersIsAdvised) {
  for (const char* loader : {"data_wait", "enumerate(DataLoader)#_SingleProcessDataLoaderIter"}) {
    Trace trace = TraceFromScript(fmt::format(R"(
      thread 1
      repeat 6 every 1000
        step 0 1000 step
        annotation 0 1000 {}
      end)",
                                              loader));
    const std::string unknown = AdviceOf(trace);
    EXPECT_NE(unknown.find("num_workers=64"), std::string::npos) << unknown;
    EXPECT_NE(unknown.find("That will not be enough"), std::string::npos) << unknown;
    trace.environment.emplace_back("cores", "16");
    const std::string known = AdviceOf(trace);
    EXPECT_NE(known.find("num_workers=16"), std::string::npos) << known;
    EXPECT_NE(known.find("That will not be enough"), std::string::npos) << known;
  }
}

TEST(FindingText, SmallTimesAreNotNothing) {
  EXPECT_EQ(MsText(12.34), "12.3");
  EXPECT_EQ(MsText(0.06), "0.1");
  EXPECT_EQ(MsText(0.04), "0.04");
  EXPECT_EQ(MsText(0.003), "0.003");
  EXPECT_EQ(MsText(0), "0.0");
}

TEST(FindingText, NoPinnedMemoryWithoutADevice) {
  constexpr const char* kLoader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  EXPECT_NE(AdviceOf(Waiting(kLoader, true)).find("pin_memory"), std::string::npos);
  EXPECT_EQ(AdviceOf(Waiting(kLoader, false)).find("pin_memory"), std::string::npos);
  EXPECT_EQ(AdviceOf(Waiting(kLoader, false)).find("GPU"), std::string::npos);
}

TEST(FindingText, NoWorkersForBatchesThatAreMadeFasterThanHandedOver) {
  constexpr const char* kLoader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  EXPECT_NE(AdviceOf(Waiting(kLoader, false)).find("num_workers=1 "), std::string::npos);
  const std::string small = AdviceOf(Waiting(kLoader, false, 200));
  EXPECT_NE(small.find("takes 80.0 us a step"), std::string::npos) << small;
  EXPECT_NE(small.find("Workers would not help"), std::string::npos) << small;
  EXPECT_EQ(small.find("num_workers=1"), std::string::npos) << small;
}

TEST(FindingText, CoresAreThoseOfTheRankAndNotSaidWhereUnknown) {
  EXPECT_EQ(AdviceOf(Waiting("data_wait", true)).find("core"), std::string::npos);
  Trace trace = Waiting("data_wait", true);
  trace.environment.emplace_back("cores", "16");
  EXPECT_EQ(CoresOfRank(trace), 16);
  trace.environment.emplace_back("ranks on this host", "8");
  EXPECT_EQ(CoresOfRank(trace), 2);
  EXPECT_NE(AdviceOf(trace).find("(this rank has 2 cores)"), std::string::npos) << AdviceOf(trace);
}

// A program whose processes have these names and take so much of a core each; the first one steps.
LoaderWorkers WorkersAmong(std::vector<std::pair<const char*, double>> processes) {
  TraceBuilder builder;
  int64_t pid = 0;
  for (const auto& [name, percent] : processes) {
    const ProcessId process = builder.FindOrAddProcess(++pid);
    builder.process(process).name = builder.Intern(name);
    const std::vector<Arg> args{
        {builder.Intern("user"), {.type = ArgValue::Type::kDouble, .real = percent}}};
    builder.AddCounter({.begin = TraceTime{500},
                        .end = TraceTime{500},
                        .name = builder.Intern("CPU % of one core"),
                        .track = builder.FindOrAddThread(process, pid),
                        .category = builder.Intern("host"),
                        .args = builder.AddArgs(args)});
  }
  const Trace trace = std::move(builder).Build();
  Steps steps;
  steps.thread = TrackId{0};
  steps.window = IntervalSet::Union({{TraceTime{0}, TraceTime{1000}}});
  return FindLoaderWorkers(trace, steps);
}

TEST(FindingText, WorkersOfTheTraceAreCounted) {
  Trace none = Waiting("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", true);
  EXPECT_NE(AdviceOf(none).find("workers needed = "), std::string::npos) << AdviceOf(none);

  // Where torch names its workers, another Python process is none.
  const LoaderWorkers workers = WorkersAmong({{"python", 100},
                                              {"pt_data_worker", 90},
                                              {"pt_data_worker", 70},
                                              {"nvidia-smi", 70},
                                              {"python", 5}});
  EXPECT_EQ(workers.count, 2);
  EXPECT_DOUBLE_EQ(workers.cpu_percent, 80);
}

// A loop that waits `wait` of each step's 10 ms for so many batches of two workers, one of which makes one in `fetch` ms
// and takes so much of a core.
Trace WatchedWorkers(const char* cores, double percent, int64_t wait = 9, int64_t fetch = 18,
                     int64_t batches = 1) {
  TraceBuilder builder;
  const TrackId loop = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  const auto add = [&](TrackId track, const char* name, int64_t begin_ms, int64_t end_ms) {
    builder.AddRange({.begin = TraceTime{begin_ms * 1'000'000},
                      .end = TraceTime{end_ms * 1'000'000},
                      .name = builder.Intern(name),
                      .track = track},
                     RangeKind::kUserAnnotation);
  };
  for (int64_t step = 0; step < 8; ++step) {
    for (int64_t batch = 0; batch < batches; ++batch) {
      add(loop, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
          10 * step + batch * wait / batches, 10 * step + (batch + 1) * wait / batches);
    }
    add(loop, "Optimizer.step#SGD.step", 10 * step + wait, 10 * step + 10);
    const int64_t worker = 2 + step % 2;
    const TrackId track = builder.FindOrAddThread(builder.FindOrAddProcess(worker), worker);
    add(track, "_MapDatasetFetcher.fetch", 10 * step, 10 * step + fetch);
    if (percent == 0) continue;
    builder.process(builder.FindOrAddProcess(worker)).name = builder.Intern("pt_data_worker");
    const std::vector<Arg> args{
        {builder.Intern("user"), {.type = ArgValue::Type::kDouble, .real = percent}}};
    builder.AddCounter({.begin = TraceTime{10 * step * 1'000'000},
                        .end = TraceTime{10 * step * 1'000'000},
                        .name = builder.Intern("CPU % of one core"),
                        .track = track,
                        .category = builder.Intern("host"),
                        .args = builder.AddArgs(args)});
  }
  builder.trace().environment.emplace_back("cores", cores);
  return std::move(builder).Build();
}

TEST(FindingText, WorkersThatWaitNeedNoCoreEach) {
  const std::string waiting = AdviceOf(WatchedWorkers("4", 10));
  EXPECT_NE(waiting.find("About 19 would keep up (this rank has 4 cores): num_workers=19. They "
                         "wait rather than compute"),
            std::string::npos)
      << waiting;
  const std::string computing = AdviceOf(WatchedWorkers("4", 95));
  EXPECT_NE(computing.find("Even 4 (this rank has 4 cores) would not be enough"), std::string::npos)
      << computing;
}

TEST(FindingText, WorkersThatWereWatchedSayHowManyAreNeeded) {
  const std::string advice = AdviceOf(WatchedWorkers("64", 0));
  EXPECT_NE(advice.find("The DataLoader's 2 workers do not keep up: a step needs a batch every "
                        "1.0 ms, and a worker takes 18.0 ms to make one. About 19 would keep up"),
            std::string::npos)
      << advice;
}

// Gradients of two batches are added up: 4 ms of a step are left for both.
TEST(FindingText, AStepOfTwoBatchesNeedsTwiceTheWorkers) {
  const std::string advice = AdviceOf(WatchedWorkers("64", 0, 6, 18, 2));
  EXPECT_NE(
      advice.find("a step needs a batch every 2.0 ms, and a worker takes 18.0 ms to make one. "
                  "About 10 would keep up"),
      std::string::npos)
      << advice;
}

// Lightning's loop without pin_memory waited 1.2 ms of 8.2 while the batch's memory was handed over.
TEST(FindingText, WorkersThatKeepUpAreNotToBecomeMore) {
  const std::string advice = AdviceOf(WatchedWorkers("64", 0, 3, 12));
  EXPECT_NE(advice.find("2 workers deliver often enough: a step needs a batch every 7.0 ms, and a "
                        "worker takes 12.0 ms to make one."),
            std::string::npos)
      << advice;
  EXPECT_EQ(advice.find("num_workers"), std::string::npos);
}

TEST(FindingText, WorkersWithoutANameOfTheirOwnAreCounted) {
  const LoaderWorkers workers =
      WorkersAmong({{"python", 100}, {"python", 30}, {"python", 50}, {"nvidia-smi", 70}});
  EXPECT_EQ(workers.count, 2);
  EXPECT_DOUBLE_EQ(workers.cpu_percent, 40);
}

}  // namespace
}  // namespace trainprof
