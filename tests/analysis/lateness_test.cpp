// Who holds up the other ranks, and what those may promise.
#include "analysis/job/lateness.h"

#include <gtest/gtest.h>

#include "analysis/job/verdict.h"

namespace trainprof {
namespace {

// Of `steps` steps of 100 ms each, with waits for other ranks and for input.
RankAnalysis RankOf(int64_t number, int64_t rank_wait_ms, int64_t input_wait_ms,
                    int64_t steps = 10) {
  RankAnalysis rank;
  rank.rank = number;
  for (int64_t i = 0; i < steps; ++i) {
    const TraceTime begin = TraceTime{} + Milliseconds(100 * i);
    const Interval span{begin, begin + Milliseconds(100)};
    rank.steps.steps.push_back({.range = span, .span = span, .device = span, .number = i});
  }
  rank.window = Milliseconds(100 * steps);
  rank.steps.window = IntervalSet::Union({{TraceTime{}, TraceTime{} + rank.window}});
  rank.steps.device_window = rank.steps.window;
  rank.device_steps = rank.steps;
  rank.device_window = rank.window;
  rank.has_host_phases = true;
  rank.host_account = {
      {Name(HostClass::kInputWait), Title(HostClass::kInputWait),
       Milliseconds(steps * input_wait_ms)},
      {Name(HostClass::kRankWait), Title(HostClass::kRankWait), Milliseconds(steps * rank_wait_ms)},
      {Name(HostClass::kOther), Title(HostClass::kOther),
       Milliseconds(steps * (100 - rank_wait_ms - input_wait_ms))}};
  return rank;
}

std::vector<const RankAnalysis*> AllOf(const std::vector<RankAnalysis>& ranks) {
  std::vector<const RankAnalysis*> all;
  for (const RankAnalysis& rank : ranks) all.push_back(&rank);
  return all;
}

using Durations = std::vector<std::optional<Duration>>;

TEST(Slack, IsWhatARankWaitsBeyondTheOneThatWaitsLeast) {
  const std::vector<RankAnalysis> ranks = {RankOf(0, 60, 10), RankOf(1, 5, 70, 7),
                                           RankOf(2, 40, 0)};
  EXPECT_EQ(SlackOf(AllOf(ranks)),
            (Durations{Milliseconds(55), Milliseconds(0), Milliseconds(35)}));
  JobClock clock;  // waits need none
  clock.aligned = false;
  EXPECT_EQ(LatenessOf(clock, AllOf(ranks)),
            (Durations{Milliseconds(0), Milliseconds(55), Milliseconds(20)}));
}

// On GPUs the host hardly waits: then steps' begins tell who is late.
TEST(Slack, BelowOneInAHundredSaysNothingOfWhoIsLate) {
  std::vector<RankAnalysis> ranks = {RankOf(0, 1, 10), RankOf(1, 2, 10)};
  for (RankAnalysis& rank : ranks) {
    rank.host_account[1].total = Duration{rank.host_account[1].total.ns / 10};
  }
  for (Step& step : ranks[1].steps.steps) step.span.begin = step.span.begin + Milliseconds(30);
  JobClock clock;
  clock.aligned = true;
  clock.shift = {Duration{}, Duration{}};
  EXPECT_EQ(LatenessOf(clock, AllOf(ranks)), (Durations{Milliseconds(0), Milliseconds(30)}));
}

TEST(Slack, IsNotKnownUnlessAllRanksRecordedTheirWaits) {
  const std::vector<RankAnalysis> ranks = {RankOf(0, 60, 10), RankOf(1, 0, 70)};
  EXPECT_EQ(SlackOf(AllOf(ranks)), (Durations{{}, {}}));
  EXPECT_EQ(SlackOf(AllOf({RankOf(0, 60, 10)})), Durations{{}});
  const RankAnalysis one = RankOf(0, 60, 10);
  const std::vector<const RankAnalysis*> half = {&one, nullptr};
  EXPECT_EQ(SlackOf(half), (Durations{{}, {}}));
}

TEST(Slack, IsTakenOffWhatFindingsPromise) {
  RankAnalysis rank = RankOf(0, 60, 30);
  rank.findings.resize(2);
  rank.device_window = rank.window;
  rank.findings[0].gain = {10, 30, 20, 20, {.steps = 10}};
  rank.findings[1].gain = {56, 80, 60, 40};
  for (Finding& finding : rank.findings) finding.severity = Severity::kError;
  TakeSlackOff(Microseconds(900), rank);  // below one in a hundred: chance
  EXPECT_EQ(rank.findings[0].gain, (Gain{10, 30, 20, 20, {.steps = 10}}));
  TakeSlackOff(Milliseconds(55), rank);
  // Largest gain first; what gives nothing is no error.
  EXPECT_EQ(rank.findings[0].gain, (Gain{1, 25, 5, 5}));
  EXPECT_EQ(rank.findings[0].severity, Severity::kError);
  EXPECT_EQ(rank.findings[1].gain, Gain{});
  EXPECT_EQ(rank.findings[1].severity, Severity::kNote);
  ASSERT_EQ(rank.findings[0].confidence_reasons.size(), 1u);
  EXPECT_NE(rank.findings[0].confidence_reasons[0].find("waits 55.0 ms a step for a slower one"),
            std::string::npos);
}

// All steps are as long as the slowest rank's: its own time tells which that is.
TEST(JobVerdict, IsThatOfTheRankThatOthersWaitFor) {
  JobAnalysis job;
  job.ranks = {RankOf(0, 60, 10), RankOf(1, 5, 70)};
  EXPECT_EQ(SlowestRank(job).rank, 1);
  EXPECT_EQ(JobVerdict(job),
            "median step 100.0 ms; biggest loss: input wait, 70.0 ms/step (70 %); the other rank "
            "waits for it, up to 55.0 ms/step");
  EXPECT_EQ(Verdict(job.ranks[0]),
            "median step 100.0 ms; biggest loss: wait for other ranks, 60.0 ms/step (60 %)");
  job.ranks = {RankOf(0, 0, 10), RankOf(1, 0, 70)};
  EXPECT_EQ(JobVerdict(job), Verdict(job.ranks[0])) << "nothing tells them apart";
}

}  // namespace
}  // namespace trainprof
