#include "analysis/gain.h"

#include <gtest/gtest.h>

#include "analysis/graph/what_if.h"
#include "analysis/job/analysis.h"
#include "tests/analysis/random_program.h"
#include "tests/support/sanitized.h"

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

}  // namespace
}  // namespace trainprof
