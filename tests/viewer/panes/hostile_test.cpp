// Traces that no training writes: the timeline stays usable.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "tests/support/sanitized.h"
#include "tests/viewer/panes/timeline_hand.h"

namespace trainprof {
namespace {

using testing::ScratchFolder;
using testing::TimelineHand;

// A trace in Chrome's format.
class ChromeFile {
 public:
  ChromeFile() { text_ = "{\"traceEvents\":["; }
  void Add(int64_t tid, double us, double length_us, std::string_view name) {
    if (text_.back() != '[') text_ += ",\n";
    text_ += fmt::format(
        R"({{"ph":"X","cat":"cpu_op","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"name":"{}"}})", tid,
        us, length_us, name);
  }
  void Open(State& state) {
    const std::filesystem::path path = folder_ / "hostile.json";
    std::ofstream(path) << text_ << "]}";
    trainprof::Open(state, path);
    testing::WaitForAll(state);
  }

 private:
  ScratchFolder folder_;
  std::string text_;
};

double MillisecondsOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

TEST(HostileTrace, MillionTracksCostByThoseInSight) {
  ChromeFile file;
  constexpr uint32_t kTracks = testing::Rounds(1'000'000);
  for (int64_t tid = 1; tid <= kTracks; ++tid) file.Add(tid, 1, 5, "f");
  State state;
  file.Open(state);
  ASSERT_TRUE(state.HasLines());
  ASSERT_EQ(state.lines().lines().size(), kTracks + 1);
  TimelineHand hand(state, {1600, 700});
  EXPECT_EQ(hand.cache().layout.tracks.rows.size(), kTracks + 1);
  // To the last one, which a float of pixels could not tell from its neighbours.
  state.reveal = kTracks;
  hand.ui().Frames(2);
  const float y = hand.YOf(kTracks);
  EXPECT_GT(y, hand.areas().tracks.top);
  EXPECT_LT(y, hand.areas().tracks.bottom);
  hand.ui().Click(hand.At({0, Table::kRanges, Row{kTracks - 1}}));
  EXPECT_TRUE(state.selected);
  EXPECT_LT(hand.ui().drawn().rects, 20'000);
  // Each frame looks at a few dozen rows: far below what a pass over all lines takes.
  const double frames = MillisecondsOf([&] { hand.ui().Frames(20); });
  const double layout =
      MillisecondsOf([&] { MakeTrackLayout(state.lines(), *hand.cache().choice); });
  EXPECT_LT(frames / 20, std::max(10.0, layout));
}

TEST(HostileTrace, TwoHundredLevelsFoldUntilTheyAreAskedFor) {
  ChromeFile file;
  for (int i = 0; i < 200; ++i) file.Add(1, i, 1000 - 2 * i, fmt::format("level {}", i));
  State state;
  file.Open(state);
  TimelineHand hand(state, {1600, 700});
  const uint32_t thread = hand.Line(LineKind::kThread);
  ASSERT_EQ(state.lines().lines()[thread].lanes, 200u);
  const ImVec2 fold{900, hand.YOf(thread, kLanesUnlessUnfolded)};
  hand.ui().Click(fold);
  EXPECT_TRUE(state.unfolded.contains(thread));
  EXPECT_EQ(hand.cache().layout.tracks.rows[1].lanes, 200u);
  hand.ui().Click({hand.areas().names.left + 60, fold.y});
  EXPECT_FALSE(state.unfolded.contains(thread));
  // What is searched for is found at any depth.
  state.collapsed.insert(thread);
  RunSearch(state, "name:\"level 150\"");
  ShowHit(state, 1);
  hand.ui().Frames(2);
  EXPECT_TRUE(state.unfolded.contains(thread));
  EXPECT_FALSE(state.collapsed.contains(thread));
  EXPECT_GT(hand.YOf(thread, 150), hand.areas().tracks.top);
  EXPECT_LT(hand.YOf(thread, 150), hand.areas().tracks.bottom);
}

TEST(HostileTrace, NanosecondsBesideAMillionSeconds) {
  ChromeFile file;
  file.Add(1, 0, 1e12, "a million seconds");
  file.Add(2, 1, 0.001, "a nanosecond");
  file.Add(2, 1e12 - 1, 0.001, "another");
  file.Add(2, 5e11, 0, "no time at all");
  State state;
  file.Open(state);
  TimelineHand hand(state, {1600, 700});
  const Hits hits = Search(state.lines(), ParseQuery("name:\"a nanosecond\"").value());
  ASSERT_EQ(hits.events.size(), 1u);
  const EventRef tiny = hits.events[0];
  ASSERT_EQ(state.lines().TimeOf(tiny).Length(), Nanoseconds(1));
  ShowAll(state);
  hand.ui().Frames(2);
  Select(state, tiny);
  ZoomToSelection(state);
  hand.ui().Frames(2);
  EXPECT_LE(state.view.Length(), Microseconds(1));
  hand.ui().Click(hand.At(tiny));
  EXPECT_EQ(state.selected, tiny);
  hand.ui().Wheel({900, 300}, -400);
  hand.ui().Drag({300, 300}, {1500, 300});
  ASSERT_TRUE(state.range);
  hand.ui().Frames(2);
  EXPECT_LT(hand.ui().drawn().rects, 20'000);
}

TEST(HostileTrace, NamesOfAHundredThousandCharactersAreCut) {
  ChromeFile file;
  const std::string name(100'000, 'x');
  for (int i = 0; i < 20; ++i) file.Add(1, i * 100, 90, name + std::to_string(i));
  State state;
  file.Open(state);
  TimelineHand hand(state, {1600, 700});
  hand.ui().MoveTo(hand.At({0, Table::kRanges, Row{3}}));
  hand.ui().Frames(3);
  EXPECT_LT(hand.ui().drawn().rects, 5000);  // a glyph is a rectangle
}

TEST(HostileTrace, ManyEventsEverywhereStayWithinTheLimit) {
  ChromeFile file;
  for (int64_t tid = 1; tid <= 60; ++tid) {
    for (int i = 0; i < 3000; ++i) {
      file.Add(tid, i * 10 + tid, i % 3 == 0 ? 9 : 2, i % 2 == 0 ? "aten::mm" : "dataloader");
    }
  }
  State state;
  file.Open(state);
  TimelineHand hand(state, {3840, 2000});
  ShowAll(state);
  for (int i = 0; i < 12; ++i) {
    hand.ui().Wheel({1900, 300}, 2);
    EXPECT_LT(hand.ui().drawn().rects, 20'000);
  }
}

}  // namespace
}  // namespace trainprof
