#include "viewer/timeline/lines.h"
#include "tests/support/sanitized.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/random_trace.h"
#include "tests/support/trace_script.h"
#include "trace/build/trace_builder.h"
#include "viewer/navigation/measure.h"
#include "viewer/timeline/lane_store.h"

namespace trainprof {
namespace {

constexpr std::string_view kLinesScript = R"(
thread 1
repeat 3 every 1000
  step 0 1000 ProfilerStep#1
  op 10 400 aten::linear
  call 20 30 cudaLaunchKernel | corr=5
  call 100 160 cudaMemcpyAsync | corr=6
end
stream 0 7
repeat 3 every 1000
  kernel 40 90 gemm | corr=5
  copy 110 150 Memcpy HtoD (Pageable -> Device) | corr=6 bytes=8
end
stream 0 20
kernel 500 600 ncclDevKernel_AllReduce | corr=9
)";

struct AnalyzedTrace {
  explicit AnalyzedTrace(Trace t) : trace(std::move(t)), analysis(Analyze(trace)) {}
  Trace trace;
  RankAnalysis analysis;
};

std::string Outline(const Lines& lines) {
  std::string text;
  for (uint32_t i = 0; i < lines.lines().size(); ++i) {
    const Line& line = lines.lines()[i];
    text += std::string(2 * line.level, ' ') + lines.NameOf(i) + " " + std::to_string(line.lanes) +
            "\n";
  }
  return text;
}

uint32_t LineCalled(const Lines& lines, std::string_view name) {
  for (uint32_t i = 0; i < lines.lines().size(); ++i) {
    if (lines.NameOf(i) == name) return i;
  }
  return kNoLine;
}

TEST(Lines, StandInTheOrderOfTheField) {
  AnalyzedTrace job(TraceFromScript(kLinesScript));
  job.trace.rank = 3;
  job.trace.rank_known = true;
  const Lines lines({{&job.trace, &job.analysis}});
  EXPECT_EQ(Outline(lines),
            "rank 3 1\n"
            "  main thread 3\n"
            "  GPU 0 1\n"
            "    stream 7 1\n"
            "    stream 20 1\n"
            "    copies 1\n"
            "    idle by cause 1\n");
}

TEST(Lines, CountersAndMemoryAreSeries) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(100);
  const TrackId thread = builder.FindOrAddThread(process, 100);
  const TrackId stream = builder.FindOrAddStream(process, 2, 7);
  const auto number = [&](const char* key, int64_t value) {
    return Arg{builder.Intern(key), {.type = ArgValue::Type::kInt, .integer = value}};
  };
  for (int64_t t : {30, 10, 20}) {
    const Arg cpu[] = {number("user", t * 2), number("system", t)};
    builder.AddCounter({.begin = {t},
                        .end = {t},
                        .name = builder.Intern("CPU"),
                        .track = thread,
                        .args = builder.AddArgs(cpu)});
    Allocation allocation;
    allocation.totals[static_cast<size_t>(MemoryTotal::kAllocated)] = t * 100;
    allocation.device_id = 2;
    builder.AddInstant({.begin = {t},
                        .end = {t},
                        .name = builder.Intern("grown"),
                        .track = t == 20 ? stream : thread},
                       't', builder.AddAllocation(allocation));
  }
  builder.AddDeviceOp({.begin = {0}, .end = {9}, .name = builder.Intern("k"), .track = stream},
                      DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, kNoCorrelation);
  const AnalyzedTrace job(std::move(builder).Build());
  const Lines lines({{&job.trace, &job.analysis}});
  EXPECT_EQ(Outline(lines),
            "process 1\n"
            "  main thread 1\n"
            "  GPU 2 1\n"
            "    stream 7 1\n"
            "    idle by cause 1\n"
            "    memory allocated 0\n"
            "  CPU: system 0\n"
            "  CPU: user 0\n");
  LaneStore store(lines);
  EXPECT_EQ(store.LanesOf(LineCalled(lines, "main thread"))[0].size(), 0u);
  const Series& memory = store.SeriesOf(LineCalled(lines, "memory allocated"));
  ASSERT_EQ(memory.size(), 3u);
  EXPECT_EQ(memory.time(1), TraceTime{20});
  EXPECT_EQ(memory.value(1), 2000);
  EXPECT_EQ(store.SeriesOf(LineCalled(lines, "CPU: user")).Extent(), (Series::Range{20, 60}));
}

// As kineto writes them: "stream 7 " with a blank, -1 for all streams, rows of the profiler itself.
TEST(Lines, AreCalledWhatTheSourceCallsThem) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(100);
  const ProcessId profiler = builder.FindOrAddProcess(-3);
  builder.process(profiler).name = builder.Intern("Spans");
  const auto add = [&](TrackId track, const char* name) {
    builder.track(track).name = builder.Intern(name);
    builder.AddRange({.begin = {0}, .end = {5}, .name = builder.Intern("f"), .track = track},
                     RangeKind::kOther);
  };
  const TrackId own_rows = builder.FindOrAddThread(profiler, -3);
  builder.track(own_rows).kind = TrackKind::kOther;
  add(own_rows, "");
  add(builder.FindOrAddThread(process, 102), "");
  add(builder.FindOrAddThread(process, 101), "pt_autograd_0");
  add(builder.FindOrAddThread(process, 100), "");
  add(builder.FindOrAddStream(process, 0, 20), "compute");
  add(builder.FindOrAddStream(process, 0, 7), "stream 7 ");
  add(builder.FindOrAddStream(process, 0, -1), "stream -1 Device 0");
  builder.device(DeviceId{0}).name = builder.Intern("NVIDIA H100");
  const Trace trace = std::move(builder).Build();
  const RankAnalysis analysis;
  EXPECT_EQ(Outline(Lines({{&trace, &analysis}})),
            "process 1\n"
            "  main thread 1\n"
            "  pt_autograd_0 1\n"
            "  thread 102 1\n"
            "  Spans 1\n"
            "  GPU 0 NVIDIA H100 1\n"
            "    all streams annotations 1\n"
            "    stream 7 annotations 1\n"
            "    stream 20 compute annotations 1\n");
}

TEST(Lines, RanksShareOneAxis) {
  AnalyzedTrace first(TraceFromScript(kLinesScript));
  AnalyzedTrace second(TraceFromScript(kLinesScript));
  first.trace.base_ns = 5'000'000;
  second.trace.base_ns = 2'000'000;
  const Lines lines({{&first.trace, &first.analysis}, {&second.trace, &second.analysis}});
  EXPECT_TRUE(lines.aligned());
  EXPECT_EQ(lines.base_ns(), 2'000'000);
  EXPECT_EQ(lines.extent(), (Interval{{0}, {6'000'000}}));
  LaneStore store(lines);
  EXPECT_EQ(store.LanesOf(0)[0].interval(0).begin, TraceTime{3'000'000});
  const EventRef op{0, Table::kDeviceOps, Row{0}};
  EXPECT_EQ(lines.TimeOf(op).begin, TraceTime{3'040'000});
  EXPECT_EQ(lines.NameOf(op), "gemm");
}

TEST(Lines, ClocksDaysApartAreNotCompared) {
  AnalyzedTrace first(TraceFromScript(kLinesScript));
  AnalyzedTrace second(TraceFromScript(kLinesScript));
  first.trace.base_ns = INT64_MIN;
  second.trace.base_ns = INT64_MAX;
  const Lines lines({{&first.trace, &first.analysis}, {&second.trace, &second.analysis}});
  EXPECT_FALSE(lines.aligned());
  EXPECT_EQ(lines.Shift(1), Duration{0});
}

TEST(Lines, TwoRunsInOneFolderShareNoAxis) {
  AnalyzedTrace first(TraceFromScript(kLinesScript));
  AnalyzedTrace second(TraceFromScript(kLinesScript));
  second.trace.base_ns = first.trace.base_ns + Seconds(2 * 60 * 60).ns;
  const Lines lines({{&first.trace, &first.analysis}, {&second.trace, &second.analysis}});
  EXPECT_FALSE(lines.aligned());
}

TEST(Lines, ATraceWithoutEventsHasAView) {
  const AnalyzedTrace job{Trace{}};
  const Lines lines({{&job.trace, &job.analysis}});
  EXPECT_FALSE(lines.extent().Empty());
  EXPECT_FALSE(Lines({}).extent().Empty());
}

TEST(Lines, TwoHundredDeepNestingHasTwoHundredLanes) {
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  for (int64_t d = 0; d < 200; ++d) {
    builder.AddRange(
        {.begin = {d}, .end = {1000 - d}, .name = builder.Intern("f"), .track = thread},
        RangeKind::kPythonFunction);
  }
  const AnalyzedTrace job(std::move(builder).Build());
  const Lines lines({{&job.trace, &job.analysis}});
  EXPECT_EQ(lines.lines()[1].lanes, 200u);
  EXPECT_EQ(lines.lines()[1].too_deep, 0u);
}

TEST(Lines, DeeperThanAThousandIsCounted) {
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  for (int64_t d = 0; d < 5000; ++d) {
    builder.AddRange(
        {.begin = {d}, .end = {20'000 - d}, .name = builder.Intern("f"), .track = thread},
        RangeKind::kPythonFunction);
  }
  const AnalyzedTrace job(std::move(builder).Build());
  const Lines lines({{&job.trace, &job.analysis}});
  EXPECT_EQ(lines.lines()[1].lanes, kDeepestLane);
  EXPECT_EQ(lines.lines()[1].too_deep, 4000u);
  LaneStore store(lines);
  EXPECT_EQ(store.LanesOf(1).size(), kDeepestLane);
}

// Rows are made for what is looked at, and let go.
TEST(LaneStore, AMillionTracksStayBounded) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(1);
  const StringId name = builder.Intern("f");
  constexpr int64_t kTracks = testing::Rounds(1'000'000);
  for (int64_t t = 0; t < kTracks; ++t) {
    const TrackId thread = builder.FindOrAddThread(process, t);
    builder.AddRange({.begin = {t}, .end = {t + 10}, .name = name, .track = thread},
                     RangeKind::kUserAnnotation);
  }
  const Trace trace = std::move(builder).Build();
  const RankAnalysis analysis;
  const Lines lines({{&trace, &analysis}});
  ASSERT_EQ(lines.lines().size(), kTracks + 1);
  LaneStore store(lines);
  EXPECT_EQ(store.size_bytes(), 0u);
  constexpr size_t kMostBytes = 1 << 20;
  for (uint32_t line = 1; line < kTracks; line += 50) {
    EXPECT_EQ(store.LanesOf(line)[0].size(), 1u);
    if (line % 1000 == 1) store.Trim(kMostBytes);
  }
  store.Trim(kMostBytes);
  store.Trim(kMostBytes);
  EXPECT_LE(store.size_bytes(), kMostBytes);
  EXPECT_FALSE(store.Has(1));
}

// Each event of the trace is on exactly one line's lane (a copy on the line of copies too), and
// is found again.
TEST(LaneStore, ShowsEachEventOnce) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const AnalyzedTrace job(BuildTrace(DrawTrace(seed, {.nested = seed % 2 == 0})));
    const Lines lines({{&job.trace, &job.analysis}});
    LaneStore store(lines);
    std::map<std::pair<Table, Row>, int> shown;
    for (uint32_t line = 0; line < lines.lines().size(); ++line) {
      const std::vector<Lane>& lanes = store.LanesOf(line);
      EXPECT_EQ(lanes.size(), lines.lines()[line].lanes);
      for (uint32_t depth = 0; depth < lanes.size(); ++depth) {
        for (size_t i = 0; i < lanes[depth].size(); ++i) {
          if (i > 0) {
            ASSERT_LE(lanes[depth].interval(i - 1).end, lanes[depth].interval(i).begin)
                << "seed " << seed;
          }
          const Table table = lanes[depth].table(i);
          if (lines.lines()[line].kind == LineKind::kCopies || table == Table::kIdle ||
              table == Table::kBusy) {
            continue;
          }
          ++shown[{table, lanes[depth].row(i)}];
          const EventRef ref = store.RefOf(line, depth, i);
          EXPECT_EQ(lines.TimeOf(ref), lanes[depth].interval(i));
          const LaneStore::Place place = store.PlaceOf(ref);
          EXPECT_EQ(std::tuple(place.line, place.lane, place.event), std::tuple(line, depth, i));
        }
      }
    }
    size_t events = job.trace.ranges.size() + job.trace.api.size() + job.trace.device_ops.size();
    EXPECT_EQ(shown.size(), events + job.analysis.steps.count()) << "seed " << seed;
    for (const auto& [key, count] : shown) EXPECT_EQ(count, 1);
  }
}

// What a range that is exactly the window says is what the report says, to the nanosecond.
TEST(LaneStore, IdleByCauseIsThatOfTheReport) {
  size_t compared = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    const AnalyzedTrace job(
        BuildTrace(DrawTrace(seed, {.whole_microseconds = false, .least_steps = 2})));
    const Lines lines({{&job.trace, &job.analysis}});
    LaneStore store(lines);
    for (uint32_t line = 0; line < lines.lines().size(); ++line) {
      if (lines.lines()[line].kind != LineKind::kIdle) continue;
      CategoryTotals in_window{};
      for (const Interval& part : job.analysis.device_steps.device_window.intervals()) {
        const RangeTotals totals = TotalsOf(store.LanesOf(line)[0], part);
        for (size_t c = 0; c < kCategories; ++c) in_window[c] += totals.time[c];
      }
      const int64_t id = job.trace.devices[Index(lines.lines()[line].device)].id;
      for (const DeviceReport& device : job.analysis.devices) {
        if (device.id != id) continue;
        for (size_t c = 0; c < kDeviceClasses; ++c) {
          const DeviceClass device_class{static_cast<uint8_t>(c)};
          if (!IsIdle(device_class)) continue;
          EXPECT_EQ(in_window[static_cast<size_t>(CategoryOf(device_class))],
                    device.account[c].total)
              << "seed " << seed << " " << Name(device_class);
          compared += device.account[c].total.ns > 0;
        }
      }
    }
  }
  EXPECT_GT(compared, 100u);
}

// Communication is told from compute, as in the account.
TEST(LaneStore, BusyTimeByClassIsThatOfTheReport) {
  size_t compared = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    const AnalyzedTrace job(
        BuildTrace(DrawTrace(seed, {.whole_microseconds = false, .least_steps = 2})));
    const Lines lines({{&job.trace, &job.analysis}});
    LaneStore store(lines);
    for (uint32_t line = 0; line < lines.lines().size(); ++line) {
      if (lines.lines()[line].kind != LineKind::kGpu) continue;
      CategoryTotals in_window{};
      for (const Interval& part : job.analysis.device_steps.device_window.intervals()) {
        const RangeTotals totals = TotalsOf(store.LanesOf(line)[0], part);
        for (size_t c = 0; c < kCategories; ++c) in_window[c] += totals.time[c];
      }
      const int64_t id = job.trace.devices[Index(lines.lines()[line].device)].id;
      for (const DeviceReport& device : job.analysis.devices) {
        if (device.id != id) continue;
        for (const DeviceClass c : {DeviceClass::kCompute, DeviceClass::kExposedCommunication,
                                    DeviceClass::kExposedCopy}) {
          const Duration reported = device.account[static_cast<size_t>(c)].total;
          EXPECT_EQ(in_window[static_cast<size_t>(CategoryOf(c))], reported)
              << "seed " << seed << " " << Name(c);
          compared += reported.ns > 0;
        }
      }
    }
  }
  EXPECT_GT(compared, 100u);
}

TEST(LaneStore, CommunicationHasItsColourOnStreamsAndGpus) {
  const AnalyzedTrace job(TraceFromScript(kLinesScript));
  const Lines lines({{&job.trace, &job.analysis}});
  LaneStore store(lines);
  const Lane& stream = store.LanesOf(LineCalled(lines, "stream 20"))[0];
  ASSERT_EQ(stream.size(), 1u);
  EXPECT_EQ(stream.category(0), Category::kCommunication);
  std::map<Category, Duration> busy;
  const Lane& gpu = store.LanesOf(LineCalled(lines, "GPU 0"))[0];
  for (size_t i = 0; i < gpu.size(); ++i) busy[gpu.category(i)] += gpu.interval(i).Length();
  EXPECT_EQ(busy[Category::kCommunication], Microseconds(100));
  EXPECT_EQ(busy[Category::kCompute], Microseconds(150));
  EXPECT_EQ(busy[Category::kCopy], Microseconds(120));
}

TEST(LaneStore, FindsWhatElseAStreamHas) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(0);
  for (int64_t number : {7, 20}) {
    const Event event{.begin = {0},
                      .end = {5},
                      .name = builder.Intern("forward"),
                      .track = builder.FindOrAddStream(process, 0, number)};
    builder.AddRange(event, RangeKind::kGpuAnnotation);
    builder.AddRow(builder.trace().syncs, event, kEmptyString, 1, SyncKind::kStream, kNoCorrelation,
                   kNoCorrelation, kNoCorrelation, kNoCorrelation, kNoCorrelation, kNoCorrelation);
    if (number == 7) {
      builder.AddDeviceOp(event, DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, 1);
    }
  }
  const AnalyzedTrace job(std::move(builder).Build());
  const Lines lines({{&job.trace, &job.analysis}});
  EXPECT_EQ(Outline(lines),
            "process 1\n"
            "  GPU 0 1\n"
            "    stream 7 1\n"
            "    stream 7 annotations 1\n"
            "    stream 7 synchronisation 1\n"
            "    stream 20 annotations 1\n"
            "    stream 20 synchronisation 1\n"
            "    idle by cause 1\n");
  LaneStore store(lines);
  EXPECT_EQ(store.PlaceOf({0, Table::kDeviceOps, Row{0}}).line, 2u);
  EXPECT_EQ(store.PlaceOf({0, Table::kRanges, Row{0}}).line, 3u);
  EXPECT_EQ(store.PlaceOf({0, Table::kSyncs, Row{0}}).line, 4u);
  EXPECT_EQ(store.PlaceOf({0, Table::kRanges, Row{1}}).line, 5u);
  EXPECT_EQ(store.PlaceOf({0, Table::kSyncs, Row{1}}).line, 6u);
  EXPECT_EQ(store.PlaceOf({0, Table::kIdle, Row{0}}).line, kNoLine);
}

TEST(Category, HasATitleOfItsOwn) {
  std::set<std::string_view> titles;
  for (size_t c = 0; c < kCategories; ++c) titles.insert(Title(static_cast<Category>(c)));
  EXPECT_EQ(titles.size(), kCategories);
}

TEST(Categorizer, AnAnnotationAndItsShadowOnTheStreamAreAlike) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(1);
  const StringId name = builder.Intern("data_wait");
  builder.AddRange(
      {.begin = {0}, .end = {5}, .name = name, .track = builder.FindOrAddStream(process, 0, 7)},
      RangeKind::kGpuAnnotation);
  builder.AddRange(
      {.begin = {0}, .end = {5}, .name = name, .track = builder.FindOrAddThread(process, 1)},
      RangeKind::kUserAnnotation);
  const Trace trace = std::move(builder).Build();
  Categorizer categorizer(trace);
  EXPECT_EQ(categorizer.OfRange(0), Category::kInputWait);
  EXPECT_EQ(categorizer.OfRange(1), Category::kInputWait);
}

}  // namespace
}  // namespace trainprof
