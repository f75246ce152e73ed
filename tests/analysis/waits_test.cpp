// Who waits for whom: against jobs whose truth is known, whatever their clocks say.
#include "analysis/job/waits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/job/job.h"
#include "analysis/job/verdict.h"
#include "tests/analysis/waits_twin.h"
#include "tests/support/random_trace.h"
#include "tests/support/sanitized.h"

namespace trainprof {
namespace {

JobAnalysis JobOf(std::vector<RankDigest> digests) {
  JobAnalyzer analyzer;
  for (RankDigest& digest : digests) analyzer.Add(std::move(digest));
  JobSource source;
  source.path = "job";
  return std::move(analyzer).Finish(source, {});
}

constexpr int64_t kHoursNs = 3'600'000'000'000 * 5;

// Rank 0 comes 40 ms late to its pair in each step, and so do both to all: 40 ms, not 80.
TEST(Waits, CountALatenessOnceThatSeveralCommunicatorsShow) {
  const DrawnJob drawn = DrawJob(4, {.ranks = 4,
                                     .steps = 10,
                                     .meetings = 1,
                                     .has_pairs = true,
                                     .late_rank = 0,
                                     .late_ns = 40'000'000});
  const JobWaits waits = WaitsOf(drawn.digests);
  EXPECT_EQ(waits.late, std::vector<uint32_t>{0});
  EXPECT_NEAR(static_cast<double>(waits.ranks[0].lead.ns) / 10, 40e6, 4e6);
  EXPECT_NEAR(static_cast<double>(waits.ranks[0].caused.ns) / 10, 40e6, 4e6);
}

// Clocks hours apart change nothing: lengths alone are compared. Exact, in nanoseconds.
TEST(Waits, AreThoseOfTheSimulation) {
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(testing::Rounds(300)); ++seed) {
    Random random(seed);
    const JobDraw draw{.ranks = static_cast<int>(random.Between(2, 9)),
                       .steps = static_cast<int>(random.Between(1, 12)),
                       .meetings = static_cast<int>(random.Between(1, 4)),
                       .numbered = random.Chance(60),
                       .has_pairs = random.Chance(50),
                       .most_apart_ns = random.Chance(50) ? kHoursNs : 0};
    const DrawnJob drawn = DrawJob(seed, draw);
    const JobWaits waits = WaitsOf(drawn.digests);
    ASSERT_EQ(waits.ranks.size(), static_cast<size_t>(draw.ranks)) << seed;
    EXPECT_EQ(waits.steps, draw.steps);
    for (size_t r = 0; r < waits.ranks.size(); ++r) {
      EXPECT_EQ(waits.ranks[r].wait.ns, drawn.wait_ns[r]) << seed << " rank " << r;
      EXPECT_EQ(waits.ranks[r].exposed_wait.ns, drawn.wait_ns[r]) << seed << " rank " << r;
      EXPECT_EQ(waits.ranks[r].lead.ns, drawn.lead_ns[r]) << seed << " rank " << r;
      EXPECT_EQ(waits.ranks[r].alone, 0);
      const auto most = std::max_element(drawn.root_ns[r].begin(), drawn.root_ns[r].end());
      EXPECT_EQ(waits.ranks[r].awaited_wait.ns, *most) << seed << " rank " << r;
    }
  }
}

TEST(Waits, ClocksAreFoundWithinTheirSpread) {
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(testing::Rounds(100)); ++seed) {
    const JobDraw draw{.ranks = 5,
                       .steps = 30,
                       .most_apart_ns = kHoursNs,
                       .most_drift_ppm = 100,
                       .end_noise_ns = 20'000};
    const DrawnJob drawn = DrawJob(seed, draw);
    const JobWaits waits = WaitsOf(drawn.digests);
    for (size_t r = 1; r < waits.ranks.size(); ++r) {
      ASSERT_TRUE(waits.clocks[r]);
      EXPECT_EQ(waits.clocks[r]->beside, 0u);
      EXPECT_EQ(waits.clocks[r]->collectives, 90);
      EXPECT_LE(waits.clocks[r]->spread.ns, 40'000);
      EXPECT_NEAR(static_cast<double>(waits.clocks[r]->ahead.ns - drawn.clock_ns[r]), 0, 60'000)
          << seed;
    }
  }
}

// Ends that differ by 2 ms: what is shorter is no wait, and who is late by far is found.
TEST(Waits, AreNotFinerThanEndsAgree) {
  DrawnJob drawn = DrawJob(5, {.ranks = 4, .steps = 40, .meetings = 1, .end_noise_ns = 3'000'000});
  JobWaits waits = WaitsOf(drawn.digests);
  for (const RankWaits& rank : waits.ranks) EXPECT_LT(rank.lead.ns / 40, 1'000'000);
  drawn = DrawJob(5, {.ranks = 4,
                      .steps = 40,
                      .meetings = 1,
                      .end_noise_ns = 3'000'000,
                      .late_rank = 2,
                      .late_ns = 20'000'000});
  waits = WaitsOf(drawn.digests);
  EXPECT_EQ(waits.late, std::vector<uint32_t>{2});
  EXPECT_EQ(waits.ranks[2].late_steps, 40);
}

TEST(Waits, NameTheLateRankInEveryOrderOfArrival) {
  const DrawnJob drawn = DrawJob(
      3, {.ranks = 6, .steps = 20, .has_pairs = true, .late_rank = 4, .late_ns = 8'000'000});
  const JobAnalysis expected = JobOf(drawn.digests);
  EXPECT_EQ(expected.waits.late, std::vector<uint32_t>{4});
  EXPECT_FALSE(expected.waits.changes);
  EXPECT_TRUE(expected.waits.is_whole);
  EXPECT_EQ(SlowestRank(expected).rank, 4);
  Random random(1);
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<RankDigest> shuffled = drawn.digests;
    for (size_t i = shuffled.size(); i > 1; --i) {
      std::swap(shuffled[i - 1],
                shuffled[static_cast<size_t>(random.Between(0, static_cast<int64_t>(i) - 1))]);
    }
    const JobAnalysis job = JobOf(std::move(shuffled));
    EXPECT_EQ(job.waits, expected.waits);
    EXPECT_EQ(job.ranks, expected.ranks);
    EXPECT_EQ(JobVerdict(job), JobVerdict(expected));
  }
}

// Traces of three ranks of eight: what is there is told, and that more may be missing.
TEST(Waits, OfSomeRanksSayThatOthersAreMissing) {
  DrawnJob drawn = DrawJob(9, {.ranks = 8, .steps = 20, .late_rank = 6, .late_ns = 9'000'000});
  const std::vector<RankDigest> some = {drawn.digests[1], drawn.digests[3], drawn.digests[6]};
  const JobAnalysis job = JobOf(some);
  EXPECT_EQ(SlowestRank(job).rank, 6);
  EXPECT_FALSE(job.waits.is_whole);
  const JobAnalysis without = JobOf({drawn.digests[1], drawn.digests[3]});
  EXPECT_FALSE(without.waits.is_whole);
}

// Without numbers, recordings that begin and end at other steps are laid beside each other by their ends.
TEST(Waits, RecordingsOfOtherMomentsAreLaidBesideEachOther) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    DrawnJob drawn = DrawJob(seed, {.ranks = 3,
                                    .steps = 30,
                                    .meetings = 2,
                                    .numbered = false,
                                    .most_apart_ns = kHoursNs,
                                    .late_rank = 1,
                                    .late_ns = 5'000'000});
    std::vector<CollectiveCall>& calls = drawn.digests[2].collectives[0].calls;
    const auto cut = static_cast<ptrdiff_t>(2 * (seed % 7));
    calls.erase(calls.begin(), calls.begin() + cut);
    calls.erase(calls.end() - static_cast<ptrdiff_t>(seed % 5), calls.end());
    for (size_t i = 0; i < calls.size(); ++i) calls[i].sequence = static_cast<int64_t>(i);
    const Meetings meetings = MatchCollectives(drawn.digests);
    ASSERT_EQ(meetings.meetings.size(), 60u) << seed;
    EXPECT_TRUE(meetings.doubts.empty());
    for (size_t m = 0; m < 60; ++m) {
      const bool is_there = m >= 2 * (seed % 7) && m < 60 - seed % 5;
      EXPECT_EQ(meetings.meetings[m].count, is_there ? 3u : 2u) << seed << " " << m;
    }
  }
}

// All alike: any shift would do, so none is taken.
TEST(Waits, WhatIsNotSureIsNotMatched) {
  std::vector<OrderedCall> mine;
  for (int i = 0; i < 20; ++i) mine.push_back({0, {{i * 1000}, {i * 1000 + 100}}});
  const std::span<const OrderedCall> all = mine;
  EXPECT_EQ(SureShift(all, all), 0);
  EXPECT_EQ(SureShift(all.first(18), all), std::nullopt);
  // Where an operation is another one, its place is known.
  mine[7].operation = 1;
  EXPECT_EQ(SureShift(all.subspan(2), all), 2);
  EXPECT_EQ(SureShift(all, all.subspan(2)), -2);
  for (OrderedCall& call : mine) call.operation = 0;
  mine[7].when.end = mine[7].when.end + Nanoseconds(1);
  std::vector<OrderedCall> other = mine;
  for (OrderedCall& call : other) call.operation = 2;
  EXPECT_EQ(SureShift(all, other), std::nullopt) << "nothing is the same";
  EXPECT_EQ(SureShift({}, all), std::nullopt);
}

RankDigest RankWith(int64_t number, std::vector<Collectives> collectives) {
  RankDigest digest;
  digest.analysis.rank = number;
  digest.analysis.place = number;
  digest.analysis.world_size = 3;
  digest.analysis.window = Milliseconds(10);
  digest.collectives = std::move(collectives);
  return digest;
}

Collectives Group(std::string members, std::string operation, std::vector<Interval> when) {
  Collectives all{"g" + members, std::move(members), std::move(operation), 0, true, {}};
  for (size_t i = 0; i < when.size(); ++i) {
    all.calls.push_back({static_cast<int64_t>(40 + i), when[i], when[i].Length()});
  }
  return all;
}

// Rank 2 keeps rank 1 waiting among [1, 2]; rank 0 then waits for rank 1 among [0, 1].
TEST(Waits, OfAChainBelongToItsRoot) {
  const auto ms = [](int64_t from, int64_t to) {
    return Interval{{from * 1'000'000}, {to * 1'000'000}};
  };
  const JobAnalysis job = JobOf({RankWith(0, {Group("[0, 1]", "allreduce", {ms(1, 8)})}),
                                 RankWith(1, {Group("[1, 2]", "allreduce", {ms(1, 6)}),
                                              Group("[0, 1]", "allreduce", {ms(7, 8)})}),
                                 RankWith(2, {Group("[1, 2]", "allreduce", {ms(5, 6)})})});
  EXPECT_EQ(job.waits.ranks[0].wait, Milliseconds(6));
  EXPECT_EQ(job.waits.ranks[0].awaited, 2u);
  EXPECT_EQ(job.waits.ranks[0].awaited_wait, Milliseconds(4));
  EXPECT_EQ(job.waits.ranks[1].wait, Milliseconds(4));
  EXPECT_EQ(job.waits.ranks[1].awaited, 2u);
  EXPECT_EQ(job.waits.ranks[2].wait, Milliseconds(0));
  EXPECT_EQ(job.waits.late, std::vector<uint32_t>{2});
}

TEST(Waits, OfAReceiverAreForItsSender) {
  const auto us = [](int64_t from, int64_t to) { return Interval{{from * 1000}, {to * 1000}}; };
  const JobAnalysis job = JobOf({RankWith(0, {Group("[0, 1]", "send", {us(3000, 3010)})}),
                                 RankWith(1, {Group("[0, 1]", "recv", {us(500, 3020)})})});
  EXPECT_EQ(job.waits.ranks[1].wait, Microseconds(2510));
  EXPECT_EQ(job.waits.ranks[1].awaited, 0u);
  EXPECT_FALSE(job.waits.clocks[1]) << "who has sent does not wait for who receives";
}

TEST(Waits, ABroadcastTellsNothingOfWhoIsLate) {
  const auto us = [](int64_t from, int64_t to) { return Interval{{from * 1000}, {to * 1000}}; };
  const JobWaits waits =
      WaitsOf(std::vector{RankWith(0, {Group("[0, 1]", "broadcast", {us(0, 10)})}),
                          RankWith(1, {Group("[0, 1]", "broadcast", {us(0, 900)})})});
  EXPECT_FALSE(waits.Any());
}

TEST(Waits, HiddenBehindComputeAreNotExposed) {
  Collectives early = Group("[0, 1]", "allreduce", {{{0}, {1000}}});
  early.calls[0].exposed = Nanoseconds(300);
  const JobWaits waits = WaitsOf(std::vector{
      RankWith(0, {early}), RankWith(1, {Group("[0, 1]", "allreduce", {{{800}, {1000}}})})});
  EXPECT_EQ(waits.ranks[0].wait, Nanoseconds(800));
  EXPECT_EQ(waits.ranks[0].exposed_wait, Nanoseconds(100)) << "it began 700 ns before that";
}

TEST(Waits, TellRanksThatAreLateInTurnFromOneThatAlwaysIs) {
  std::vector<std::vector<Interval>> when(4);
  int64_t at = 0;
  for (int64_t step = 0; step < 40; ++step, at += 100'000'000) {
    const auto late = static_cast<size_t>(step % 4);
    for (size_t r = 0; r < 4; ++r) {
      when[r].push_back({{at + (r == late ? 20'000'000 : 0)}, {at + 30'000'000}});
    }
  }
  std::vector<RankDigest> digests;
  for (size_t r = 0; r < 4; ++r) {
    digests.push_back(RankWith(static_cast<int64_t>(r), {Group("", "allreduce", when[r])}));
    for (int64_t step = 0; step < 40; ++step) {
      const Interval span{{step * 100'000'000}, {(step + 1) * 100'000'000}};
      digests[r].analysis.steps.steps.push_back(
          {.range = span, .span = span, .device = span, .number = step});
    }
    digests[r].analysis.window = Milliseconds(4000);
  }
  const JobAnalysis job = JobOf(digests);
  EXPECT_TRUE(job.waits.changes);
  EXPECT_EQ(job.waits.late_steps, 40);
  EXPECT_EQ(job.waits.ranks[0].late_steps, 10);
  EXPECT_NE(JobVerdict(job).find("who comes late changes: rank 0 most often, in 10 of 40 steps"),
            std::string::npos)
      << JobVerdict(job);
}

TEST(Waits, OfRanksThatComeLateTogetherAreForAllOfThem) {
  DrawnJob drawn = DrawJob(2, {.ranks = 8, .steps = 30, .meetings = 1});
  for (size_t r : {6u, 7u}) {
    for (CollectiveCall& call : drawn.digests[r].collectives[0].calls) {
      call.when.begin = call.when.end - Microseconds(30 + (r == 6 ? 1 : 0) * (call.sequence % 2));
    }
  }
  const JobWaits waits = WaitsOf(drawn.digests);
  std::vector<uint32_t> late = waits.late;
  std::sort(late.begin(), late.end());
  EXPECT_EQ(late, (std::vector<uint32_t>{6, 7}));
  EXPECT_FALSE(waits.changes);
}

Finding FindingOf(std::string code, double low, double high) {
  Finding finding;
  finding.rule = "some-rule";
  finding.code = std::move(code);
  finding.gain = {low, high, (low + high) / 2, (low + high) / 2};
  return finding;
}

// Rank 1 comes 5 ms late in each step; the rest are alike.
std::vector<RankDigest> OneLate() {
  std::vector<RankDigest> digests;
  for (int64_t r = 0; r < 3; ++r) {
    std::vector<Interval> when;
    for (int64_t step = 0; step < 10; ++step) {
      when.push_back({{step * 20'000'000 + (r == 1 ? 15'000'000 : 10'000'000)},
                      {step * 20'000'000 + 16'000'000}});
    }
    digests.push_back(RankWith(r, {Group("", "allreduce", when)}));
    for (int64_t step = 0; step < 10; ++step) {
      const Interval span{{step * 20'000'000}, {(step + 1) * 20'000'000}};
      digests.back().analysis.steps.steps.push_back(
          {.range = span, .span = span, .device = span, .number = step});
    }
    digests.back().analysis.window = Milliseconds(200);
  }
  return digests;
}

TEST(Gains, OfARankThatWaitsAreNothing) {
  std::vector<RankDigest> digests = OneLate();
  digests[0].analysis.findings = {FindingOf("TP101", 2, 9)};
  digests[1].analysis.findings = {FindingOf("TP201", 1, 3), FindingOf("TP301", 6, 8)};
  const JobAnalysis job = JobOf(digests);
  EXPECT_EQ(job.ranks[0].findings[0].gain, Gain{});
  EXPECT_NE(job.ranks[0].findings[0].confidence_reasons.back().find("most of it for rank 1"),
            std::string::npos);
  // It alone is late, by 5 ms: no fix of it gives more.
  EXPECT_EQ(job.ranks[1].findings[0].gain, (Gain{5, 5, 5, 5}));
  EXPECT_EQ(job.ranks[1].findings[1].gain, (Gain{1, 3, 2, 2}));
}

TEST(Gains, OfWhatAllRanksHaveAreThoseOfAll) {
  std::vector<RankDigest> digests = OneLate();
  for (RankDigest& digest : digests) digest.analysis.findings = {FindingOf("TP101", 4, 8)};
  const JobAnalysis job = JobOf(digests);
  EXPECT_EQ(job.ranks[1].findings[0].gain, (Gain{4, 8, 6, 6}));
  EXPECT_EQ(job.ranks[2].findings[0].gain, Gain{}) << "by itself";
  // Ranks that are all alike.
  for (RankDigest& digest : digests) digest.collectives = OneLate()[0].collectives;
  const JobAnalysis alike = JobOf(digests);
  for (const RankAnalysis& rank : alike.ranks) EXPECT_EQ(rank.findings[0].gain, (Gain{4, 8, 6, 6}));
  EXPECT_TRUE(alike.waits.late.empty());
}

TEST(Waits, TheLateRanksCauseIsWhatItDoesLonger) {
  std::vector<RankDigest> digests = OneLate();
  for (RankDigest& digest : digests) {
    std::array<Duration, kHostClasses> host{};
    host[static_cast<size_t>(HostClass::kForward)] = Milliseconds(100);
    host[static_cast<size_t>(HostClass::kInputWait)] =
        Milliseconds(digest.analysis.rank == 1 ? 50 : 0);
    host[static_cast<size_t>(HostClass::kRankWait)] =
        Milliseconds(digest.analysis.rank == 1 ? 0 : 50);
    digest.analysis.host_account = LinesOf<HostClass>(host);
    digest.analysis.has_host_phases = true;
  }
  const JobAnalysis job = JobOf(digests);
  EXPECT_EQ(job.late_cause.name, Name(HostClass::kInputWait));
  EXPECT_NEAR(job.late_cause.more_ms, 5, 1e-9);
  EXPECT_NE(JobVerdict(job).find("other ranks wait for it, up to 5.0 ms/step, in 10 of 10 steps: "
                                 "input wait takes 5.0 ms a step longer"),
            std::string::npos)
      << JobVerdict(job);
}

TEST(Waits, OfTheCorpusJobAreForRank7) {
  const std::filesystem::path path = std::filesystem::path(TRAINPROF_CORPUS) / "dlrm_8ranks";
  if (std::string_view(TRAINPROF_CORPUS).empty() || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "no corpus folder: set TRAINPROF_CORPUS";
  }
  const Result<JobAnalysis> job = AnalyzePath(path, {});
  ASSERT_TRUE(job.ok()) << job.error();
  const JobWaits& waits = job.value().waits;
  EXPECT_EQ(waits.collectives, 8);
  EXPECT_TRUE(waits.is_whole);
  EXPECT_EQ(waits.late, std::vector<uint32_t>{7});
  // In its first four collectives, 7.625 ms in the first: by hand, of the traces' own lengths.
  EXPECT_EQ(waits.ranks[1].awaited, 7u);
  EXPECT_EQ(waits.ranks[1].awaited_wait, Microseconds(7625 + 1017 + 162 + 125 + 221));
  EXPECT_EQ(waits.ranks[7].lead, Microseconds(504 + 509 + 162 + 124 + 9));
  EXPECT_EQ(job.value().late_cause.name, Name(DeviceClass::kIdleLaunchBound));
  for (const auto& clock : waits.clocks) {
    ASSERT_TRUE(clock);
    EXPECT_LE(std::abs(clock->ahead.ns), 3000);
    EXPECT_LE(clock->spread, Microseconds(2));
  }
  for (const RankAnalysis& rank : job.value().ranks) {
    if (rank.rank == 7) continue;
    for (const Finding& finding : rank.findings) {
      EXPECT_EQ(finding.gain.high_ms_per_step, 0) << rank.rank;
    }
  }
}

}  // namespace
}  // namespace trainprof
