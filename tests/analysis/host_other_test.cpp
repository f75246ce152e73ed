// What "other" of the host's account holds: traces, and the list that they must give.
#include "analysis/account/host_other.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/job/analysis.h"
#include "tests/support/random_trace.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

std::string TextOf(const std::vector<OtherItem>& items, const std::string& indent = "") {
  std::string text;
  for (const OtherItem& item : items) {
    text += fmt::format("{}{} {} {} x{}\n", indent, Name(item.kind), item.name,
                        item.total.ns / 1000, item.count);
    text += TextOf(item.inside, indent + "  ");
  }
  return text;
}

// In us.
std::string OtherOf(std::string_view script) {
  const RankAnalysis rank = Analyze(TraceFromScript(script));
  Duration sum;
  for (const OtherItem& item : rank.host_other.items) sum += item.total;
  EXPECT_EQ(sum, rank.host_other.total);
  for (const AccountLine& line : rank.host_account) {
    if (line.name != "other") continue;
    EXPECT_EQ(line.total, rank.host_other.total);
  }
  return TextOf(rank.host_other.items);
}

TEST(HostOther, TheUsersRangesAreNamedWithoutTheirCounters) {
  EXPECT_EQ(OtherOf(R"(
    thread 1
    step 0 1000 step 0
    annotation 100 780 tokenize 0
    annotation 800 900 forward
    step 1000 2000 step 1
    annotation 1100 1780 tokenize 1
    annotation 1800 1900 forward)"),
            "range tokenize 1360 x2\n"
            "nothing_recorded  440 x0\n");
}

TEST(HostOther, TimeGoesToTheOutermostRangeAndSaysWhatIsInside) {
  EXPECT_EQ(OtherOf(R"(
    thread 1
    step 0 1000 step 0
    annotation 100 900 prepare
    annotation 200 500 decode
    op 600 700 aten::stack
    call 750 800 cudaMalloc)"),
            "range prepare 800 x1\n"
            "  range decode 300 x1\n"
            "  operator aten::stack 100 x1\n"
            "  call cudaMalloc 50 x1\n"
            "nothing_recorded  200 x0\n");
}

// torch.profiler ends a step's range, and begins the next one's, within its step(): that call is in neither.
TEST(HostOther, ACallThatEndsSoonCoversNothingThatOnlyBeginsInIt) {
  EXPECT_EQ(OtherOf(R"(
    thread 1
    python 0 2200 train.py(1): <module> | stack=train.py(1): <module>
    step 0 1000 ProfilerStep#1
    python 100 900 <built-in method randn of type object at 0x7ba0d98e4b40>
    python 950 1050 torch/profiler/profiler.py(882): step
    step 1000 2000 ProfilerStep#2
    python 1100 1800 <built-in method randn of type object at 0x7ba0d98e4b50>)"),
            "python randn 1500 x2\n"
            "python train.py(1): <module> 450 x1\n"
            "python torch/profiler/profiler.py(882): step 50 x1\n");
}

TEST(HostOther, WhatCoversAWholeStepSaysNothing) {
  EXPECT_EQ(OtherOf(R"(
    thread 1
    annotation 0 2000 epoch
    step 0 1000 step 0
    op 100 300 aten::stack
    step 1000 2000 step 1)"),
            "operator aten::stack 200 x1\n"
            "nothing_recorded  1800 x0\n");
}

TEST(HostOther, ThePythonFunctionOfTheUserIsNamedAndItsLoopOnlyWhereNothingElseIs) {
  EXPECT_EQ(OtherOf(R"(
    thread 1
    python 0 2000 train.py(60): main
    step 0 1000 ProfilerStep#0
    python 100 600 data.py(12): tokenize
    python 150 500 <built-in method split of str object>
    op 200 300 aten::stack
    python 700 800 torch/nn/modules/module.py(1501): _call_impl
    python 710 790 nn.Module: ResNet_0
    step 1000 2000 ProfilerStep#1)"),
            "python train.py(60): main 1400 x1\n"
            "python data.py(12): tokenize 500 x1\n"
            "python torch/nn/modules/module.py(1501): _call_impl 20 x1\n");
}

// Modules are the forward pass.
TEST(HostOther, PhasesAndCopiesAreNotInIt) {
  EXPECT_EQ(OtherOf(R"(
    thread 1
    step 0 1000 step 0
    python 100 600 nn.Module: ResNet_0
    op 200 300 aten::conv2d)"),
            "nothing_recorded  500 x0\n");
  EXPECT_EQ(OtherOf(R"(
    thread 1
    step 0 1000 step 0
    annotation 0 400 get batch
    annotation 400 500 h2d
    annotation 500 900 forward)"),
            "nothing_recorded  100 x0\n");
}

TEST(HostOther, ManyNamesAreSummedUp) {
  std::string script = "thread 1\nstep 0 10000 step 0\n";
  for (int i = 0; i < 60; ++i) {
    script += fmt::format("annotation {} {} part{}x\n", 100 * i, 100 * i + 10 + i, i);
  }
  const RankAnalysis rank = Analyze(TraceFromScript(script));
  ASSERT_EQ(rank.host_other.items.size(), 52u);
  EXPECT_EQ(rank.host_other.items[0].name, "part59x");
  EXPECT_EQ(rank.host_other.items[50].kind, OtherKind::kMore);
  EXPECT_EQ(rank.host_other.items[50].count, 10);
  EXPECT_EQ(rank.host_other.items[51].kind, OtherKind::kNothing);
}

// A range that holds the loop is no wait for input, whatever its name.
TEST(HostOther, ARangeAroundTheStepsIsNoInputWait) {
  const RankAnalysis rank = Analyze(TraceFromScript(R"(
    thread 1
    annotation 0 4000 prefetch
    repeat 4 every 1000
      step 0 1000 step
      annotation 100 200 next batch
    end)"));
  EXPECT_EQ(rank.host_account[0].name, "input_wait");
  EXPECT_EQ(rank.host_account[0].total, Microseconds(400));
}

// On any trace the items add up to the account's class.
TEST(HostOther, AddsUpOnRandomTraces) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RankAnalysis rank = Analyze(BuildTrace(DrawTrace(seed)));
    Duration sum;
    for (const OtherItem& item : rank.host_other.items) {
      EXPECT_GT(item.total.ns, 0);
      sum += item.total;
      Duration inside;
      for (const OtherItem& part : item.inside) inside += part.total;
      EXPECT_LE(inside, item.total);
    }
    EXPECT_EQ(sum, rank.host_other.total) << "seed " << seed;
    EXPECT_EQ(rank.host_account.back().total, rank.host_other.total) << "seed " << seed;
  }
}

}  // namespace
}  // namespace trainprof
