// What phases consist of by line: samples beside the list that they must give, and a slow twin.
#include "analysis/account/phase_lines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>

#include "tests/support/sanitized.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

// A stack "Image.resize PIL/Image.py:7 < __getitem__ /me/train.py:23", innermost first.
StackId StackOf(TraceBuilder& builder, const std::string& text) {
  std::vector<std::string> frames;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(" < ", at), text.size());
    frames.push_back(text.substr(at, end - at));
    at = end + 3;
  }
  StackId stack = kNoStack;
  for (size_t i = frames.size(); i-- > 0;) {
    const std::string& frame = frames[i];
    const size_t blank = frame.find(' ');
    const size_t colon = frame.rfind(':');
    const std::string function = frame.substr(0, blank);
    const std::string file = frame.substr(blank + 1, colon - blank - 1);
    const FrameId id =
        builder.AddFrame({function, file, std::stoi(frame.substr(colon + 1)), {}, 0});
    stack = builder.AddStack(id, stack);
  }
  return stack;
}

// A process with a stepping thread and a worker beside it. Times in ms.
class Job {
 public:
  Job() {
    stepping = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
    worker = builder.FindOrAddThread(builder.FindOrAddProcess(2), 2);
    launcher = builder.FindOrAddThread(builder.FindOrAddProcess(3), 3);
  }
  void Range(int64_t begin, int64_t end, const char* name) {
    builder.AddRange({.begin = TraceTime{begin * 1'000'000},
                      .end = TraceTime{end * 1'000'000},
                      .name = builder.Intern(name),
                      .track = stepping},
                     RangeKind::kUserAnnotation);
  }
  void Sample(int64_t at, TrackId track, ThreadState state, const std::string& stack,
              int64_t weight_ms = 10) {
    const TraceTime time{at * 1'000'000};
    builder.AddRow(builder.trace().samples,
                   Event{.begin = time, .end = time, .name = kEmptyString, .track = track},
                   kEmptyString, state, StackOf(builder, stack), weight_ms * 1'000'000);
  }
  TraceBuilder builder;
  TrackId stepping;
  TrackId worker;
  TrackId launcher;  // who started the stepping process
};

std::string TextOf(const std::vector<LineTime>& lines, const char* indent) {
  std::string text;
  for (const LineTime& line : lines) {
    text += fmt::format("{}{} ms ({} waiting) {}:{} {}{} x{}\n", indent, line.total.ns / 1'000'000,
                        line.waiting.ns / 1'000'000, line.file, line.line, line.function,
                        line.callee.empty() ? "" : " > " + line.callee, line.count);
  }
  return text;
}

std::string LinesOf(Job job) {
  const Trace trace = std::move(job.builder).Build();
  const Steps steps = FindSteps(trace);
  const HostAccount account = AccountHost(trace, steps);
  std::string text;
  for (const PhaseLines& phase : OpenByLine(trace, steps, account)) {
    Duration sum;
    for (const LineTime& line : phase.lines) sum += line.total;
    EXPECT_EQ(sum, phase.total);
    EXPECT_EQ(phase.total, account.Of(phase.phase));
    text +=
        fmt::format("{} {} ms x{}\n", Name(phase.phase), phase.total.ns / 1'000'000, phase.count);
    text += TextOf(phase.lines, "  ") + TextOf(phase.producers, "  meanwhile ");
    if (phase.work.size() == 1 && phase.work[0].work == BatchWork::kOther) continue;
    Duration all_work;
    for (const WorkTime& time : phase.work) {
      text += fmt::format("  {} ms {}\n", time.total.ns / 1'000'000, Name(time.work));
      all_work += time.total;
    }
    EXPECT_EQ(all_work, phase.work.empty() ? Duration{} : phase.total);
  }
  return text;
}

constexpr auto kRunning = ThreadState::kRunning;
constexpr auto kWaiting = ThreadState::kWaiting;
const char kStep[] = "step";

TEST(PhaseLines, SayWhatAPhaseConsistsOf) {
  Job job;
  job.Range(0, 100, kStep);
  job.Range(0, 60, "data_wait");
  job.Range(60, 90, "forward");
  job.Sample(5, job.stepping, kWaiting, "get /me/train.py:25 < main /me/train.py:40");
  job.Sample(15, job.stepping, kWaiting, "get /me/train.py:25 < main /me/train.py:40");
  job.Sample(25, job.stepping, kRunning,
             "Image.resize /usr/lib/python3/dist-packages/PIL/Image.py:7 < get /me/train.py:23 < "
             "main /me/train.py:40");
  job.Sample(65, job.stepping, kRunning,
             "linear /usr/lib/python3/dist-packages/torch/nn/linear.py:9 < main /me/train.py:41");
  job.Sample(95, job.stepping, kRunning, "main /me/train.py:44");
  EXPECT_EQ(LinesOf(std::move(job)),
            "input_wait 60 ms x3\n"
            "  40 ms (40 waiting) /me/train.py:25 get x2\n"
            "  20 ms (0 waiting) /me/train.py:23 get > Image.resize x1\n"
            "  40 ms other\n"
            "  20 ms transforming\n"
            "forward 30 ms x1\n"
            "  30 ms (0 waiting) /me/train.py:41 main > linear x1\n"
            "other 10 ms x1\n"
            "  10 ms (0 waiting) /me/train.py:44 main x1\n");
}

TEST(PhaseLines, OfInputWaitSayWhatTheProducersDidMeanwhile) {
  Job job;
  const std::string lib = "/usr/lib/python3.11/multiprocessing/";
  const std::string outer =
      " < BaseProcess._bootstrap " + lib + "process.py:314 < main /me/train.py:60";
  job.Range(0, 100, kStep);
  job.Range(0, 50, "data_wait");
  job.Sample(10, job.stepping, kWaiting,
             "Queue.get " + lib + "queues.py:100 < main /me/train.py:60");
  job.Sample(12, job.worker, kRunning,
             "open /usr/lib/python3/dist-packages/PIL/Image.py:3 < item /me/data.py:9" + outer);
  job.Sample(22, job.worker, kWaiting, "item /me/data.py:11" + outer, 40);
  // It waits for work itself: what stands outside is the line that forked it, and none of its own.
  job.Sample(32, job.worker, kWaiting, "Queue.get " + lib + "queues.py:100" + outer);
  // Who started the process waits for its end, and for no batch.
  job.Sample(42, job.launcher, kWaiting,
             "select /usr/lib/python3.11/selectors.py:469 < main /me/launch.py:8", 80);
  // Nobody waits for this.
  job.Sample(70, job.worker, kRunning, "item /me/data.py:9" + outer);
  EXPECT_EQ(LinesOf(std::move(job)),
            "input_wait 50 ms x1\n"
            "  50 ms (50 waiting) /me/train.py:60 main > Queue.get x1\n"
            "  meanwhile 40 ms (40 waiting) /me/data.py:11 item x1\n"
            "  meanwhile 10 ms (0 waiting) /me/data.py:9 item > open x1\n"
            "  40 ms other\n"
            "  10 ms decoding\n");
}

// Functions without Python code are named where the user's line calls them, not where a library does.
TEST(PhaseLines, NameWhatALineOfTheUsersCallsItself) {
  Job job;
  const std::string item = " < item /me/data.py:9";
  const std::string pil = "/usr/lib/python3/dist-packages/PIL/";
  job.Range(0, 100, kStep);
  job.Range(0, 50, "data_wait");
  job.Sample(5, job.stepping, kWaiting, "time.sleep <built-in>:0" + item);
  job.Sample(10, job.stepping, kRunning, "cv2.imdecode <built-in>:0" + item);
  job.Sample(15, job.stepping, kWaiting,
             "f.read <built-in>:0 < load " + pil + "ImageFile.py:2" + item);
  job.Sample(20, job.stepping, kRunning,
             "self.im.resize <built-in>:0 < Image.resize " + pil + "Image.py:3" + item);
  job.Sample(25, job.stepping, kRunning, "Image.resize " + pil + "Image.py:4" + item);
  job.Sample(70, job.stepping, kRunning,
             "nothing <built-in>:0 < wrapper /usr/lib/trainprof-python/trainprof/_ops.py:3 < main "
             "/me/train.py:3");
  EXPECT_EQ(LinesOf(std::move(job)),
            "input_wait 50 ms x5\n"
            "  20 ms (0 waiting) /me/data.py:9 item > Image.resize x2\n"
            "  10 ms (0 waiting) /me/data.py:9 item > cv2.imdecode x1\n"
            "  10 ms (10 waiting) /me/data.py:9 item > load x1\n"
            "  10 ms (10 waiting) /me/data.py:9 item > time.sleep x1\n"
            "  20 ms transforming\n"
            "  10 ms other\n"
            "  10 ms reading\n"
            "  10 ms decoding\n"
            "other 50 ms x1\n"
            "  50 ms (0 waiting) /me/train.py:3 main > nothing x1\n");
}

TEST(PhaseLines, TellWaitsForTheInterpreterFromOthers) {
  Job job;
  job.Range(0, 100, kStep);
  job.Sample(10, job.stepping, ThreadState::kGil, "a /me/train.py:1");
  job.Sample(20, job.stepping, ThreadState::kGil, "a /me/train.py:1");
  job.Sample(30, job.stepping, kWaiting, "a /me/train.py:1");
  job.Sample(40, job.stepping, kRunning, "b /me/train.py:2");
  const Trace trace = std::move(job.builder).Build();
  const Steps steps = FindSteps(trace);
  const std::vector<PhaseLines> phases = OpenByLine(trace, steps, AccountHost(trace, steps));
  ASSERT_EQ(phases.size(), 1u);
  ASSERT_EQ(phases[0].lines.size(), 2u);
  EXPECT_EQ(phases[0].lines[0].waiting, Milliseconds(75));
  EXPECT_EQ(phases[0].lines[0].gil, Milliseconds(50));
  EXPECT_EQ(Title(phases[0].lines[0]), "train.py:1 a, waiting for the GIL");
  EXPECT_EQ(phases[0].lines[1].gil, Duration{});
}

// What stands between a line and what it calls, or innermost, is named for neither.
TEST(PhaseLines, PassOverTheRecordersOwnHooks) {
  Job job;
  const std::string hook = "wrapper /usr/lib/trainprof-python/trainprof/_loader.py:60 < ";
  job.Range(0, 100, kStep);
  job.Range(90, 100, "backward");
  job.Sample(10, job.stepping, kRunning, hook + "main /me/train.py:1");
  job.Sample(
      20, job.stepping, kRunning,
      "step /usr/lib/python3/dist-packages/torch/optim/sgd.py:9 < " + hook + "main /me/train.py:2");
  EXPECT_EQ(LinesOf(std::move(job)),
            "other 90 ms x2\n"
            "  45 ms (0 waiting) /me/train.py:1 main x1\n"
            "  45 ms (0 waiting) /me/train.py:2 main > step x1\n");
}

TEST(PhaseLines, WeighSamplesByTheTimeTheyStandFor) {
  Job job;
  job.Range(0, 100, kStep);
  job.Sample(10, job.stepping, kRunning, "a /me/train.py:1", 30);
  for (int i = 0; i < 3; ++i) job.Sample(50 + i, job.stepping, kRunning, "b /me/train.py:2", 5);
  job.Sample(200, job.stepping, kRunning, "after /me/train.py:3", 500);  // no step
  EXPECT_EQ(LinesOf(std::move(job)),
            "other 100 ms x4\n"
            "  66 ms (0 waiting) /me/train.py:1 a x1\n"
            "  33 ms (0 waiting) /me/train.py:2 b x3\n");
}

TEST(PhaseLines, WithoutStepsAreThoseOfTheThreadThatRan) {
  Job job;
  job.builder.trace().extent = {TraceTime{0}, TraceTime{100}};
  for (int i = 0; i < 10; ++i) {
    job.Sample(i * 10, job.stepping, kWaiting, "idle /me/train.py:1");
    job.Sample(i * 10, job.worker, i < 5 ? kRunning : kWaiting, "works /me/train.py:2");
  }
  const Trace trace = std::move(job.builder).Build();
  Steps none;
  EXPECT_EQ(SampledThread(trace, none), job.worker);
  none.thread = job.stepping;
  EXPECT_EQ(SampledThread(trace, none), job.stepping);
  EXPECT_EQ(SampledThread(Trace{}, none), kNoTrack);
}

TEST(PhaseLines, WithoutSamplesThereAreNone) {
  Job job;
  job.Range(0, 100, kStep);
  EXPECT_EQ(LinesOf(std::move(job)), "");
}

// The slow twin: each sample is looked up in what was drawn, without timelines or accounts.
// torch.profiler's with_stack: each moment is the innermost function's, and the user's that it is called
// from; what none covers has no name.
TEST(PhaseLines, WithoutSamplesAreThoseOfRecordedFunctions) {
  Job job;
  const auto function = [&](int64_t begin, int64_t end, const std::string& stack) {
    job.builder.AddRange({.begin = TraceTime{begin * 1'000'000},
                          .end = TraceTime{end * 1'000'000},
                          .name = job.builder.Intern(stack),
                          .track = job.stepping,
                          .stack = StackOf(job.builder, stack)},
                         RangeKind::kPythonFunction);
  };
  job.Range(0, 100, kStep);
  job.Range(100, 200, kStep);
  job.Range(0, 60, "data_wait");
  job.Range(60, 90, "forward");
  function(-50, 190, "train /me/train.py:5");  // begins before the window
  function(10, 50, "__getitem__ /me/train.py:23");
  function(20, 45, "Image.resize /usr/lib/python3/dist-packages/PIL/Image.py:7");
  function(25, 30, "core /usr/lib/python3/dist-packages/PIL/core.py:9");
  function(70, 110, "__call__ /usr/lib/python3/dist-packages/torch/nn/module.py:3");
  EXPECT_EQ(LinesOf(std::move(job)),
            "input_wait 60 ms x7\n"
            "  20 ms (0 waiting) /me/train.py:5 train x2\n"
            "  20 ms (0 waiting) /me/train.py:23 __getitem__ > Image.resize x2\n"
            "  15 ms (0 waiting) /me/train.py:23 __getitem__ x2\n"
            "  5 ms (0 waiting) /me/train.py:23 __getitem__ > core x1\n"
            "forward 30 ms x2\n"
            "  20 ms (0 waiting) /me/train.py:5 train > __call__ x1\n"
            "  10 ms (0 waiting) /me/train.py:5 train x1\n"
            "other 110 ms x2\n"
            "  80 ms (0 waiting) /me/train.py:5 train x1\n"
            "  20 ms (0 waiting) /me/train.py:5 train > __call__ x1\n"
            "  10 ms (0 waiting) :0  x0\n");
}

// Each millisecond looked at by itself.
TEST(PhaseLines, OfRecordedFunctionsAgreeWithTheTwin) {
  struct Function {
    int64_t begin, end;
    int64_t line;  // 0: not the user's
  };
  for (uint32_t seed = 0; seed < testing::Rounds(200u); ++seed) {
    std::mt19937 random(seed);
    const auto between = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    std::vector<Function> functions;  // by begin, outer first
    const std::function<void(int64_t, int64_t, int)> fill = [&](int64_t begin, int64_t end,
                                                                int depth) {
      while (begin < end && depth < 5) {
        const int64_t from = between(begin, end);
        const int64_t to = between(from, end);
        if (from < to) {
          functions.push_back({from, to, between(0, 2) * between(1, 9)});
          fill(from, to, depth + 1);
        }
        begin = to + 1;
      }
    };
    fill(-30, 230, 0);
    Job job;
    job.Range(0, 100, kStep);
    job.Range(100, 200, kStep);
    job.Range(10, 60, "data_wait");
    job.Range(120, 180, "backward");
    std::map<std::string, int64_t> expected;
    for (int64_t ms = 0; ms < 200; ++ms) {
      std::string users = ":0 ";
      std::string callee;
      for (const Function& function : functions) {
        if (ms < function.begin || function.end <= ms) continue;
        callee = function.line == 0 ? "f" : "";
        if (function.line != 0) users = fmt::format("/me/a.py:{} g", function.line);
      }
      const char* const phase = ms >= 10 && ms < 60     ? "input_wait"
                                : ms >= 120 && ms < 180 ? "backward"
                                                        : "other";
      ++expected[fmt::format("{} {} > {}", phase, users, callee)];
    }
    for (const Function& function : functions) {
      const std::string stack = function.line == 0 ? "f /usr/lib/python3/dist-packages/b.py:1"
                                                   : fmt::format("g /me/a.py:{}", function.line);
      job.builder.AddRange({.begin = TraceTime{function.begin * 1'000'000},
                            .end = TraceTime{function.end * 1'000'000},
                            .name = job.builder.Intern(stack),
                            .track = job.stepping,
                            .stack = StackOf(job.builder, stack)},
                           RangeKind::kPythonFunction);
    }
    const Trace trace = std::move(job.builder).Build();
    const Steps steps = FindSteps(trace);
    std::map<std::string, int64_t> found;
    std::set<HostClass> opened;
    for (const PhaseLines& phase : OpenByLine(trace, steps, AccountHost(trace, steps))) {
      EXPECT_FALSE(phase.sampled);
      for (const LineTime& line : phase.lines) {
        found[fmt::format("{} {}:{} {} > {}", Name(phase.phase), line.file, line.line,
                          line.function, line.callee)] += line.total.ns / 1'000'000;
      }
      opened.insert(phase.phase);
    }
    // A phase without any function is not opened.
    for (const HostClass phase : {HostClass::kInputWait, HostClass::kBackward, HostClass::kOther}) {
      if (opened.contains(phase)) continue;
      EXPECT_EQ(expected.erase(fmt::format("{} :0  > ", Name(phase))), 1u);
    }
    EXPECT_EQ(found, expected) << "seed " << seed;
  }
}

TEST(PhaseLines, AgreeWithTheTwin) {
  struct Drawn {
    int64_t begin, end;
    HostClass phase;
  };
  const std::pair<const char*, HostClass> kPhases[] = {{"data_wait", HostClass::kInputWait},
                                                       {"forward", HostClass::kForward},
                                                       {"backward", HostClass::kBackward},
                                                       {"optimizer", HostClass::kOptimizer}};
  for (uint32_t seed = 0; seed < static_cast<uint32_t>(testing::Rounds(200)); ++seed) {
    std::mt19937 random(seed);
    Job job;
    std::vector<Drawn> drawn;
    int64_t now = 0;
    for (int s = 0; s < 5; ++s) {
      const int64_t begin = now;
      for (int p = 0; p < 6; ++p) {
        now += random() % 20;  // other
        const int64_t end = now + 1 + random() % 30;
        const auto& [name, phase] = kPhases[random() % 4];
        job.Range(now, end, name);
        drawn.push_back({now, end, phase});
        now = end;
      }
      job.Range(begin, now, kStep);
    }
    const auto phase_at = [&](int64_t at) {
      for (const Drawn& range : drawn) {
        if (range.begin <= at && at < range.end) return range.phase;
      }
      return HostClass::kOther;
    };
    std::map<HostClass, std::map<std::string, double>> weights;
    std::map<HostClass, double> wholes;
    for (int64_t at = 0; at < now; at += 1 + random() % 10) {
      const std::string place = fmt::format("/me/train.py:{}", 1 + random() % 4);
      const auto weight = static_cast<int64_t>(1 + random() % 20);
      job.Sample(at, job.stepping, kRunning, "f " + place, weight);
      weights[phase_at(at)][place] += static_cast<double>(weight);
      wholes[phase_at(at)] += static_cast<double>(weight);
    }
    const Trace trace = std::move(job.builder).Build();
    const Steps steps = FindSteps(trace);
    ASSERT_EQ(steps.count(), 5u);
    const HostAccount account = AccountHost(trace, steps);
    const auto phases = OpenByLine(trace, steps, account);
    ASSERT_EQ(phases.size(), weights.size());
    for (const PhaseLines& phase : phases) {
      const auto& expected = weights.at(phase.phase);
      ASSERT_EQ(phase.lines.size(), expected.size());
      Duration sum;
      for (const LineTime& line : phase.lines) {
        const double share =
            expected.at(fmt::format("{}:{}", line.file, line.line)) / wholes.at(phase.phase);
        ASSERT_NEAR(static_cast<double>(line.total.ns), share * static_cast<double>(phase.total.ns),
                    2);
        sum += line.total;
      }
      ASSERT_EQ(sum, phase.total);
    }
  }
}

// Of a file that says nothing of weights, or anything: they stay within bounds, and so do sums.
TEST(PhaseLines, WeightsThatCannotBeAreBounded) {
  constexpr int64_t kWeights[] = {kNoCorrelation, INT64_MAX, INT64_MAX, -5, INT64_MAX};
  Job job;
  for (int64_t step = 0; step < 3; ++step) {
    job.Range(step * 10, step * 10 + 10, "Optimizer.step#SGD.step");
  }
  for (const TrackId track : {job.stepping, job.worker}) {
    for (const int64_t weight : kWeights) {
      job.Sample(15, track, kRunning, "f /me/train.py:1");
      job.builder.trace().samples.weight_ns.back() = weight;
    }
  }
  const Trace trace = std::move(job.builder).Build();
  int64_t whole = 0;
  for (size_t row = 0; row < trace.samples.size(); ++row) whole += trace.samples.WeightNs(row);
  EXPECT_EQ(whole, 6 * SampleTable::kMostWeightNs);
  EXPECT_NE(SampledThread(trace, Steps{}), kNoTrack);
  const Steps steps = FindSteps(trace);
  const std::vector<PhaseLines> phases = OpenByLine(trace, steps, AccountHost(trace, steps));
  ASSERT_EQ(phases.size(), 1u);
  ASSERT_EQ(phases[0].lines.size(), 1u);
  EXPECT_EQ(phases[0].lines[0].total, phases[0].total);
}

}  // namespace
}  // namespace trainprof
