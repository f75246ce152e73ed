// Growth of memory from step to step: what counts as growth, and a twin that has the median of all pairs.
#include "analysis/account/memory_growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "tests/support/trace_script.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

constexpr double kMib = 1 << 20;
constexpr int64_t kStepNs = 1'000'000;

struct Search {
  int64_t first = 0;  // steps
  int64_t last = 0;
};
using Facts = std::vector<std::pair<std::string, std::string>>;

// Steps of a millisecond; at the end of step i the process holds mib(i) MiB.
Trace TraceOf(int64_t steps, const std::function<double(int64_t)>& mib, const Facts& facts = {},
              Search search = {}, const std::string& name = "resident") {
  TraceBuilder builder;
  builder.trace().source = SourceKind::kRecording;
  for (const auto& fact : facts) builder.trace().environment.push_back(fact);
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(7), 7);
  const auto at = [](int64_t step) { return TraceTime{step * kStepNs}; };
  for (int64_t i = 0; i < steps; ++i) {
    builder.AddRange(
        {.begin = at(i), .end = at(i + 1), .name = builder.Intern("step"), .track = thread},
        RangeKind::kUserAnnotation);
    const Arg value{builder.Intern(name), {.type = ArgValue::Type::kDouble, .real = mib(i)}};
    builder.AddCounter({.begin = at(i + 1),
                        .end = at(i + 1),
                        .name = builder.Intern(kMemoryCounter),
                        .track = thread,
                        .args = builder.AddArgs({&value, 1})});
  }
  if (search.last > search.first) {
    builder.AddRange({.begin = at(search.first),
                      .end = at(search.last),
                      .name = builder.Intern(kMemorySearch),
                      .track = thread},
                     RangeKind::kOverhead);
  }
  return std::move(builder).Build();
}

StepMemory MemoryOf(const Trace& trace) { return MemoryOf(trace, FindSteps(trace)); }

MemorySeries SeriesOf(const Trace& trace) {
  const StepMemory memory = MemoryOf(trace);
  EXPECT_EQ(memory.series.size(), 1u);
  return memory.series.empty() ? MemorySeries() : memory.series.front();
}

TEST(MemoryGrowth, IsTheSlopeWithoutNoiseAndWarmUp) {
  std::mt19937 random(1);
  const Trace trace = TraceOf(200, [&](int64_t i) {
    const double warm_up = i < 10 ? 50.0 * static_cast<double>(i) : 500.0;
    return warm_up + 2.0 * static_cast<double>(i) + static_cast<double>(random() % 1000) / 1000;
  });
  const MemorySeries series = SeriesOf(trace);
  EXPECT_EQ(series.pid, 7);
  EXPECT_EQ(series.steps, 191);  // the last warm-up step ends where these begin
  EXPECT_TRUE(series.judged);
  EXPECT_NEAR(series.growth_bytes_per_step, 2 * kMib, 0.01 * kMib);
  EXPECT_LT(series.noise_bytes, kMib);
  EXPECT_GE(series.peak_bytes, 898 * kMib);
}

TEST(MemoryGrowth, IsNoneWhereItIsNoiseOrHasEnded) {
  std::mt19937 random(2);
  const auto growth = [](const std::function<double(int64_t)>& mib) {
    const MemorySeries series = SeriesOf(TraceOf(120, mib));
    EXPECT_TRUE(series.judged);
    return series.growth_bytes_per_step;
  };
  EXPECT_EQ(growth([](int64_t) { return 300.0; }), 0);
  EXPECT_EQ(growth([&](int64_t) { return 300 + static_cast<double>(random() % 50); }), 0);
  // A collector's saw, a cache that has filled up, what allocators need, memory that is given back.
  EXPECT_EQ(growth([](int64_t i) { return 300 + 4 * static_cast<double>(i % 20); }), 0);
  EXPECT_EQ(
      growth([](int64_t i) { return 300 + 3 * static_cast<double>(std::min<int64_t>(i, 60)); }), 0);
  EXPECT_EQ(growth([](int64_t i) { return 300 + 0.005 * static_cast<double>(i); }), 0);
  EXPECT_EQ(growth([](int64_t i) { return 900 - 3 * static_cast<double>(i); }), 0);
  // One that comes in jumps is there all the same.
  EXPECT_NEAR(growth([](int64_t i) { return 300 + 50 * static_cast<double>(i / 10); }), 5 * kMib,
              0.5 * kMib);
}

TEST(MemoryGrowth, OfTheSearchItselfIsLeftOut) {
  const Facts facts = {{"memory.window", "12 20 3000000"}, {"memory.cost_ns", "4000"}};
  const Trace trace =
      TraceOf(40, [](int64_t i) { return i < 12 ? 300.0 : 340.0; }, facts, {12, 20});
  const Steps steps = FindSteps(trace);
  EXPECT_EQ(steps.searched_steps, 8);
  EXPECT_EQ(steps.warmup_steps, 10);
  EXPECT_EQ(steps.count(), 22u);
  EXPECT_EQ(steps.window.Total().ns, 22 * kStepNs);
  const StepMemory memory = MemoryOf(trace, steps);
  EXPECT_EQ(memory.series.front().growth_bytes_per_step, 0);
  EXPECT_EQ(memory.series.front().steps,
            40 - 10 - 8 + 1);  // the end of the last warm-up step is a begin
  EXPECT_EQ(memory.searched_steps, 8);
  EXPECT_EQ(memory.search.ns, 3000000);  // these eight steps were no longer than others
  EXPECT_EQ(memory.cost.ns, 4000);
}

TEST(MemoryGrowth, OfFewStepsIsNotJudged) {
  const MemorySeries series =
      SeriesOf(TraceOf(8, [](int64_t i) { return 300.0 + 9.0 * static_cast<double>(i); }));
  EXPECT_FALSE(series.judged);
  EXPECT_EQ(series.growth_bytes_per_step, 0);
}

TEST(MemoryGrowth, PeaksAreOfTheWholeTime) {
  const auto some = [](int64_t i) { return 100.0 + static_cast<double>(i % 3); };
  EXPECT_EQ(SeriesOf(TraceOf(20, some)).peak_bytes, 102 * kMib);
  EXPECT_EQ(SeriesOf(TraceOf(20, some, {{"memory.peak_resident", "209715200"}})).peak_bytes,
            200 * kMib);
  const MemorySeries peak = SeriesOf(TraceOf(20, some, {}, {}, "cuda:0 allocated, peak"));
  EXPECT_EQ(peak.name, "cuda:0 allocated");
  EXPECT_EQ(peak.peak_bytes, 102 * kMib);
  EXPECT_EQ(peak.steps, 0);
}

TEST(MemoryGrowth, KeptLinesAreReadAsTheyAreTold) {
  const Facts facts = {
      {"memory.kept 1",
       "tensor\tcpu\t2097152\t1.000\t0.500\t\t31\t/home/a b/train.py\t12\t/x/main.py"},
      {"memory.kept 2", "graph\tcpu\t0\t0.000\t8.000\ttotal\t0\ttrain.py\t0\t"},
      {"memory.kept 3", "python\t\t-5\tnan"},
      {"memory.kept 5", "tensor\tcpu\t1\t1\t1\t\t1\tunreached.py\t0\t"}};
  const StepMemory memory = MemoryOf(TraceOf(
      20, [](int64_t) { return 1.0; }, facts));
  ASSERT_EQ(memory.kept.size(), 3u);
  EXPECT_EQ(memory.kept[0], (KeptMemory{"tensor", "cpu", 2097152, 1, 0.5, 31, "",
                                        "/home/a b/train.py", 12, "/x/main.py"}));
  EXPECT_EQ(PlaceOf(memory.kept[0]), "train.py:31 (from main.py:12)");
  EXPECT_EQ(memory.kept[1].graphs, 8);
  EXPECT_EQ(memory.kept[1].variable, "total");
  EXPECT_EQ(PlaceOf(memory.kept[1]), "train.py");
  EXPECT_EQ(memory.kept[2], (KeptMemory{"python", "", 0, 0, 0, 0, "", "", 0, ""}));
}

TEST(MemoryGrowth, OfOtherTracesThereIsNone) {
  const Trace trace = TraceFromScript("thread 1\nstep 0 10 step\n");
  EXPECT_EQ(MemoryOf(trace), StepMemory());
}

TEST(MemoryGrowth, AgreesWithTheMedianOfAllPairs) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    const int64_t count = 40 + static_cast<int64_t>(random() % 140);
    const double slope = 1 + static_cast<double>(random() % 100) / 10;
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(std::round(slope * static_cast<double>(i) * 1024) / 1024 +
                       static_cast<double>(random() % 8));
    }
    const MemorySeries series =
        SeriesOf(TraceOf(count, [&](int64_t i) { return values[static_cast<size_t>(i)]; }));
    // The counter at a step's end is the first one of the step after.
    const int64_t first = std::min<int64_t>(10, count / 4) - 1;
    std::vector<double> slopes;
    for (int64_t i = first; i < count; ++i) {
      for (int64_t j = i + 1; j < count; ++j) {
        slopes.push_back((values[static_cast<size_t>(j)] - values[static_cast<size_t>(i)]) /
                         static_cast<double>(j - i));
      }
    }
    std::sort(slopes.begin(), slopes.end());
    const size_t n = slopes.size();
    const double median = (slopes[(n - 1) / 2] + slopes[n / 2]) / 2;
    ASSERT_NEAR(series.growth_bytes_per_step, median * kMib, 1e-3 * kMib) << "round " << round;
  }
}

}  // namespace
}  // namespace trainprof
