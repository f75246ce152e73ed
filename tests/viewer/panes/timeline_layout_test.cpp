#include "viewer/panes/timeline_layout.h"

#include <gtest/gtest.h>

#include "tests/support/trace_script.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

constexpr std::string_view kScript = R"(
thread 1
step 0 1000 ProfilerStep#1
op 10 400 aten::linear
call 20 30 cudaLaunchKernel | corr=5
thread 2
op 10 400 aten::relu
stream 0 7
kernel 40 90 gemm | corr=5
stream 0 20
kernel 500 600 ncclDevKernel_AllReduce | corr=9
)";

struct Job {
  explicit Job(Trace t) : trace(std::move(t)), analysis(Analyze(trace)) {}
  Trace trace;
  RankAnalysis analysis;
};

// Lines: 0 process, 1 main thread (3 lanes), 2 thread 2, 3 GPU 0, 4 stream 7, 5 stream 20, 6 idle.
class TimelineLayout : public ::testing::Test {
 protected:
  std::string Names(const RowList& list) const {
    std::string text;
    for (const TrackRow& row : list.rows) {
      text += (text.empty() ? "" : ", ") + lines_.NameOf(row.line);
    }
    return text;
  }
  uint32_t Line(std::string_view name) const {
    for (uint32_t i = 0; i < lines_.lines().size(); ++i) {
      if (lines_.NameOf(i) == name) return i;
    }
    return kNoLine;
  }

  Job job_{TraceFromScript(kScript)};
  Lines lines_{{{&job_.trace, &job_.analysis}}};
  LayoutChoice choice_{.heights = {.lane = 10, .series = 30, .gap = 2}};
};

TEST_F(TimelineLayout, StacksAllLanesOfAllLines) {
  const TrackLayout layout = MakeTrackLayout(lines_, choice_);
  EXPECT_EQ(Names(layout.tracks),
            "process, main thread, thread 2, GPU 0, stream 7, stream 20, idle by cause");
  int64_t top = 0;
  for (const TrackRow& row : layout.tracks.rows) {
    EXPECT_EQ(row.top, top);
    EXPECT_EQ(row.height, static_cast<int32_t>(row.lanes) * 10);
    top = row.bottom() + 2;
  }
  EXPECT_EQ(layout.tracks.height, top);
  EXPECT_EQ(layout.tracks.rows[1].lanes, 3u);
  EXPECT_TRUE(layout.pinned.rows.empty());
}

TEST_F(TimelineLayout, CollapsedRankIsOneStrip) {
  choice_.collapsed = {Line("process")};
  const TrackLayout layout = MakeTrackLayout(lines_, choice_);
  ASSERT_EQ(Names(layout.tracks), "process");
  EXPECT_EQ(layout.tracks.rows[0].form, RowForm::kStrip);
  EXPECT_EQ(layout.tracks.height, 12);
  EXPECT_EQ(layout.tracks.rows[0].busy, Line("GPU 0"));
  EXPECT_EQ(layout.tracks.rows[0].idle, Line("idle by cause"));
}

TEST_F(TimelineLayout, CollapsedThreadIsItsOutermostLane) {
  choice_.collapsed = {Line("main thread")};
  const TrackLayout layout = MakeTrackLayout(lines_, choice_);
  EXPECT_EQ(layout.tracks.rows[1].form, RowForm::kLanes);
  EXPECT_EQ(layout.tracks.rows[1].lanes, 1u);
  EXPECT_EQ(layout.tracks.rows[1].deeper, 0u);
  EXPECT_EQ(layout.tracks.rows.size(), 7u);
}

TEST_F(TimelineLayout, CollapsedGpuHidesItsStreams) {
  choice_.collapsed = {Line("GPU 0")};
  const TrackLayout layout = MakeTrackLayout(lines_, choice_);
  EXPECT_EQ(Names(layout.tracks), "process, main thread, thread 2, GPU 0");
}

TEST_F(TimelineLayout, PinnedRowsStandApartAndStayInTheTree) {
  choice_.pinned = {Line("stream 20"), Line("thread 2"), 1000};
  choice_.collapsed = {Line("GPU 0")};
  const TrackLayout layout = MakeTrackLayout(lines_, choice_);
  EXPECT_EQ(Names(layout.pinned), "thread 2, stream 20");
  EXPECT_EQ(layout.pinned.rows[1].top, 12);
  EXPECT_EQ(Names(layout.tracks), "process, main thread, thread 2, GPU 0");
}

TEST_F(TimelineLayout, FilterKeepsParentsAndWhatANamedLineHolds) {
  choice_.filter = "STREAM 7";
  EXPECT_EQ(Names(MakeTrackLayout(lines_, choice_).tracks), "process, GPU 0, stream 7");
  choice_.filter = "gpu";
  const TrackLayout layout = MakeTrackLayout(lines_, choice_);
  EXPECT_EQ(Names(layout.tracks), "process, GPU 0, stream 7, stream 20, idle by cause");
  EXPECT_EQ(layout.filtered_out, 2u);
  choice_.filter = "no such track";
  EXPECT_TRUE(MakeTrackLayout(lines_, choice_).tracks.rows.empty());
}

TEST_F(TimelineLayout, FilterFindsWhatIsCollapsed) {
  choice_.collapsed = {Line("process"), Line("GPU 0")};
  choice_.filter = "stream 7";
  EXPECT_EQ(Names(MakeTrackLayout(lines_, choice_).tracks), "process, GPU 0, stream 7");
}

TEST_F(TimelineLayout, WithinFindsTheRowsOfAStretchOfPixels) {
  const RowList tracks = MakeTrackLayout(lines_, choice_).tracks;  // tops 0, 12, 44, 56, ...
  const auto brute = [&](int64_t top, int64_t height) {
    size_t first = 0;
    while (first < tracks.rows.size() && tracks.rows[first].bottom() <= top) ++first;
    size_t last = first;
    while (last < tracks.rows.size() && tracks.rows[last].top < top + height) ++last;
    return std::pair{first, last};
  };
  for (int64_t top = -5; top < tracks.height + 5; ++top) {
    for (int64_t height : {0, 1, 7, 40, 500}) {
      EXPECT_EQ(tracks.Within(top, height), brute(top, height)) << top << " " << height;
    }
  }
}

TEST(TimelineLayoutWithoutGpu, StripStandsForTheThreadThatSteps) {
  const Job job(TraceFromScript("thread 1\nstep 0 9 ProfilerStep#1\nthread 2\nop 1 8 aten::mm\n"));
  const Lines lines({{&job.trace, &job.analysis}});
  const TrackLayout layout = MakeTrackLayout(lines, {.collapsed = {0}, .heights = {}});
  ASSERT_EQ(layout.tracks.rows.size(), 1u);
  EXPECT_EQ(layout.tracks.rows[0].busy, 1u);
  EXPECT_EQ(layout.tracks.rows[0].idle, kNoLine);
}

Trace NestedTrace(int depth) {
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  for (int i = 0; i < depth; ++i) {
    builder.AddRange(
        {.begin = {i}, .end = {10'000 - i}, .name = builder.Intern("f"), .track = thread},
        RangeKind::kPythonFunction);
  }
  return std::move(builder).Build();
}

TEST(TimelineLayoutOfDeepNesting, SaysHowMuchDeeperUntilUnfolded) {
  const Job job(NestedTrace(200));
  const Lines lines({{&job.trace, &job.analysis}});
  LayoutChoice choice{.heights = {.lane = 10, .series = 30, .gap = 2}};
  TrackRow row = MakeTrackLayout(lines, choice).tracks.rows[1];
  EXPECT_EQ(row.lanes, kLanesUnlessUnfolded);
  EXPECT_EQ(row.deeper, 200 - kLanesUnlessUnfolded);
  EXPECT_EQ(row.height, 10 * static_cast<int32_t>(kLanesUnlessUnfolded + 1));
  choice.unfolded = {1};
  row = MakeTrackLayout(lines, choice).tracks.rows[1];
  EXPECT_EQ(row.lanes, 200u);
  EXPECT_EQ(row.deeper, 0u);
}

}  // namespace
}  // namespace trainprof
