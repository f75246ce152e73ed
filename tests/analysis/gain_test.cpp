#include "analysis/gain.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/graph/what_if.h"
#include "analysis/job/analysis.h"
#include "analysis/job/gain_text.h"
#include "tests/analysis/random_program.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_script.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

Change AllRowsOf(const Trace& trace, Edit edit) {
  Change change{edit, {}, kNoDevice, false};
  if (edit == Edit::kRemoveWaits) {
    for (uint32_t call = 0; call < trace.api.size(); ++call) change.rows.push_back(Row{call});
  }
  for (uint32_t range = 0; edit == Edit::kFeedInput && range < trace.ranges.size(); ++range) {
    if (trace.Facts(trace.ranges.name[range]).user_phase == Phase::kInputWait) {
      change.rows.push_back(Row{range});
    }
  }
  return change;
}

// What two changes make of a run is nowhere slower than what either makes of it, and somewhere faster.
TEST(Gain, OfTwoChangesEndsNothingLaterThanThatOfEither) {
  int faster = 0;
  for (uint64_t seed = 0; seed < testing::Rounds<uint64_t>(400); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Simulation run = Simulate(DrawProgram(random));
    const RankModel model(run.trace);
    const Change waits = AllRowsOf(run.trace, Edit::kRemoveWaits);
    const Change input = AllRowsOf(run.trace, Edit::kFeedInput);
    const auto ends_with = [&](std::initializer_list<const Change*> changes) {
      const std::vector<const Change*> all(changes);
      return Replay(*model.graph, CostsAfter(run.trace, *model.graph, all, {}));
    };
    const std::vector<int64_t> of_both = ends_with({&input, &waits});
    const std::vector<int64_t> of_input = ends_with({&input});
    const std::vector<int64_t> of_waits = ends_with({&waits});
    for (NodeId node = 0; node < model.graph->size(); ++node) {
      ASSERT_LE(of_both[node], std::min(of_input[node], of_waits[node])) << "node " << node;
    }
    if (of_both.back() < std::min(of_input.back(), of_waits.back())) ++faster;
  }
  EXPECT_GT(faster, 10);
}

TEST(Gain, IsWithinItsBoundsAndNoMoreThanAStep) {
  for (uint64_t seed = 0; seed < testing::Rounds<uint64_t>(400); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Simulation run = Simulate(DrawProgram(random));
    const RankModel model(run.trace);
    const double step = model.step_replay->MeanNs() / 1e6;
    for (const Edit edit : {Edit::kRemoveWaits, Edit::kFeedInput}) {
      const Change change = AllRowsOf(run.trace, edit);
      if (change.rows.empty()) continue;
      const Gain gain = GainOf(model, Finding{}, change);
      ASSERT_GE(gain.low_ms_per_step, 0);
      ASSERT_LE(gain.low_ms_per_step, gain.expected_ms_per_step);
      ASSERT_LE(gain.expected_ms_per_step, gain.high_ms_per_step);
      ASSERT_LE(gain.high_ms_per_step, step + 1e-9);
    }
  }
}

// The kernel that begins 3 ms late waited for nothing that is recorded.
TEST(Gain, IsNotClaimedWhereTheReplayDoesNotGiveTheRun) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    repeat 8 every 5000
      step 0 5000 step
      call 10 20 cudaLaunchKernel | corr=1
      call 50 60 cudaLaunchKernel | corr=3
      call 70 4905 cudaStreamSynchronize | corr=4
    end
    stream 0 7
    repeat 8 every 5000
      kernel 15 1000 forward | corr=1
      kernel 4000 4900 backward | corr=3
      sync 70 4905 Stream Sync | corr=4
    end)");
  const RankModel model(trace);
  EXPECT_FALSE(IsTrusted(model));
  EXPECT_EQ(GainOf(model, Finding{}, AllRowsOf(trace, Edit::kRemoveWaits)), Gain{});
  Finding finding;
  finding.cost = Milliseconds(20);
  EXPECT_EQ(GainOf(model, finding, {Edit::kFillIdle, {}, DeviceId{0}}), Gain{})
      << "nor by its cost";
  EXPECT_EQ(GainOf(model, finding, {Edit::kDropHostWork, {}}), Gain{});
  const RankAnalysis rank = Analyze(model);
  EXPECT_EQ(GainText(rank, Gain{}), "not claimed");
  EXPECT_EQ(rank.residual.name, "backward");
  EXPECT_NEAR(rank.DevicePerStepMs(rank.residual.total), 3.0, 0.01);
  EXPECT_NE(
      ReplayLine(rank).find("most of what nothing explains stands before backward (3.0 ms/step)"),
      std::string::npos)
      << ReplayLine(rank);
}

constexpr char kSyncAndPause[] = R"(
      thread 1
      repeat 20 every 5000
        step 0 5000 step
        call 10 20 cudaLaunchKernel | corr=1
        call 70 2005 cudaStreamSynchronize | corr=2
        {}
      end
      stream 0 7
      repeat 20 every 5000
        kernel 15 2000 forward | corr=1
        sync 70 2005 Stream Sync | corr=2
      end)";

// That it waited for another thread, which it had told to work, is known.
TEST(Gain, IsNotInDoubtWhereTheThreadWaitsForAnotherOne) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    repeat 20 every 5000
      step 0 5000 step
      cpu 0 5000 | used=200 waits=2
      call 10 20 cudaLaunchKernel | corr=1
      call 70 2005 cudaStreamSynchronize | corr=2
      call 2010 2020 cudaLaunchKernel | corr=3
      call 4920 4930 cudaLaunchKernel | corr=4
    end
    thread 2
    repeat 20 every 5000
      call 2040 2050 cudaMemcpyAsync | corr=6
      call 4880 4900 cudaMemsetAsync | corr=5
    end
    stream 0 7
    repeat 20 every 5000
      kernel 15 2000 forward | corr=1
      sync 70 2005 Stream Sync | corr=2
      kernel 2015 2030 loss | corr=3
      copy 2045 2060 Memcpy DtoD (Device -> Device) | corr=6 bytes=100
      kernel 4895 4910 fill | corr=5
      kernel 4925 4940 backward | corr=4
    end)");
  const RankModel model(trace);
  EXPECT_TRUE(model.unnamed_waits.intervals().empty());
  const Gain gain = GainOf(model, Finding{}, AllRowsOf(trace, Edit::kRemoveWaits));
  EXPECT_NEAR(gain.expected_ms_per_step, 1.93, 0.1);
  EXPECT_GT(gain.low_ms_per_step, 1.8);
}

// A look shows that the thread waited behind the sync: perhaps for a loader, which is no faster without the sync.
TEST(Gain, MayBeNothingWhereTheThreadWaitsForWhatNothingTells) {
  const auto gain_with = [](const char* look) {
    const Trace trace = TraceFromScript(fmt::format(kSyncAndPause, look));
    const RankModel model(trace);
    return GainOf(model, Finding{}, AllRowsOf(trace, Edit::kRemoveWaits));
  };
  const Gain waited = gain_with("cpu 0 5000 | used=2100 waits=2");
  const Gain computed = gain_with("cpu 0 5000 | used=4990");
  EXPECT_NEAR(waited.expected_ms_per_step, computed.expected_ms_per_step, 0.01);
  EXPECT_EQ(waited.low_ms_per_step, 0);
  EXPECT_GT(computed.low_ms_per_step, 1.8);
  EXPECT_NEAR(waited.sources.answers_ms, 1.93, 0.1);
  EXPECT_EQ(computed.sources.answers_ms, 0);
  EXPECT_NEAR(computed.sources.runs_ms, 0.05, 0.001) << "a hundredth of the step";
  EXPECT_EQ(computed.sources.replay_ms, 0);
  EXPECT_EQ(computed.sources.launches_ms, 0);
}

TEST(Gain, WhatRunsDifferByTellsNotWhichOfTwoIsMore) {
  const Gain more{.low_ms_per_step = 1,
                  .high_ms_per_step = 2.4,
                  .expected_ms_per_step = 1.7,
                  .sources = {.runs_ms = 0.7}};
  const Gain less{.low_ms_per_step = 0.5,
                  .high_ms_per_step = 1.9,
                  .expected_ms_per_step = 1.2,
                  .sources = {.runs_ms = 0.7}};
  EXPECT_FALSE(MayBeEqual(more, less));
  Gain unsure = less;
  unsure.sources = {.answers_ms = 1.4};
  EXPECT_FALSE(MayBeEqual(more, unsure)) << "though that one may be as much";
  Gain both_unsure = more;
  both_unsure.sources = unsure.sources;
  EXPECT_TRUE(MayBeEqual(both_unsure, unsure));
}

// While a thread makes its batch itself no worker's pace is the limit: what it waits for else may well go.
TEST(Gain, OfOtherChangesIsKnownWhereTheLoopMakesItsBatches) {
  const auto gain_with = [](std::string_view wait, std::string_view look) {
    const Trace trace = TraceFromScript(fmt::format(R"(
      thread 1
      repeat 20 every 5000
        step 0 5000 step
        annotation 0 1000 {}
        {}
        call 1010 1020 cudaLaunchKernel | corr=1
        call 1030 3005 cudaStreamSynchronize | corr=2
      end
      stream 0 7
      repeat 20 every 5000
        kernel 1015 3000 forward | corr=1
        sync 1030 3005 Stream Sync | corr=2
      end)",
                                                    wait, look));
    const RankModel model(trace);
    return GainOf(model, Finding{}, AllRowsOf(trace, Edit::kRemoveWaits));
  };
  constexpr char kWorkers[] = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
  constexpr char kAlone[] = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  EXPECT_EQ(gain_with(kWorkers, "").low_ms_per_step, 0);
  EXPECT_GT(gain_with(kAlone, "").low_ms_per_step, 1.7);
  EXPECT_EQ(gain_with("data_wait", "cpu 0 1000 | used=20 waits=1").low_ms_per_step, 0);
  EXPECT_GT(gain_with("data_wait", "cpu 0 1000 | used=990").low_ms_per_step, 1.7);
  EXPECT_EQ(gain_with("data_wait", "cpu 0 5000 | used=2200 waits=2").low_ms_per_step, 0)
      << "for 0.8 ms of the step it waited for what nothing tells: perhaps here";
}

// Of operations whose launch is not recorded nobody knows what they waited for: the gain is wider, not elsewhere.
TEST(Gain, IsWiderWhereLaunchesAreMissing) {
  const auto gain_with = [](std::string_view second_launch) {
    const Trace trace = TraceFromScript(fmt::format(R"(
      thread 1
      repeat 12 every 5000
        step 0 5000 step
        call 10 20 cudaLaunchKernel | corr=1
        call 70 2005 cudaStreamSynchronize | corr=2
        {}
      end
      stream 0 7
      repeat 12 every 5000
        kernel 15 2000 forward | corr=1
        kernel 2600 3500 backward | corr=3
        sync 70 2005 Stream Sync | corr=2
      end)",
                                                    second_launch));
    const RankModel model(trace);
    EXPECT_EQ(model.launch_doubt.empty(), !second_launch.empty()) << model.launch_doubt;
    return GainOf(model, Finding{}, AllRowsOf(trace, Edit::kRemoveWaits));
  };
  const Gain known = gain_with("call 2590 2610 cudaLaunchKernel | corr=3");
  const Gain open = gain_with("");
  EXPECT_GT(known.low_ms_per_step, 0);
  EXPECT_LE(open.low_ms_per_step, known.low_ms_per_step);
  EXPECT_GE(open.high_ms_per_step, known.high_ms_per_step);
}

// Who takes a batch that is there waits for no loader: how fast that is nobody knows, with or without the row.
TEST(Gain, OfOtherChangesIsTheSameWhereBatchesAreThere) {
  const auto gain_with = [](std::string_view input) {
    const Trace trace = TraceFromScript(fmt::format(R"(
      thread 1
      repeat 12 every 200
        step 0 200 step
        {}
        call 45 50 cudaLaunchKernel | corr=1
        call 95 100 cudaLaunchKernel | corr=2
        call 145 150 cudaLaunchKernel | corr=3
      end
      stream 0 7
      repeat 12 every 200
        kernel 52 60 a | corr=1
        kernel 102 110 b | corr=2
        kernel 152 160 c | corr=3
      end)",
                                                    input));
    const RankModel model(trace);
    Change change{Edit::kLaunchAsGraph, {}};
    for (uint32_t call = 0; call < trace.api.size(); ++call) change.rows.push_back(Row{call});
    return GainOf(model, Finding{}, change);
  };
  const Gain without = gain_with("");
  const Gain taken = gain_with("annotation 0 20 next(loader)");
  const Gain waited = gain_with("annotation 0 40 next(loader)\nannotation 50 94 load batch");
  EXPECT_GT(without.low_ms_per_step, 0.05);
  EXPECT_GT(taken.low_ms_per_step, 0.05);
  EXPECT_LE(waited.low_ms_per_step, without.low_ms_per_step);
}

// A loop on two cores that waits 6 of each step's 10 ms for its loader, and computes so much of the time, all its
// threads together.
Trace OnTwoCores(double percent_of_one) {
  TraceBuilder builder;
  const TrackId loop = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  const auto add = [&](const char* name, Interval at) {
    builder.AddRange(
        {.begin = at.begin, .end = at.end, .name = builder.Intern(name), .track = loop},
        RangeKind::kUserAnnotation);
  };
  const std::vector<Arg> args{
      {builder.Intern("user"), {.type = ArgValue::Type::kDouble, .real = percent_of_one}}};
  for (int64_t step = 0; step < 20; ++step) {
    const TraceTime begin = TraceTime{} + Milliseconds(10 * step);
    const TraceTime fed = begin + Milliseconds(6);
    const TraceTime end = begin + Milliseconds(10);
    add("step", {begin, end});
    add("data_wait", {begin, fed});
    add("forward", {fed, end});
    builder.AddCounter({.begin = fed,
                        .end = fed,
                        .name = builder.Intern("CPU % of one core"),
                        .track = loop,
                        .category = builder.Intern("host"),
                        .args = builder.AddArgs(args)});
  }
  builder.trace().environment.emplace_back("cores", "2");
  return std::move(builder).Build();
}

// What the loop and its workers compute has to fit in the cores: 140 % of one are 7 ms of 10 with both, and takes
// up to 1.2 times as long side by side.
TEST(Gain, OfWorkersIsNoSurerThanTheCoresThereAre) {
  const auto of_input = [](const Trace& trace) {
    const RankModel model(trace);
    Finding finding;
    return GainOf(model, finding, AllRowsOf(trace, Edit::kFeedInput));
  };
  const Gain idle = of_input(OnTwoCores(20));
  EXPECT_NEAR(idle.low_ms_per_step, 10 - 1.2 * 4, 0.2) << "no core is short";
  EXPECT_NEAR(idle.high_ms_per_step, 6, 0.2);
  const Gain busy = of_input(OnTwoCores(140));
  EXPECT_NEAR(busy.low_ms_per_step, 10 - 1.2 * 7, 0.2);
  EXPECT_NEAR(busy.high_ms_per_step, 6, 0.2);
  EXPECT_NEAR(of_input(OnTwoCores(200)).low_ms_per_step, 0, 0.001) << "no core has anything left";
}

TEST(Gain, IsSaidSoThatItIsAnInterval) {
  RankAnalysis rank;
  rank.steps.steps.resize(3);
  EXPECT_EQ(GainText(rank, {1.0, 1.4, 1.2}), "1.0 to 1.4 ms/step");
  EXPECT_EQ(GainText(rank, {1.011, 1.032, 1.02}), "1.01 to 1.03 ms/step");
  EXPECT_EQ(GainText(rank, {0, 2.3, 0.8}), "0.0 to 2.3 ms/step, 0.8 expected");
  EXPECT_EQ(GainText(rank, {0.01, 0.09, 0.03}), "10.0 to 90.0 us/step, 30.0 expected");
}

// What one run does not show of how far runs differ is more where others had the thread's processor.
TEST(Gain, IsLessSureWhereTheHostIsContended) {
  const auto width = [](const char* look) {
    const Trace trace = TraceFromScript(fmt::format(kSyncAndPause, look));
    const RankModel model(trace);
    const Gain gain = GainOf(model, Finding{}, AllRowsOf(trace, Edit::kRemoveWaits));
    EXPECT_NEAR(gain.expected_ms_per_step, 1.93, 0.1);
    return gain.high_ms_per_step - gain.low_ms_per_step;
  };
  const double alone = width("");
  EXPECT_NEAR(alone, 2 * 0.05, 0.01) << "a hundredth of the step to each side";
  EXPECT_NEAR(width("cpu 0 5000 | used=4950 interruptions=2"), alone, 0.001) << "1 % preempted";
  EXPECT_NEAR(width("cpu 0 5000 | used=4800 interruptions=2"), 2 * alone, 0.001) << "4 %";
  EXPECT_NEAR(width("cpu 0 5000 | used=4800 interruptions=2 waits=1"), alone, 0.001)
      << "or it waited";
}

// A wait for the device and 1.3 ms of the host's own behind it: without either the two would run side by side.
constexpr std::string_view kWaitThenWork = R"(
  thread 1
  repeat 20 every 5000
    step 0 5000 step
    call 10 20 cudaLaunchKernel | corr=1
    call 30 3005 cudaStreamSynchronize | corr=2
    annotation 3010 4995 tokenize
  end
  stream 0 7
  repeat 20 every 5000
    kernel 15 3000 forward | corr=1
    sync 30 3005 Stream Sync | corr=2
  end)";

Gain FirstGain(const std::string& script) {
  const RankAnalysis rank = Analyze(TraceFromScript(script));
  return rank.findings.empty() ? Gain{} : rank.findings[0].gain;
}

// Two calls of each step were recorded, at a microsecond each: the launch stands before what the device waits for, the
// wait's own time does not.
TEST(Gain, IsLessSureByWhatRecordingTook) {
  const Gain recorded = FirstGain("recording\n" + std::string(kWaitThenWork));
  const Gain imported = FirstGain(std::string(kWaitThenWork));
  ASSERT_GT(imported.low_ms_per_step, 1);
  const double took = imported.expected_ms_per_step - recorded.expected_ms_per_step;
  EXPECT_GT(took, 0.0005) << "expected without it";
  EXPECT_LT(took, 0.0025);
  EXPECT_NEAR(imported.low_ms_per_step - recorded.low_ms_per_step, 7 * took, 1e-6)
      << "a real one took seven times as much";
  EXPECT_NEAR(imported.high_ms_per_step - recorded.high_ms_per_step, took / 2, 1e-6) << "or half";
  EXPECT_NEAR(recorded.sources.recording_ms, 6 * took, 1e-6);
  EXPECT_EQ(imported.sources.recording_ms, 0);
}

// The stack of each wait was taken, which the host does when the wait is over.
TEST(Gain, LeavesOutWhatStacksTook) {
  std::string script = "recording\n" + std::string(kWaitThenWork);
  const Gain without = FirstGain(script);
  const std::string sync = "cudaStreamSynchronize | corr=2";
  script.insert(script.find(sync) + sync.size(), " stack=/home/me/train.cpp(88): main");
  const Gain with = FirstGain(script);
  ASSERT_GT(without.low_ms_per_step, 1);
  EXPECT_NEAR(with.sources.recording_ms - without.sources.recording_ms, 0.060, 0.006);
  EXPECT_NEAR(without.expected_ms_per_step - with.expected_ms_per_step, 0.010, 0.001);
}

// Where the device has work all the time, what the host does longer is nothing that a gain holds.
TEST(Gain, HasNothingOfRecordingWhereTheDeviceIsBusy) {
  const std::string script = R"(
  thread 1
  repeat 20 every 1000
    step 0 1000 step
    call 10 20 cudaLaunchKernel | corr=1
    call 30 40 cudaMemcpyAsync | corr=2
  end
  stream 0 7
  repeat 20 every 5000
    kernel 100 3100 forward | corr=1
    copy 3100 5100 Memcpy HtoD (Pinned -> Device) | corr=2 bytes=48000000
  end)";
  const Gain gain = FirstGain("recording\n" + script);
  ASSERT_GT(gain.high_ms_per_step, 1);
  EXPECT_EQ(gain.sources.recording_ms, 0);
}

// Six of 29 steps pause, every fifth one: a longer run loses a fifth of a pause a step.
TEST(Gain, OfEveryFifthStepIsAFifth) {
  std::string script = "thread 1\n";
  std::string device = "stream 0 7\n";
  int64_t at = 0;
  for (int step = 0; step < 30; ++step) {
    const int64_t pause = step % 5 == 1 ? 10'000 : 0;
    script += fmt::format("step {} {} step\n", at, at + 2000 + pause);
    if (pause > 0) script += fmt::format("annotation {} {} evaluate\n", at + 5, at + pause);
    script += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", at + pause + 10,
                          at + pause + 20, step + 1);
    device += fmt::format("kernel {} {} forward | corr={}\n", at + pause + 15, at + pause + 1990,
                          step + 1);
    at += 2000 + pause;
  }
  const RankAnalysis rank = Analyze(TraceFromScript(script + device));
  ASSERT_FALSE(rank.findings.empty());
  const Gain& gain = rank.findings[0].gain;
  ASSERT_EQ(gain.spread.every, 5);
  const double pause = gain.spread.rare_ms;
  const double held =
      pause * static_cast<double>(gain.spread.rare_steps) / static_cast<double>(gain.spread.steps);
  ASSERT_GT(std::abs(held - pause / 5), 0.01) << "the recording holds another share";
  EXPECT_NEAR(gain.expected_ms_per_step, pause / 5, 0.02);
  EXPECT_LE(gain.low_ms_per_step, std::min(held, pause / 5));
  EXPECT_GE(gain.high_ms_per_step, std::max(held, pause / 5));
  EXPECT_LT(gain.sources.steps_ms, pause / 50) << "steps differ, those of five do not";
}

Finding FindingOf(Severity severity, double gain_ms, double half_width_ms) {
  Finding finding;
  finding.severity = severity;
  finding.gain = {gain_ms - half_width_ms, gain_ms + half_width_ms, gain_ms, gain_ms};
  return finding;
}

TEST(Gain, OrdersFindingsAndThoseThatGiveTheSameStayAsTheyStood) {
  RankAnalysis rank;
  rank.device_window = Milliseconds(100);
  rank.findings = {FindingOf(Severity::kError, 1, 0.1), FindingOf(Severity::kError, 9.7, 0.3),
                   FindingOf(Severity::kWarning, 9.9, 0.3), FindingOf(Severity::kWarning, 20, 0.1),
                   FindingOf(Severity::kWarning, 21, 0.1)};
  RateGainsAgain(rank);
  std::vector<double> gains;
  for (const Finding& finding : rank.findings) gains.push_back(finding.gain.expected_ms_per_step);
  EXPECT_EQ(gains, (std::vector<double>{21, 20, 9.7, 9.9, 1}));
  EXPECT_EQ(rank.findings[4].severity, Severity::kNote) << "1 % of the step";
  rank.findings = {FindingOf(Severity::kNote, 10, 0.1), FindingOf(Severity::kNote, 10, 9)};
  RateGainsAgain(rank);
  EXPECT_EQ(rank.findings[0].severity, Severity::kWarning) << "a tenth of the step for sure";
  EXPECT_EQ(rank.findings[1].severity, Severity::kNote) << "perhaps 1 %";
}

TEST(Gain, OfTwoThatGiveTheSameTheChangeThatIsLessWorkComesFirst) {
  const RankAnalysis rank = Analyze(TraceFromScript(kWaitThenWork));
  ASSERT_GE(rank.findings.size(), 2u);
  EXPECT_EQ(rank.findings[0].rule, "sync-call");
  EXPECT_EQ(rank.findings[1].rule, "host-work");
  EXPECT_NEAR(rank.findings[0].gain.expected_ms_per_step,
              rank.findings[1].gain.expected_ms_per_step, 0.1);
}

TEST(Gain, OfAJobIsNoMoreThanThatOfItsRank) {
  Gain gain{2, 9, 5, 4, {.steps = 10}};
  LowerTo({3, 20, 6}, gain);
  EXPECT_EQ(gain, (Gain{2, 9, 5, 4, {.steps = 10}})) << "nothing is lowered";
  LowerTo({-1, 7, 3}, gain);
  EXPECT_EQ(gain, (Gain{0, 7, 3, 3})) << "and how it is spread is not known";
}

}  // namespace
}  // namespace trainprof
