// Searching in jobs that are too large to be looked through within a frame.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/viewer/open_job.h"

namespace trainprof {
namespace {

using testing::OpenJob;

// A name so long that it is looked at on the thread.
const std::string& LongScript() {
  static const std::string script =
      "thread 1\nrepeat 12 every 10000\n  step 0 9900 ProfilerStep#1\n" +
      std::string("  op 100 200 aten::mm\n  op 300 400 ") + std::string(300'000, 'x') + "\nend\n";
  return script;
}

void WaitForHits(State& state) {
  while (state.search.busy()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    UpdateSearch(state);
  }
}

TEST(SearchThread, HitsComeWhenTheyAreThere) {
  OpenJob job({LongScript()});
  State& state = job.state();
  RunSearch(state, "aten");
  EXPECT_TRUE(state.search.busy());
  EXPECT_TRUE(state.search.hits.events.empty());
  WaitForHits(state);
  EXPECT_EQ(state.search.hits.total, 12u);
  EXPECT_FALSE(state.search.current);
}

TEST(SearchThread, GoesToTheHitThatWasAskedForBefore) {
  OpenJob job({LongScript()});
  State& state = job.state();
  RunSearch(state, "aten");
  ShowHit(state, -1);
  EXPECT_EQ(state.message, "Searching ...");
  EXPECT_FALSE(state.selected);
  WaitForHits(state);
  ASSERT_TRUE(state.search.current);
  ASSERT_TRUE(state.selected);
  EXPECT_EQ(*state.selected, state.search.hits.events[*state.search.current]);
  const size_t first = *state.search.current;
  ShowHit(state, 1);
  EXPECT_EQ(*state.search.current, (first + 1) % 12);
}

TEST(SearchThread, WhatItSaidGoesWhenItIsNotSoAnyMore) {
  OpenJob job({LongScript()});
  State& state = job.state();
  RunSearch(state, "aten");
  ShowHit(state, 1);
  ASSERT_EQ(state.message, "Searching ...");
  WaitForHits(state);
  EXPECT_EQ(state.message, "");
  RunSearch(state, "nothing is called so");
  ShowHit(state, 1);
  WaitForHits(state);
  EXPECT_EQ(state.message, "No hits");
  RunSearch(state, "");
  EXPECT_EQ(state.message, "");
}

TEST(SearchThread, ANewTextEndsTheFormerOne) {
  OpenJob job({LongScript()});
  State& state = job.state();
  for (int i = 0; i < 20; ++i) {
    RunSearch(state, "xxx");
    ShowHit(state, 1);
    if (i % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    RunSearch(state, "aten");
    EXPECT_TRUE(state.search.busy());
    EXPECT_EQ(state.search.hits.total, 0u);
    WaitForHits(state);
    ASSERT_EQ(state.search.hits.total, 12u);
    EXPECT_EQ(state.lines().NameOf(state.search.hits.events[0]), "aten::mm");
    EXPECT_FALSE(state.selected) << "the former text's hit was asked for";
  }
}

TEST(SearchThread, NothingIsSearchedForAnEmptyTextOrAWrongOne) {
  OpenJob job({LongScript()});
  State& state = job.state();
  for (const char* text : {"", "dur>1parsec"}) {
    RunSearch(state, "xxx");
    RunSearch(state, text);
    EXPECT_FALSE(state.search.busy());
    UpdateSearch(state);
    EXPECT_TRUE(state.search.hits.events.empty());
  }
}

TEST(SearchThread, EndsWhenTheJobIsClosed) {
  OpenJob job({LongScript()});
  State& state = job.state();
  RunSearch(state, "xxx");
  Close(state);
  EXPECT_FALSE(state.search.busy());
  while (!state.closing.empty()) UpdateDocument(state);
}

// Further ranks are searched as well, and the hit that was gone to stays it.
TEST(SearchThread, HitsOfRanksThatComeLaterAreAdded) {
  testing::ScratchFolder folder;
  State state;
  Open(state, testing::WriteJob(folder.path(), {LongScript(), LongScript(), LongScript()}));
  while (!state.HasLines()) UpdateDocument(state);
  RunSearch(state, "aten");
  ShowHit(state, 1);
  testing::WaitForAll(state);
  WaitForHits(state);
  EXPECT_EQ(state.search.hits.total, 36u);
  ASSERT_TRUE(state.search.current);
  EXPECT_EQ(state.search.hits.events[*state.search.current], *state.selected);
}

}  // namespace
}  // namespace trainprof
