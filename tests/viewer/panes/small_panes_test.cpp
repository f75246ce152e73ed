// Menu bar, verdict, quality bar, welcome, loading, help, go to.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "analysis/job/verdict.h"
#include "tests/viewer/panes/pane_hand.h"
#include "viewer/panes/widgets.h"

namespace trainprof {
namespace {

using testing::Clipboard;
using testing::OpenJob;
using testing::PaneHand;
using testing::ShowsText;

TEST(MenuBar, SearchesAndGoesFromHitToHit) {
  OpenJob job;
  State& state = job.state();
  PaneHand hand(state, DrawMenuBar, {1000, 300});
  hand.Click("name: dur>1ms rank:0");
  hand.Write("gemm");
  hand.Enter();
  EXPECT_EQ(state.search.text, "gemm");
  EXPECT_EQ(state.search.hits.total, 12u);
  ASSERT_TRUE(state.search.current);
  EXPECT_EQ(*state.search.current, 0u);
  EXPECT_EQ(state.lines().NameOf(*state.selected), "gemm_kernel");
  EXPECT_TRUE(ShowsText("1 of 12"));
  hand.Click(">");
  EXPECT_EQ(*state.search.current, 1u);
  hand.Click("<");
  hand.Click("<");
  EXPECT_EQ(*state.search.current, 11u);
}

TEST(MenuBar, EnterGoesToTheNextHit) {
  OpenJob job;
  State& state = job.state();
  PaneHand hand(state, DrawMenuBar, {1000, 300});
  state.focus_search = true;
  hand.ui().Frames(2);
  EXPECT_FALSE(state.focus_search);
  hand.Write("gemm");
  hand.Enter();
  hand.Enter();
  EXPECT_EQ(*state.search.current, 1u);
}

TEST(MenuBar, SaysWhatIsWrongWithASearch) {
  OpenJob job;
  State& state = job.state();
  PaneHand hand(state, DrawMenuBar, {1000, 300});
  hand.Click("name: dur>1ms rank:0");
  hand.Write("dur>fast");
  hand.Enter();
  EXPECT_FALSE(state.search.error.empty());
  EXPECT_TRUE(ShowsText(state.search.error.substr(0, 6)));
}

TEST(MenuBar, CopiesTheViewLinkAndChangesTheTheme) {
  OpenJob job;
  State& state = job.state();
  PaneHand hand(state, DrawMenuBar, {1000, 400});
  EXPECT_TRUE(ShowsText("events"));
  hand.Click("File");
  hand.Click("Copy view link");
  EXPECT_EQ(Clipboard(), ViewLink(state));
  EXPECT_FALSE(state.copy_link);
  hand.Click("View");
  hand.Click("Light");
  EXPECT_EQ(state.settings.theme, ThemeName::kLight);
  hand.Click("View");
  hand.Click("Overview");
  EXPECT_FALSE(state.settings.show_overview);
  hand.Click("File");
  hand.Click("Quit");
  EXPECT_TRUE(state.quit);
}

TEST(MenuBar, OpensARecentFileAndTheDemo) {
  OpenJob job;
  State& state = job.state();
  const std::filesystem::path opened = state.document->path();
  state.demo = opened.parent_path() / "demo";
  PaneHand hand(state, DrawMenuBar, {1200, 300});
  hand.Click("File");
  hand.Click("Demo trace");
  EXPECT_EQ(state.document->path(), state.demo);
  ASSERT_EQ(state.settings.recent.size(), 2u);
  hand.Click("File");
  hand.Click("Recent");
  hand.Click("rank0.json");
  EXPECT_EQ(state.document->path(), opened);
  EXPECT_EQ(state.settings.recent.front(), opened);
}

TEST(MenuBar, ReadsAgainAndCloses) {
  OpenJob job;
  State& state = job.state();
  PaneHand hand(state, DrawMenuBar, {1200, 300});
  const std::weak_ptr<Document> before = state.document;
  hand.Click("File");
  hand.Click("Load again");
  EXPECT_NE(state.document, before.lock());
  hand.Click("File");
  hand.Click("Close");
  EXPECT_EQ(state.document, nullptr);
  EXPECT_FALSE(state.quit);
  hand.Click("File");
  hand.Click("Quit");
  EXPECT_TRUE(state.quit);
}

TEST(MenuBar, OpensAPathThatIsAskedFor) {
  State state;
  PaneHand hand(state, DrawMenuBar, {1000, 400});
  hand.Click("File");
  hand.Click("Open ...");
  hand.ui().Frames(3);
  EXPECT_TRUE(ShowsText("Open a recording or a trace"));
  hand.Write("/no/such/trace.json");
  hand.Enter();
  ASSERT_TRUE(state.document);
  EXPECT_EQ(state.document->path(), "/no/such/trace.json");
  EXPECT_FALSE(state.open_prompt);
}

TEST(VerdictLine, SaysWhatItRestsOn) {
  OpenJob job;
  PaneHand hand(job.state(), DrawVerdict, {1200, 200});
  EXPECT_TRUE(ShowsText("edian step"));
  EXPECT_TRUE(ShowsText("12 steps"));
  EXPECT_FALSE(ShowsText("no step markers"));
}

TEST(VerdictLine, LabelsInferredStepsAndATraceWithoutGpu) {
  OpenJob job({R"(
thread 1
repeat 12 every 10000
  annotation 0 2000 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  op   2100 2300 aten::mm
end
)"});
  PaneHand hand(job.state(), DrawVerdict, {1200, 200});
  EXPECT_TRUE(ShowsText("no step markers"));
  EXPECT_TRUE(ShowsText("no GPU events in this trace: only the host is shown"));
}

TEST(VerdictLine, NamesTheRankThatItSpeaksOf) {
  OpenJob job({testing::kLoaderBoundScript, testing::kLoaderBoundScript});
  PaneHand hand(job.state(), DrawVerdict, {1200, 200});
  EXPECT_TRUE(ShowsText("rank 0 of 2 ranks"));
}

TEST(VerdictLine, SaysOfTheOnlyRankThereIsNotThatItIsTheSlowest) {
  testing::ScratchFolder folder;
  testing::WriteJob(folder.path(), {testing::kLoaderBoundScript, testing::kLoaderBoundScript});
  State state;
  Open(state, folder / "rank1.json");
  testing::WaitForAll(state);
  PaneHand hand(state, DrawVerdict, {1200, 200});
  EXPECT_TRUE(ShowsText("rank 1, world size 2"));
}

TEST(VerdictLine, IsReadToItsEndInANarrowWindow) {
  OpenJob job;
  const std::string verdict = Verdict(*job.state().document->Analysis(0));
  ASSERT_GT(verdict.size(), 60u);
  PaneHand narrow(job.state(), DrawVerdict, {400, 200});
  EXPECT_TRUE(ShowsText(verdict.substr(verdict.rfind('(')))) << verdict;
  EXPECT_EQ(testing::CutGlyphs(), 0);
}

TEST(VerdictLine, SaysThatATraceIsEmpty) {
  testing::ScratchFolder folder;
  std::ofstream(folder / "empty.json") << R"({"traceEvents": []})";
  State state;
  Open(state, folder / "empty.json");
  testing::WaitForAll(state);
  PaneHand hand(state, DrawVerdict, {1200, 200});
  EXPECT_TRUE(ShowsText("there is no event in this trace"));
}

TEST(WrappedText, BreaksNoNumberWhateverTheWidth) {
  State state;
  for (float width = 80; width < 400; width += 7) {
    PaneHand hand(
        state, [](PaneContext&) { WrappedText("it blocks the host for 17.25 ms, then 1,234 us"); },
        {width, 300});
    EXPECT_TRUE(ShowsText("17.25")) << width;
    EXPECT_TRUE(ShowsText("1,234")) << width;
    EXPECT_EQ(testing::CutGlyphs(), 0) << width;
  }
}

TEST(WrappedText, BreaksALongNameAndEndsWhereNothingFits) {
  State state;
  const auto draw = [](PaneContext&) {
    WrappedText("DataLoader/" + std::string(40, 'a') + "\n\n\xc3\xa9 \r end");
  };
  for (const float width : {1.f, 20.f, 100.f, 1000.f}) {
    PaneHand hand(state, draw, {width, 900});
    if (width < 100) continue;
    EXPECT_TRUE(ShowsText("DataLoader"));
    EXPECT_TRUE(ShowsText("end"));
  }
}

TEST(QualityBar, TellsFilesThatCannotBeReadFromLostRecords) {
  testing::ScratchFolder folder;
  testing::WriteJob(folder.path(), {testing::kLoaderBoundScript, testing::kLoaderBoundScript});
  std::ofstream(folder / "rank2.json") << "no trace";
  State state;
  Open(state, folder.path());
  testing::WaitForAll(state);
  PaneHand hand(state, DrawQualityBar, {2000, 200});
  EXPECT_TRUE(ShowsText("1 file could not be read"));
  EXPECT_FALSE(ShowsText("lost"));
  state.rank = 1;
  hand.Click("Details");
  EXPECT_EQ(state.rank, 0u) << "whose quality tells of it";
}

TEST(QualityBar, SaysThatClocksDoNotAgree) {
  testing::ScratchFolder folder;
  for (const int64_t rank : {0, 1}) {
    const int64_t begin_us = rank * 7'200'000'000;
    std::ofstream(folder.path() / fmt::format("rank{}.json", rank)) << fmt::format(
        R"({{"distributedInfo": {{"rank": {}, "world_size": 2}}, "traceEvents": [
            {{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": {}, "dur": 9}}]}})",
        rank, begin_us + 1'700'000'000'000'000);
  }
  State state;
  Open(state, folder.path());
  testing::WaitForAll(state);
  ASSERT_EQ(state.document->ranks(), 2u);
  PaneHand hand(state, DrawQualityBar, {1200, 200});
  EXPECT_TRUE(ShowsText("The ranks began more than an hour apart"));
}

// The program and its supervisor, so that nothing but what is missing tells of it.
TEST(QualityBar, SaysThatTheRunWasKilled) {
  const std::filesystem::path samples = std::filesystem::path(TRAINPROF_SOURCE_DIR) / "samples";
  for (const auto& [sample, killed] :
       {std::pair{"trainer_killed", true}, {"trainer_cpu_workers2", false}}) {
    State state;
    Open(state, samples / sample / "recording");
    testing::WaitForAll(state);
    ASSERT_TRUE(state.HasLines());
    PaneHand hand(state, DrawQualityBar, {1200, 200});
    EXPECT_EQ(ShowsText("The run was killed"), killed);
    EXPECT_EQ(ShowsText("2 ranges were still open"), killed);
  }
}

TEST(QualityBar, StaysAwayWhileAllIsWell) {
  OpenJob job;
  PaneHand hand(job.state(), DrawQualityBar, {1200, 200});
  EXPECT_FALSE(ShowsText("Details"));
}

TEST(QualityBar, CountsWhatIsLostAndLeadsToTheDetails) {
  testing::ScratchFolder folder;
  const std::filesystem::path path =
      testing::WriteJob(folder.path(), {testing::kLoaderBoundScript});
  // As a profiler that was killed leaves it: the file ends in the middle of an event.
  std::filesystem::resize_file(path, std::filesystem::file_size(path) * 2 / 3);
  State state;
  Open(state, path);
  testing::WaitForAll(state);
  ASSERT_TRUE(state.HasLines());
  PaneHand hand(state, DrawQualityBar, {1200, 200});
  EXPECT_TRUE(ShowsText("Not everything is here"));
  hand.Click("Details");
  EXPECT_EQ(state.tab, Tab::kQuality);
}

TEST(Welcome, OffersDemoRecentAndTheCommandThatRecords) {
  State state;
  state.demo = "/no/such/demo";
  state.settings.recent = {"/no/such/recent"};
  PaneHand hand(state, DrawWelcome, {1000, 700});
  EXPECT_TRUE(ShowsText("Drop a recording or a trace here"));
  hand.Click("copy");
  EXPECT_EQ(Clipboard(), "trainprof run -- python train.py");
  hand.Click("Open the demo trace");
  ASSERT_TRUE(state.document);
  EXPECT_EQ(state.document->path(), "/no/such/demo");
  hand.Click("/no/such/recent");
  EXPECT_EQ(state.document->path(), "/no/such/recent");
}

TEST(Welcome, OpensAPathThatIsWritten) {
  State state;
  PaneHand hand(state, DrawWelcome, {1000, 700});
  EXPECT_FALSE(ShowsText("Open the demo trace"));
  hand.Click("path of a recording or a trace");
  hand.Write("/no/such/run");
  hand.Enter();
  ASSERT_TRUE(state.document);
  EXPECT_EQ(state.document->path(), "/no/such/run");
}

TEST(Loading, SaysWhyAFileCannotBeOpenedAndWhatToDo) {
  State state;
  Open(state, "/no/such/trace.json");
  testing::WaitForAll(state);
  PaneHand hand(state, DrawLoading, {1000, 600});
  EXPECT_TRUE(ShowsText("This could not be opened"));
  EXPECT_TRUE(ShowsText("What can be opened:"));
  hand.Click("Close");
  EXPECT_FALSE(state.document);
}

TEST(Loading, IsCancelledByItsButton) {
  testing::ScratchFolder folder;
  const std::filesystem::path path = folder.path() / "large.json";
  {
    std::ofstream out(path);
    out << "{\"schemaVersion\":1,\"traceEvents\":[";
    for (int i = 0; i < 400'000; ++i) {
      out << "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":"
          << i << ",\"dur\":1,\"args\":{\"External id\":" << i << "}},\n";
    }
    out << "{\"ph\":\"M\",\"name\":\"end\"}]}";
  }
  State state;
  PaneHand hand(state, DrawLoading, {1000, 600});
  Open(state, path);
  hand.ui().Frames(2);
  hand.Click("Cancel");
  EXPECT_TRUE(state.document->progress().done);
  EXPECT_NE(state.document->progress().error.find("cancel"), std::string::npos);
  EXPECT_TRUE(ShowsText("This could not be opened"));
}

TEST(Help, ListsTheKeysAndIsClosed) {
  State state;
  PaneHand hand(state, DrawHelp, {1280, 720});
  EXPECT_FALSE(ShowsText("Keys and mouse"));
  state.help_open = true;
  hand.ui().Frames(3);
  EXPECT_TRUE(ShowsText("Keys and mouse"));
  EXPECT_TRUE(ShowsText("Shift + wheel"));
  EXPECT_EQ(testing::CutGlyphs(), 0);
}

TEST(GoToPopup, GoesToAStepAndStaysWhenThereIsNone) {
  OpenJob job;
  State& state = job.state();
  PaneHand hand(state, DrawGoTo, {1000, 500});
  state.go_to_open = true;
  hand.ui().Frames(3);
  hand.Write("4711");
  hand.Enter();
  EXPECT_TRUE(state.go_to_open);
  EXPECT_FALSE(state.message.empty());
  state.go_to_open = false;
  hand.ui().Frames(2);
  state.go_to_open = true;
  hand.ui().Frames(3);
  hand.Write("3");
  hand.Enter();
  EXPECT_FALSE(state.go_to_open);
  const Interval step = state.document->StepsOf(0).steps[3].span;
  EXPECT_LE(state.view.begin, step.begin);
  EXPECT_GE(state.view.end, step.end);
}

}  // namespace
}  // namespace trainprof
