// Lines while a job loads: before the analysis, and with ranks that come later.
#include <gtest/gtest.h>

#include "tests/support/random_trace.h"
#include "tests/support/trace_script.h"
#include "viewer/timeline/lane_store.h"

namespace trainprof {
namespace {

constexpr std::string_view kGrowingScript = R"(
thread 1
op 0 5 aten::mm
thread 2
repeat 3 every 1000
  step 0 1000 ProfilerStep#1
  call 20 30 cudaLaunchKernel | corr=5
end
stream 0 7
repeat 3 every 1000
  kernel 40 90 gemm | corr=5
end
)";

struct Rank {
  explicit Rank(Trace t, int64_t base_ns = 0) : trace(std::move(t)) {
    trace.base_ns = base_ns;
    analysis = Analyze(trace);
    accounts = AccountDevices(trace, analysis.device_steps);
    named.steps = FindNamedSteps(trace);
  }
  RankView Whole() const { return {&trace, &analysis, &accounts}; }
  RankView Provisional() const { return {&trace, &named, &none}; }

  Trace trace;
  RankAnalysis analysis;
  RankAnalysis named;
  std::vector<DeviceAccount> accounts;
  std::vector<DeviceAccount> none;
};

std::vector<std::string> FlatOutline(const Lines& lines) {
  std::vector<std::string> outline;
  for (uint32_t i = 0; i < lines.lines().size(); ++i) {
    const Line& line = lines.lines()[i];
    outline.push_back(std::to_string(line.rank) + " " + std::to_string(line.parent) + " " +
                      lines.NameOf(i) + " " + std::to_string(line.lanes));
  }
  return outline;
}

uint32_t LineOfKind(const Lines& lines, LineKind kind, uint32_t rank = 0) {
  for (uint32_t i = 0; i < lines.lines().size(); ++i) {
    if (lines.lines()[i].kind == kind && lines.lines()[i].rank == rank) return i;
  }
  return kNoLine;
}

TEST(GrowingLines, AreThereWithoutAnAnalysis) {
  const Rank rank(TraceFromScript(kGrowingScript));
  const RankAnalysis empty;
  for (const RankView& view : {RankView{&rank.trace}, RankView{&rank.trace, &empty},
                               RankView{&rank.trace, &empty, &rank.none}}) {
    const Lines lines({view});
    LaneStore store(lines);
    EXPECT_EQ(lines.lines().size(), Lines({rank.Whole()}).lines().size());
    const auto events_of = [&](LineKind kind) {
      return store.LanesOf(LineOfKind(lines, kind))[0].size();
    };
    EXPECT_EQ(events_of(LineKind::kRank), 0u);
    EXPECT_EQ(events_of(LineKind::kStream), 3u);
    EXPECT_EQ(events_of(LineKind::kThread), 1u);
    EXPECT_EQ(lines.TimeOf({0, Table::kDeviceOps, Row{1}}), (Interval{{1'040'000}, {1'090'000}}));
    EXPECT_TRUE(view.accounts == nullptr || events_of(LineKind::kIdle) == 0u);
  }
}

// Named steps say which thread comes first, and what the rank's lane shows.
TEST(GrowingLines, NamedStepsMakeTheLinesOfTheAnalysis) {
  const Rank rank(TraceFromScript(kGrowingScript));
  const Lines provisional({rank.Provisional()});
  EXPECT_EQ(FlatOutline(provisional), FlatOutline(Lines({rank.Whole()})));
  EXPECT_EQ(provisional.lines()[1].track, rank.analysis.steps.thread);
  LaneStore store(provisional);
  EXPECT_EQ(store.LanesOf(0)[0].size(), 3u);
  EXPECT_EQ(store.LanesOf(LineOfKind(provisional, LineKind::kGpu))[0].size(), 0u);
}

TEST(GrowingLines, ThreadOfNamedStepsIsThatOfAllSteps) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Trace trace = BuildTrace(DrawTrace(seed, {}));
    const Steps all = FindSteps(trace);
    const Steps named = FindNamedSteps(trace);
    EXPECT_EQ(named.thread, all.thread) << "seed " << seed;
    EXPECT_EQ(named.count(), all.source == StepSource::kInferred ? 0 : all.count());
  }
}

// The axis moves when an earlier rank comes; everything else is as if made at once.
TEST(GrowingLines, AreThoseOfAllRanksAtOnce) {
  constexpr int64_t kLater = 5'000'000;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Rank a(BuildTrace(DrawTrace(seed, {})), kLater);
    const Rank b(BuildTrace(DrawTrace(seed + 1000, {})));
    const Rank c(TraceFromScript(kGrowingScript), 2 * kLater);
    const Lines one({a.Provisional()});
    const Lines two({a.Whole(), b.Provisional()}, &one);
    const Lines three({a.Whole(), b.Whole(), c.Provisional()}, &two);
    const Lines at_once({a.Provisional(), b.Provisional(), c.Provisional()});
    EXPECT_EQ(FlatOutline(three), FlatOutline(at_once));
    EXPECT_EQ(one.Shift(0).ns, 0);
    EXPECT_EQ(three.Shift(0).ns, kLater);
    EXPECT_EQ(three.Shift(1).ns, 0);
    EXPECT_EQ(three.extent(), at_once.extent());
    for (uint32_t rank = 0; rank < 3; ++rank) {
      const Trace& trace = *three.ranks()[rank].trace;
      EXPECT_EQ(three.SeriesOf(rank).size(), at_once.SeriesOf(rank).size());
      for (uint32_t row = 0; row < trace.device_ops.size(); ++row) {
        const EventRef event{rank, Table::kDeviceOps, Row{row}};
        EXPECT_EQ(three.LineOf(event), at_once.LineOf(event));
      }
    }
  }
}

TEST(GrowingLines, LanesStayUnlessTheyShowSomethingElse) {
  const Rank a(TraceFromScript(kGrowingScript), 1000);
  const Rank later(TraceFromScript(kGrowingScript), 2000);
  const Rank earlier(TraceFromScript(kGrowingScript), 0);
  const Lines before({a.Provisional()});
  LaneStore store(before);
  const uint32_t stream = LineOfKind(before, LineKind::kStream);
  const uint32_t gpu = LineOfKind(before, LineKind::kGpu);
  const Lane* const lane = store.LanesOf(stream).data();
  store.LanesOf(gpu);

  const Lines more({a.Provisional(), later.Provisional()}, &before);
  LaneStore with_more(more, std::move(store));
  EXPECT_EQ(with_more.LanesOf(stream).data(), lane);
  EXPECT_TRUE(with_more.Has(gpu));
  EXPECT_EQ(with_more.LanesOf(LineOfKind(more, LineKind::kStream, 1))[0].size(), 3u);

  const Lines analysed({a.Whole(), later.Provisional()}, &more);
  const size_t bytes = with_more.size_bytes();
  LaneStore with_analysis(analysed, std::move(with_more));
  EXPECT_EQ(with_analysis.LanesOf(stream).data(), lane);
  EXPECT_FALSE(with_analysis.Has(gpu));
  EXPECT_LT(with_analysis.size_bytes(), bytes);
  EXPECT_EQ(with_analysis.LanesOf(gpu)[0].size(), 3u);

  const Lines moved({a.Whole(), later.Provisional(), earlier.Provisional()}, &analysed);
  LaneStore with_another_axis(moved, std::move(with_analysis));
  EXPECT_FALSE(with_another_axis.Has(stream));
  EXPECT_EQ(with_another_axis.size_bytes(), 0u);
  EXPECT_EQ(with_another_axis.LanesOf(stream)[0].interval(0).begin, (TraceTime{41'000}));
}

}  // namespace
}  // namespace trainprof
