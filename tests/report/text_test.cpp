// The words that people read first.
#include <gtest/gtest.h>

#include "profiler/report/renderer.h"
#include "profiler/report/text.h"

namespace trainprof {
namespace {

RankAnalysis RankWith(Duration window, size_t steps) {
  RankAnalysis rank;
  rank.window = window;
  for (size_t i = 0; i < steps; ++i) {
    const Interval range{TraceTime{static_cast<int64_t>(i) * 1'000'000},
                         TraceTime{static_cast<int64_t>(i + 1) * 1'000'000}};
    rank.steps.steps.push_back({range, range});
  }
  rank.device_steps = rank.steps;
  rank.device_window = rank.window;
  return rank;
}

TEST(Verdict, NamesStepBusyAndBiggestLoss) {
  RankAnalysis rank = RankWith(Milliseconds(4), 4);
  rank.devices.push_back({.id = 0,
                          .name = "A100",
                          .busy = Milliseconds(2),
                          .busy_high = Milliseconds(2),
                          .account = {{"compute", "computing", Milliseconds(2)},
                                      {"idle_input_wait", "waiting for input", Milliseconds(2)}}});
  EXPECT_EQ(Verdict(rank),
            "median step 1.0 ms; GPU busy 50.0 %; biggest loss: GPU idle, waiting for input, "
            "0.5 ms/step (50 %)");
}

TEST(Verdict, UnrecordedTimeIsARangeAndNobodysLoss) {
  RankAnalysis rank = RankWith(Milliseconds(4), 4);
  rank.devices.push_back({.id = 0,
                          .name = "A100",
                          .busy = Milliseconds(2),
                          .busy_high = Milliseconds(3),
                          .account = {{"idle_unrecorded", "missing", Milliseconds(1)},
                                      {"idle_unknown", "cause not recorded", Microseconds(400)}}});
  EXPECT_EQ(Verdict(rank),
            "median step 1.0 ms; GPU busy 50.0 to 75.0 % (device work is missing from the trace); "
            "biggest loss: GPU idle, cause not recorded, 0.1 ms/step (10 %)");
}

TEST(Verdict, SaysWhenNothingIsKnown) {
  RankAnalysis rank = RankWith(Milliseconds(4), 0);
  EXPECT_EQ(Verdict(rank),
            "no steps found in 4.0 ms; nothing in the trace names what the host was doing");
}

TEST(Wrap, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(Wrap("aa bb cc", 2, 7), "aa bb\n  cc");
  EXPECT_EQ(Wrap("averylongword x", 2, 5), "averylongword\n  x");
  EXPECT_EQ(Wrap("", 2, 5), "");
}

TEST(Card, StaysWithinTwelveLines) {
  JobAnalysis job;
  job.ranks.push_back(RankWith(Milliseconds(4), 4));
  for (int i = 0; i < 10; ++i) {
    Finding& finding = job.ranks[0].findings.emplace_back();
    finding.rule = "input-bound";
    finding.code = "TP101";
    finding.title = "t";
  }
  const std::string card = RenderCard(job, {});
  // `trainprof run` prints at most 20 lines, eight of which are its own.
  EXPECT_LE(std::count(card.begin(), card.end(), '\n'), 12);
}

}  // namespace
}  // namespace trainprof
