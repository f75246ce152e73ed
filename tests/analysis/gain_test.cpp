#include "analysis/gain.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/graph/what_if.h"
#include "analysis/job/analysis.h"
#include "tests/analysis/random_program.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_script.h"

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
}

// What one run does not show of how far runs differ is more where others had the thread's processor.
TEST(Gain, IsLessSureWhereTheHostIsContended) {
  const auto width = [](const char* look) {
    const Trace trace = TraceFromScript(fmt::format(R"(
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
      end)",
                                                    look));
    const RankModel model(trace);
    const Gain gain = GainOf(model, Finding{}, AllRowsOf(trace, Edit::kRemoveWaits));
    EXPECT_NEAR(gain.expected_ms_per_step, 1.93, 0.1);
    return gain.high_ms_per_step - gain.low_ms_per_step;
  };
  const double alone = width("");
  EXPECT_NEAR(alone, 2 * 0.05, 0.01) << "a hundredth of the step to each side";
  EXPECT_NEAR(width("cpu 0 5000 | used=4950 interruptions=2"), alone, 0.001) << "1 % preempted";
  EXPECT_NEAR(width("cpu 0 5000 | used=4800 interruptions=2"), 6 * alone, 0.01) << "4 %";
  EXPECT_NEAR(width("cpu 0 5000 | used=4800 interruptions=2 waits=1"), alone, 0.001)
      << "or it waited";
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
}

// A wait for the device and 1.3 ms of the host's own behind it: without either the two would run side by side.
TEST(Gain, OfTwoThatGiveTheSameTheChangeThatIsLessWorkComesFirst) {
  const RankAnalysis rank = Analyze(TraceFromScript(R"(
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
    end)"));
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
