// What a user can do, on a job that was loaded from files.
#include "viewer/state/actions.h"

#include <gtest/gtest.h>

#include "tests/viewer/open_job.h"

namespace trainprof {
namespace {

using testing::Covers;
using testing::OpenJob;

TraceTime At(double ms) { return {static_cast<int64_t>(ms * 1e6)}; }

double InMs(Duration duration) { return duration.ToMilliseconds(); }

// Where the job's first step begins on the axis.
TraceTime FirstStep(const State& state) {
  return state.document->Analysis(0)->steps.steps.front().span.begin + state.lines().Shift(0);
}

TEST(Opening, ShowsTheFirstSteps) {
  OpenJob job;
  const State& state = job.state();
  EXPECT_EQ(state.document->progress().error, "");
  EXPECT_TRUE(state.view.begin <= FirstStep(state));
  EXPECT_NEAR(InMs(state.view.Length()), 1.4 * 49.9, 2);  // five steps and the margins
  EXPECT_EQ(state.settings.recent.size(), 1u);
}

TEST(Opening, KeepsSettingsAndForgetsTheRest) {
  OpenJob job;
  State& state = job.state();
  state.settings.theme = ThemeName::kLight;
  Select(state, job.Named("gemm_kernel").front());
  ToggleBookmark(state, At(1));
  Open(state, "/no/such/trace.json");
  EXPECT_EQ(state.settings.theme, ThemeName::kLight);
  EXPECT_EQ(state.settings.recent.size(), 2u);
  EXPECT_FALSE(state.selected);
  EXPECT_TRUE(state.bookmarks.empty());
  testing::WaitForAll(state);
  EXPECT_FALSE(state.HasLines());
  EXPECT_NE(state.document->progress().error.find("/no/such/trace.json"), std::string::npos);
}

TEST(Opening, WithoutAFileNothingHappens) {
  State state;
  UpdateDocument(state);
  Zoom(state, At(1), 0.5);
  PanBy(state, 10);
  ShowAll(state);
  Back(state);
  GoTo(state, "1");
  ShowStep(state, 1);
  SelectNeighbour(state, 1);
  FollowLaunch(state);
  ZoomToSelection(state);
  OpenFinding(state, {});
  OpenFindingNumber(state, 1);
  ShowEvidence(state, 1);
  RunSearch(state, "gemm");
  ShowHit(state, 1);
  TogglePinned(state, 0);
  ToggleBookmark(state, At(1));
  ShowBookmark(state, 1);
  ClearSelection(state);
  EXPECT_EQ(ViewLink(state), "trainprof view");
  EXPECT_TRUE(state.pinned.empty() && state.bookmarks.empty());
}

TEST(Moving, ZoomsAtTheCursorAndBackUndoesAJump) {
  OpenJob job;
  State& state = job.state();
  const Interval before = state.view;
  const TraceTime at = before.begin + trainprof::Milliseconds(10);
  Zoom(state, at, 0.5);
  EXPECT_EQ(state.view.Length().ns, before.Length().ns / 2);
  EXPECT_EQ((at - state.view.begin).ns, 5'000'000);
  const Interval zoomed = state.view;
  ShowAll(state);
  EXPECT_TRUE(Covers(state.view, state.lines().extent()));
  Back(state);
  EXPECT_EQ(state.view, zoomed);
  Forward(state);
  EXPECT_TRUE(Covers(state.view, state.lines().extent()));
  Forward(state);
  EXPECT_EQ(state.message, "No later view");
}

TEST(Moving, PansByPixels) {
  OpenJob job;
  State& state = job.state();
  state.view_width_px = 100;
  GoTo(state, "50 ms");
  const Interval before = state.view;
  PanBy(state, 10);
  EXPECT_EQ((state.view.begin - before.begin).ns, before.Length().ns / 10);
}

TEST(Moving, GoesToStepsAndTimes) {
  OpenJob job;
  State& state = job.state();
  for (const char* text : {"3", "step 3", "  step3 "}) {
    ShowAll(state);
    GoTo(state, text);
    EXPECT_EQ(StepInView(state), 3) << text;
    EXPECT_NEAR(InMs(state.view.Length()), 14, 0.1) << text;
  }
  for (const char* text : {"55 ms", "0.055s", "55000 us", "55000\xc2\xb5s"}) {
    GoTo(state, "3");
    GoTo(state, text);
    const Duration half{state.view.Length().ns / 2};
    EXPECT_NEAR(InMs(state.view.begin + half - TraceTime{0}), 55, 0.01) << text;
  }
}

// torch.profiler's own numbers, which the user sees in his log, too.
TEST(Moving, StepsHaveTheNumbersOfTheirNames) {
  OpenJob job({R"(
thread 1
step 0 100 ProfilerStep#7
step 100 200 ProfilerStep#8
step 200 300 ProfilerStep#12)"});
  State& state = job.state();
  GoTo(state, "8");
  EXPECT_EQ(StepInView(state), 8);
  GoTo(state, "0");
  EXPECT_EQ(state.message, "There is no step 0: the first is 7, the last 12");
  GoTo(state, "10");
  EXPECT_EQ(state.message, "There is no step 10: the first is 7, the last 12");
  EXPECT_EQ(StepInView(state), 8);
}

TEST(Moving, SaysWhyItCannotGoThere) {
  OpenJob job;
  State& state = job.state();
  const Interval before = state.view;
  GoTo(state, "12");
  EXPECT_EQ(state.message, "There is no step 12: the first is 0, the last 11");
  GoTo(state, "-1");
  EXPECT_EQ(state.message, "There is no step -1: the first is 0, the last 11");
  for (const char* text : {"", "x", "5 km", "1e300 s", "nan s", "99999999999999999999"}) {
    state.message.clear();
    GoTo(state, text);
    EXPECT_NE(state.message.find("neither a step"), std::string::npos) << text;
  }
  EXPECT_EQ(state.view, before);
}

TEST(Selecting, BringsTheEventIntoView) {
  OpenJob job;
  State& state = job.state();
  const EventRef last = job.Named("gemm_kernel").back();
  const uint32_t line = state.lines().LineOf(last);
  state.collapsed.insert(state.lines().lines()[line].parent);
  state.filter = "something else";
  Select(state, last);
  EXPECT_EQ(state.selected, last);
  EXPECT_TRUE(Covers(state.view, state.lines().TimeOf(last)));
  EXPECT_EQ(state.reveal, line);
  EXPECT_TRUE(state.collapsed.empty());
  EXPECT_EQ(state.filter, "");
}

TEST(Selecting, GoesAlongTheLane) {
  OpenJob job;
  State& state = job.state();
  const std::vector<EventRef> kernels = job.Named("gemm_kernel");
  Select(state, kernels[0]);
  SelectNeighbour(state, -1);
  EXPECT_EQ(state.message, "This is the track's first event here");
  SelectNeighbour(state, +1);
  EXPECT_EQ(state.selected, kernels[1]);
  SelectNeighbour(state, -1);
  EXPECT_EQ(state.selected, kernels[0]);
}

TEST(Selecting, FollowsALaunchBothWays) {
  OpenJob job;
  State& state = job.state();
  const EventRef kernel = job.Named("gemm_kernel")[4];
  Select(state, kernel);
  FollowLaunch(state);
  EXPECT_EQ(state.selected, job.Named("cudaLaunchKernel")[4]);
  FollowLaunch(state);
  EXPECT_EQ(state.selected, kernel);
  Select(state, job.Named("cudaStreamSynchronize")[0]);
  FollowLaunch(state);
  EXPECT_EQ(state.message, "This launched nothing");
}

TEST(Selecting, IdleStretchesAreNoEvents) {
  OpenJob job;
  Select(job.state(), {0, Table::kIdle, Row{0}});
  EXPECT_FALSE(job.state().selected);
}

TEST(Selecting, EscapeClearsOneThingAtATime) {
  OpenJob job;
  State& state = job.state();
  OpenFinding(state, {0, 0});
  SelectRange(state, {At(1), At(2)});
  Select(state, job.Named("gemm_kernel").front());
  state.help_open = true;
  ClearSelection(state);
  EXPECT_FALSE(state.help_open);
  EXPECT_TRUE(state.range && state.selected && state.finding);
  ClearSelection(state);
  EXPECT_FALSE(state.range);
  ClearSelection(state);
  EXPECT_FALSE(state.selected);
  EXPECT_TRUE(state.finding);
  ClearSelection(state);
  EXPECT_FALSE(state.finding);
}

// What F and [ ] are about is what the pane shows first: what was selected last.
TEST(Selecting, ARangeTakesThePlaceOfTheEventBefore) {
  OpenJob job;
  State& state = job.state();
  Select(state, job.Named("cudaStreamSynchronize")[0]);
  SelectRange(state, {At(20), At(30)});
  EXPECT_FALSE(state.selected);
  ZoomToSelection(state);
  EXPECT_EQ(state.view, (Interval{At(18), At(32)}));
  FollowLaunch(state);
  EXPECT_EQ(state.message, "No event is selected");
  Select(state, job.Named("gemm_kernel")[5]);
  EXPECT_TRUE(state.range) << "tables are still about it";
  FollowLaunch(state);
  EXPECT_EQ(state.selected, job.Named("cudaLaunchKernel")[5]);
}

TEST(Selecting, ZoomsToTheEventElseToTheRange) {
  OpenJob job;
  State& state = job.state();
  ZoomToSelection(state);
  EXPECT_EQ(state.message, "Nothing is selected");
  SelectRange(state, {At(20), At(30)});
  ZoomToSelection(state);
  EXPECT_EQ(state.view, (Interval{At(18), At(32)}));
  Select(state, job.Named("gemm_kernel").front());
  ZoomToSelection(state);
  EXPECT_NEAR(InMs(state.view.Length()), 1.4 * 4, 0.01);
}

TEST(Searching, GoesThroughHitsFromTheView) {
  OpenJob job;
  State& state = job.state();
  RunSearch(state, "name:gemm dur>1ms");
  ASSERT_EQ(state.search.hits.total, 12u);
  GoTo(state, "5");
  ShowHit(state, +1);
  EXPECT_EQ(state.selected, job.Named("gemm_kernel")[5]);
  ShowHit(state, +1);
  EXPECT_EQ(state.selected, job.Named("gemm_kernel")[6]);
  ShowHit(state, -1);
  ShowHit(state, -1);
  EXPECT_EQ(state.selected, job.Named("gemm_kernel")[4]);
  RunSearch(state, "dur>1parsec");
  EXPECT_NE(state.search.error, "");
  ShowHit(state, +1);
  EXPECT_EQ(state.message, "No hits");
}

TEST(Tracks, PinsCollapsesAndBookmarks) {
  OpenJob job;
  State& state = job.state();
  TogglePinned(state, 1);
  ToggleCollapsed(state, 1);
  EXPECT_TRUE(state.pinned.contains(1) && state.collapsed.contains(1));
  TogglePinned(state, 1);
  ToggleCollapsed(state, 1);
  TogglePinned(state, 1'000'000);
  EXPECT_TRUE(state.pinned.empty() && state.collapsed.empty());
  for (double ms : {80., 20., 50.}) ToggleBookmark(state, At(ms));
  ASSERT_EQ(state.bookmarks.size(), 3u);
  EXPECT_EQ(state.bookmarks[0].name, "20.0 ms");
  GoTo(state, "step 0");
  ShowBookmark(state, +1);
  EXPECT_TRUE(Covers(state.view, {At(20), At(20)}));
  ShowBookmark(state, -1);  // around the end
  EXPECT_TRUE(Covers(state.view, {At(80), At(80)}));
  ToggleBookmark(state, At(50));
  EXPECT_EQ(state.bookmarks.size(), 2u);
}

TEST(Link, SaysWhatIsShown) {
  OpenJob job;
  State& state = job.state();
  const std::string path = state.document->path().string();
  state.view = {At(-0.5), At(12.000001)};
  EXPECT_EQ(ViewLink(state), "trainprof view " + path + " --from=-500us --to=12.000001ms");
  SelectRange(state, {At(2), At(3)});
  EXPECT_EQ(ViewLink(state),
            "trainprof view " + path + " --select=2ms..3ms --from=-500us --to=12.000001ms");
  state.range.reset();
  OpenFindingNumber(state, 1);
  state.view = {At(1), At(2)};
  EXPECT_EQ(ViewLink(state), "trainprof view " + path + " --finding=1 --from=1ms --to=2ms");
}

// Each event is found again by what the link says of it, exact to the nanosecond.
TEST(Link, FindsTheSelectedEventAgain) {
  OpenJob job;
  State& state = job.state();
  size_t found = 0;
  for (const EventRef& event : Search(state.lines(), ParseQuery("dur>=1ns").value()).events) {
    state.selected = event;
    const std::string link = ViewLink(state);
    const size_t begin = link.find("--select='") + 10;
    const std::string query = link.substr(begin, link.find('\'', begin) - begin);
    state.selected.reset();
    SelectByText(state, query);
    ASSERT_EQ(state.selected, event) << query << ": " << state.message;
    ++found;
  }
  EXPECT_GT(found, 50u);
}

TEST(Link, OfASearchTheFirstEventInTimeIsSelected) {
  OpenJob job({R"(
thread 1
op 0 1000 forward of a layer
op 2000 3000 forward)"});
  State& state = job.state();
  SelectByText(state, "name:forward");
  EXPECT_EQ(state.selected, job.Named("forward of a layer").front());
}

TEST(Link, SaysWhatIsWrongWithASelection) {
  OpenJob job;
  State& state = job.state();
  SelectByText(state, "2ms..3.5ms");
  EXPECT_EQ(state.range, (Interval{At(2), At(3.5)}));
  for (const auto& [text, why] : {std::pair{"3ms..2ms", "not after"},
                                  {"90s..91s", "nothing in"},
                                  {"name:nobody", "No event matches"},
                                  {"dur>1parsec", "duration"},
                                  {"at:noon", "at:1.5s"},
                                  {"", "what to search for"}}) {
    SelectByText(state, text);
    EXPECT_NE(state.message.find(why), std::string::npos) << text << ": " << state.message;
  }
  EXPECT_EQ(state.range, (Interval{At(2), At(3.5)}));
}

TEST(Moving, ShowsTheTimesThatWereNamed) {
  OpenJob job;
  State& state = job.state();
  ShowTimes(state, At(20), At(35.5));
  EXPECT_EQ(state.view, (Interval{At(20), At(35.5)}));
  ShowTimes(state, std::nullopt, At(10));
  EXPECT_EQ(state.view, (Interval{state.lines().extent().begin, At(10)}));
  ShowTimes(state, At(100), std::nullopt);
  EXPECT_EQ(state.view, (Interval{At(100), state.lines().extent().end}));
  const Interval before = state.view;
  ShowTimes(state, At(99'000), At(99'001));
  EXPECT_NE(state.message.find("the job goes from"), std::string::npos) << state.message;
  ShowTimes(state, At(99'000), std::nullopt);
  EXPECT_TRUE(state.message.starts_with("There is nothing from 99.0 s on: the job goes from "))
      << state.message;
  ShowTimes(state, std::nullopt, At(-1));
  EXPECT_TRUE(state.message.starts_with("There is nothing before -1.00 ms: the job goes from "))
      << state.message;
  state.message.clear();
  ShowTimes(state, At(5), At(5));
  EXPECT_NE(state.message, "");
  EXPECT_EQ(state.view, before);
}

TEST(Link, WorksInAnyFolder) {
  State state;
  Open(state, "-odd name.json");
  const std::string path = (std::filesystem::current_path() / "-odd name.json").string();
  EXPECT_EQ(ViewLink(state), "trainprof view '" + path + "'");
}

// A shell would run what stands behind a line's end as soon as it is pasted.
TEST(Link, IsOneLine) {
  State state;
  Open(state, "a\nrm -rf x.json");
  EXPECT_EQ(ViewLink(state).find('\n'), std::string::npos);
  EXPECT_NE(ViewLink(state).find("a\\012rm -rf x.json'"), std::string::npos) << ViewLink(state);
}

// Twice as slow as kLoaderBoundScript.
constexpr std::string_view kSlowScript = R"(
thread 1
repeat 12 every 20000
  step 0 19900 ProfilerStep#1
  call 2150 2200 cudaLaunchKernel | corr=100
end
stream 0 7
repeat 12 every 20000
  kernel 2300 6300 gemm_kernel | corr=100
end
)";

TEST(Ranks, AreShownByTheirNumber) {
  using testing::kLoaderBoundScript;
  OpenJob job({kLoaderBoundScript, kSlowScript, kLoaderBoundScript});
  State& state = job.state();
  EXPECT_EQ(ShownRank(state), 1u);
  ShowRankNumber(state, 2);
  EXPECT_EQ(ShownRank(state), 2u);
  OpenFindingNumber(state, 1);
  EXPECT_EQ(state.finding, (FindingRef{2, 0}));
  EXPECT_NE(ViewLink(state).find(" --rank=2 --finding=1 "), std::string::npos) << ViewLink(state);
  ShowRankNumber(state, 7);
  EXPECT_EQ(state.message, "There is no rank 7: there are 0, 1, 2");
  EXPECT_EQ(ShownRank(state), 2u);
}

TEST(Ranks, TheSlowestAndTheMedianAreOpen) {
  using testing::kLoaderBoundScript;
  OpenJob job({kLoaderBoundScript, kLoaderBoundScript, kSlowScript, kLoaderBoundScript});
  State& state = job.state();
  ASSERT_EQ(state.document->ranks(), 4u);
  EXPECT_EQ(state.document->SlowestRank(), 2u);
  size_t open = 0;
  const auto lines = state.lines().lines();
  for (uint32_t line = 0; line < lines.size(); ++line) {
    if (lines[line].kind != LineKind::kRank) continue;
    open += state.collapsed.contains(line) ? 0 : 1;
    EXPECT_TRUE(lines[line].rank != 2 || !state.collapsed.contains(line));
  }
  EXPECT_EQ(open, 2u);
}

}  // namespace
}  // namespace trainprof
