// The C functions that Python's hooks call, from a program that has no Python.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/collectors/recorded_run.h"

namespace trainprof::testing {
namespace {

TEST(Hooks, RangesComeWithTheirTimesStackAndDomain) {
  const Trace trace = RecordWith("", {"hooks"});
  const auto inner = FindRange(trace, "backward");
  const auto outer = FindRange(trace, "Optimizer.step#SGD.step");
  const auto users = FindRange(trace, "users");
  ASSERT_TRUE(inner && outer && users);
  EXPECT_EQ(trace.ranges.parent[Index(*inner)], *outer) << "written later, but around it";
  EXPECT_GE(trace.ranges.interval(*inner).Length(), Milliseconds(1));
  EXPECT_GE(trace.ranges.interval(*outer).Length(), Milliseconds(2));
  EXPECT_EQ(trace.ranges.begin[Index(*users)], trace.ranges.end(Index(*outer)))
      << "to the nanosecond, as they were handed over";
  EXPECT_EQ(trace.Text(trace.ranges.category[Index(*inner)]), "torch");
  EXPECT_EQ(trace.Text(trace.ranges.category[Index(*users)]), "");
  const StackId stack = trace.ranges.stack[Index(*inner)];
  ASSERT_NE(stack, kNoStack);
  const CallFrame& frame = trace.stacks.frame(trace.stacks.innermost(stack));
  EXPECT_EQ(trace.Text(frame.file), "/home/ann/my code/train.py");
  EXPECT_EQ(trace.Text(frame.function), "Trainer.fit");
  EXPECT_EQ(frame.line, 57);
  EXPECT_EQ(trace.ranges.stack[Index(*outer)], kNoStack);
  EXPECT_TRUE(trace.quality.items().empty());
}

TEST(Hooks, FactsAndCountsArrive) {
  const Trace trace = RecordWith("", {"hooks"});
  const auto fact = std::find_if(trace.environment.begin(), trace.environment.end(),
                                 [](const auto& pair) { return pair.first == "torch.version"; });
  ASSERT_NE(fact, trace.environment.end());
  EXPECT_EQ(fact->second, "2.13.0");
  ASSERT_EQ(trace.instants.size(), 1u);
  EXPECT_EQ(trace.Text(trace.instants.name[0]), "samples");
}

// Steps 0 to 9, each of which begins when StepBegins says so and ends with a range.
TEST(Hooks, TheWindowFollowsTheStepsThatTheyCount) {
  const Trace trace = RecordWith("steps=3:5", {"hookedsteps", "10"});
  EXPECT_EQ(CountRanges(trace, "work"), 2);
  ASSERT_EQ(trace.gaps.size(), 2u);
  EXPECT_EQ(trace.quality.CountOf("cut_by_window"), 0);
}

TEST(Hooks, ARangeThatBeganBeforeTheWindowIsLeftOut) {
  const Trace trace = RecordWith("steps=3:5", {"hookedsteps", "10", "whole"});
  EXPECT_EQ(CountRanges(trace, "since the start"), 0);
  EXPECT_EQ(trace.quality.CountOf("cut_by_window"), 2);
}

TEST(Hooks, AForkedChildRecordsItsOwn) {
  RecordedRun run;
  EXPECT_EQ(run.Run({"hooksfork"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(trace.processes.size(), 2u);
  EXPECT_EQ(CountRanges(trace, "parent"), 1);
  EXPECT_EQ(CountRanges(trace, "child"), 1);
}

TEST(Hooks, TasksOfTorchAreOperatorsAndModules) {
  const Trace trace = RecordWith("", {"tasks"});
  EXPECT_EQ(CountRanges(trace, "aten::addmm"), 3);
  EXPECT_EQ(CountRanges(trace, "nn.Module: head (Linear)"), 3);
  EXPECT_EQ(trace.ranges.size(), 7u) << "and one without a name";
  const auto inner = FindRange(trace, "aten::addmm");
  const auto outer = FindRange(trace, "nn.Module: head (Linear)");
  ASSERT_TRUE(inner && outer);
  EXPECT_EQ(trace.ranges.parent[Index(*inner)], *outer);
  EXPECT_GE(trace.ranges.interval(*inner).Length(), Milliseconds(1));
  for (const auto& [row, category] : {std::pair(*inner, ""), std::pair(*outer, "module")}) {
    EXPECT_EQ(trace.ranges.kind[Index(row)], RangeKind::kCpuOp);
    EXPECT_EQ(trace.Text(trace.ranges.category[Index(row)]), category);
  }
  EXPECT_TRUE(trace.quality.items().empty());
}

TEST(Hooks, NothingHappensWithoutARun) {
  RecordedRun run;
  run.environment[recording::kEnvRunDirectory] = "";
  EXPECT_EQ(run.Run({"hooks", "unrecorded"}), 0);
  EXPECT_EQ(run.Run({"tasks", "unrecorded"}), 0);
  EXPECT_EQ(run.BytesOfSegments(), 0u);
}

}  // namespace
}  // namespace trainprof::testing
