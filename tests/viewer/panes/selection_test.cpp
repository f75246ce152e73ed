#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/random_trace.h"
#include "tests/viewer/panes/pane_hand.h"
#include "viewer/panes/timeline_range.h"

namespace trainprof {
namespace {

using testing::Clipboard;
using testing::OpenJob;
using testing::PaneHand;
using testing::ShowsText;

TEST(SelectionPane, TellsWhatIsKnownOfAKernel) {
  OpenJob job;
  State& state = job.state();
  PaneHand hand(state, DrawSelection, {420, 900});
  EXPECT_TRUE(ShowsText("Click an event"));
  Select(state, job.Named("gemm_kernel")[3]);
  hand.ui().Frames(2);
  EXPECT_TRUE(ShowsText("gemm_kernel"));
  EXPECT_TRUE(ShowsText("4 ms"));
  EXPECT_TRUE(ShowsText("kernel, compute"));
  EXPECT_TRUE(ShowsText("stream 7"));
  EXPECT_TRUE(ShowsText("12 of this name, 48.0 ms in all"));
}

TEST(SelectionPane, FollowsLaunchesBothWays) {
  OpenJob job;
  State& state = job.state();
  const EventRef kernel = job.Named("gemm_kernel")[3];
  Select(state, kernel);
  PaneHand hand(state, DrawSelection, {420, 900});
  hand.Click("launched by cudaLaunchKernel");
  ASSERT_EQ(state.selected->table, Table::kApi);
  EXPECT_EQ(state.lines().NameOf(*state.selected), "cudaLaunchKernel");
  hand.Click("launched gemm_kernel");
  EXPECT_EQ(state.selected, kernel);
}

TEST(SelectionPane, CopiesTheWholeName) {
  OpenJob job;
  State& state = job.state();
  Select(state, job.Named("gemm_kernel")[0]);
  PaneHand hand(state, DrawSelection, {420, 900});
  hand.Click("copy name");
  EXPECT_EQ(Clipboard(), "gemm_kernel");
}

TEST(SelectionPane, MarksTheUsersOwnLineInTheStack) {
  OpenJob job({R"(
thread 1
repeat 3 every 1000
  step 0 900 step
  op   10 400 aten::item | stack=torch/_tensor.py(9): item;train.py(12): step;run.py(3): main
end
)"});
  State& state = job.state();
  Select(state, job.Named("aten::item")[0]);
  PaneHand hand(state, DrawSelection, {420, 900});
  EXPECT_TRUE(ShowsText("> train.py(12): step"));
  EXPECT_TRUE(ShowsText("torch/_tensor.py(9): item"));
  EXPECT_FALSE(ShowsText("> run.py(3): main"));
}

TEST(SelectionPane, SumsARangeByCategory) {
  OpenJob job;
  State& state = job.state();
  for (uint32_t line = 0; line < state.lines().lines().size(); ++line) {
    if (state.lines().lines()[line].kind == LineKind::kStream) {
      state.document->store().LanesOf(line);
    }
  }
  PaneHand hand(state, DrawSelection, {520, 900});
  SelectRange(state, {TraceTime{0}, TraceTime{10'000'000}});
  hand.ui().Frames(2);
  EXPECT_TRUE(ShowsText("Range of 10 ms"));
  EXPECT_TRUE(ShowsText("4.00 ms (40.0 %), 1 event"));
  EXPECT_TRUE(ShowsText("compute 4.00 ms"));
}

// Ranges within ranges, down to 30 levels.
void NestAt(Random& random, int64_t begin, int64_t end, int depth, std::string& script) {
  constexpr const char* kKinds[] = {"op", "annotation", "python", "call"};
  constexpr const char* kNames[] = {"aten::mm", "forward", "train.py(3): f", "cudaLaunchKernel"};
  while (begin < end) {
    const int64_t from = begin + random.Between(0, (end - begin) / 3);
    const int64_t to = random.Between(from, end);
    const int64_t kind = random.Between(0, 3);
    script += fmt::format("op {} {} level\n{} {} {} {}\n", from, to, kKinds[kind], from, to,
                          kNames[kind]);
    if (depth < 15) NestAt(random, from, to, depth + 1, script);
    begin = to + random.Between(1, 200);
  }
}

// The panel in the timeline and the pane say the same of a track, and no moment counts twice.
TEST(SelectionPane, SaysOfARangeWhatThePanelSays) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    std::string script = "thread 1\nstep 0 5000 ProfilerStep#1\nstep 5000 9000 ProfilerStep#2\n";
    NestAt(random, 0, 9000, 0, script);
    OpenJob job({script});
    State& state = job.state();
    uint32_t thread = 0;
    while (state.lines().lines()[thread].kind != LineKind::kThread) ++thread;
    ASSERT_GT(state.document->store().LanesOf(thread).size(), 10u);
    PaneHand hand(state, DrawSelection, {520, 900});
    for (int n = 0; n < 20; ++n) {
      const int64_t begin = random.Between(0, 8'000'000);
      const Interval range{{begin}, {begin + random.Between(1, 6'000'000)}};
      SelectRange(state, range);
      hand.ui().Frames(2);
      const RangeReport panel = ReportOf(state, range, thread);
      ASSERT_EQ(panel.groups.size(), 1u);
      const std::vector<RangeLine>& lines = hand.cache().range_facts->lines;
      if (lines.empty()) {
        EXPECT_EQ(panel.groups[0].events, 0u);
        continue;
      }
      ASSERT_EQ(lines.size(), 1u);
      EXPECT_EQ(lines[0].totals.events, panel.groups[0].events);
      Duration sum;
      for (const RangeReport::Item& item : panel.groups[0].items) {
        EXPECT_EQ(lines[0].totals.time[static_cast<size_t>(item.category)], item.time);
        sum += item.time;
      }
      EXPECT_LE(sum, range.Length()) << "seed " << seed;
      EXPECT_EQ(sum, lines[0].totals.Total());
    }
  }
}

TEST(SelectionPane, CutsANameOfAnyLengthAndTakesItLiterally) {
  const std::string name = "%s%n" + std::string(100'000, 'x') + "##end";
  const std::string script =
      "thread 1\nrepeat 3 every 1000\nstep 0 900 step\nop 10 400 " + name + "\nend\n";
  OpenJob job({script});
  State& state = job.state();
  RunSearch(state, "name:xxx");
  ShowHit(state, 1);
  ASSERT_TRUE(state.selected);
  PaneHand hand(state, DrawSelection, {420, 900}, ThemeName::kLight);
  EXPECT_TRUE(ShowsText("%s%nxxx"));
  EXPECT_TRUE(ShowsText("more characters"));
  EXPECT_LT(hand.ui().drawn().rects, 5000);
  EXPECT_EQ(testing::CutGlyphs(), 0);
  hand.Click("copy name");
  EXPECT_EQ(Clipboard(), name);
}

}  // namespace
}  // namespace trainprof
