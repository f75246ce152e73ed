#include "analysis/job/verdict.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

RankAnalysis RankWith(Duration window, size_t steps) {
  RankAnalysis rank;
  rank.window = window;
  for (size_t i = 0; i < steps; ++i) {
    const Interval range{TraceTime{static_cast<int64_t>(i) * 1'000'000},
                         TraceTime{static_cast<int64_t>(i + 1) * 1'000'000}};
    rank.steps.steps.push_back({.range = range, .span = range, .device = range});
  }
  rank.steps.window = IntervalSet::Union({{TraceTime{}, TraceTime{} + window}});
  rank.steps.device_window = rank.steps.window;
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
                          .account = {{"compute", "compute", Milliseconds(2)},
                                      {"idle_input_wait", "input wait", Milliseconds(2)}}});
  EXPECT_EQ(Verdict(rank),
            "median step 1.0 ms; GPU busy 50.0 %; biggest loss: GPU idle, input wait, "
            "0.5 ms/step (50 %)");
}

TEST(Verdict, UnrecordedTimeIsARangeAndNobodysLoss) {
  RankAnalysis rank = RankWith(Milliseconds(4), 4);
  rank.devices.push_back(
      {.id = 0,
       .name = "A100",
       .busy = Milliseconds(2),
       .busy_high = Milliseconds(3),
       .account = {{"idle_unrecorded", "unrecorded", Milliseconds(1)},
                   {"idle_unknown", "unknown", Microseconds(400), "nothing recorded says why"}}});
  EXPECT_EQ(Verdict(rank),
            "median step 1.0 ms; GPU busy 50.0 to 75.0 % (device work is missing from the trace); "
            "biggest loss: GPU idle, unknown (nothing recorded says why), 0.1 ms/step (10 %)");
}

TEST(Verdict, FiguresHaveTheUnitOfTheirSize) {
  RankAnalysis longer = RankWith(Milliseconds(43'425), 0);
  EXPECT_EQ(Verdict(longer).substr(0, 25), "no steps found in 43.4 s;");
  RankAnalysis shorter = RankWith(Microseconds(30), 1);
  shorter.steps.steps[0].range = {TraceTime{0}, TraceTime{30'000}};
  EXPECT_EQ(Verdict(shorter).substr(0, 19), "median step 30.0 us");
}

TEST(Verdict, ALossThatIsNoneIsNotNamed) {
  RankAnalysis rank = RankWith(Milliseconds(4), 4);
  rank.devices.push_back({.id = 0,
                          .name = "A100",
                          .busy = Microseconds(3970),
                          .busy_high = Microseconds(3970),
                          .account = {{"compute", "compute", Microseconds(3970)},
                                      {"idle_unknown", "unknown", Microseconds(30)}}});
  EXPECT_EQ(Verdict(rank), "median step 1.0 ms; GPU busy 99.2 %; no loss of 5 % or more");
}

TEST(Verdict, SaysWhenNothingIsKnown) {
  RankAnalysis rank = RankWith(Milliseconds(4), 0);
  EXPECT_EQ(Verdict(rank),
            "no steps found in 4.0 ms; nothing in the trace names what the host was doing");
}

// Median 1 ms, mean 1.5 ms: a share of the mean must not stand beside the median alone.
TEST(Verdict, SaysWhatAShareIsOf) {
  RankAnalysis rank = RankWith(Milliseconds(6), 4);
  rank.host_account = {{"input_wait", "input wait", Milliseconds(2)}};
  rank.has_host_phases = true;
  EXPECT_EQ(Verdict(rank),
            "median step 1.0 ms, mean 1.5 ms; biggest loss: input wait, 0.5 ms/step (33 % of the "
            "mean)");
}

TEST(Verdict, ASharePartlyRecordedIsOfTheStepsWithDetail) {
  RankAnalysis rank = RankWith(Milliseconds(6), 4);
  rank.device_steps.steps.resize(2);
  rank.device_window = Milliseconds(4);
  rank.devices.push_back({.id = 0,
                          .name = "A100",
                          .busy = Milliseconds(3),
                          .busy_high = Milliseconds(3),
                          .account = {{"idle_input_wait", "input wait", Milliseconds(1)}}});
  EXPECT_EQ(Verdict(rank),
            "median step 1.0 ms, mean 1.5 ms; GPU busy 75.0 %; biggest loss: GPU idle, input "
            "wait, 0.5 ms/step (25 % of the 2.0 ms of steps with GPU detail)");
}

TEST(Verdict, UnnamedHostTimeIsNamedByTheUsersOwnRange) {
  RankAnalysis rank = RankWith(Milliseconds(4), 4);
  rank.host_account = {{"input_wait", "input wait", Microseconds(40)}};
  rank.has_host_phases = true;
  rank.host_other = {Milliseconds(3),
                     {{OtherKind::kOperator, "aten::conv2d", Microseconds(1100), 4},
                      {OtherKind::kRange, "tokenize", Milliseconds(1), 4, /*is_users=*/true},
                      {OtherKind::kNothing, "", Microseconds(900)}}};
  EXPECT_EQ(Verdict(rank),
            "median step 1.0 ms; largest part of the host's time outside known phases: range "
            "\"tokenize\", 0.2 ms/step (25 %)");
  // What the step is for is no loss; a wait that is large is named beside the larger part.
  rank.host_account[0].total = Microseconds(400);
  rank.host_other.items[0] = {OtherKind::kPython, "nn.Module: Linear_0", Microseconds(1100), 4};
  EXPECT_EQ(Verdict(rank),
            "median step 1.0 ms; largest part of the host's time outside known phases: range "
            "\"tokenize\", 0.2 ms/step (25 %); biggest loss: input wait, 0.1 ms/step (10 %)");
}

TEST(Verdict, NamesTheLineThatAnInputWaitIsMostlyAt) {
  RankAnalysis rank = RankWith(Milliseconds(40), 4);
  rank.host_account = {{"input_wait", "input wait", Milliseconds(30)},
                       {"other", "other", Milliseconds(10)}};
  const LineTime decode{
      "/me/train.py",  23, "decode", "Image.resize", "PIL/Image.py", Milliseconds(20),
      Milliseconds(2), 20, {}};
  const LineTime read{"/me/train.py",  25, "read", "", "", Milliseconds(10),
                      Milliseconds(9), 10, {}};
  rank.host_lines = {{HostClass::kInputWait, Milliseconds(30), 30, true, {decode, read}, {}, {}}};
  const std::string loss =
      "median step 1.0 ms, mean 10.0 ms; biggest loss: input wait, 7.5 ms/step "
      "(75 % of the mean)";
  EXPECT_EQ(Verdict(rank), loss + ", mostly train.py:23 decode > Image.resize");
  // Whoever waits for workers waits for what these do.
  rank.host_lines[0].producers = {read, decode};
  rank.host_lines[0].producers[0].total = Milliseconds(29);
  rank.host_lines[0].producers[0].waiting = Milliseconds(20);
  EXPECT_EQ(Verdict(rank), loss + ", mostly train.py:25 read, waiting");
  // No line has most of it.
  rank.host_lines[0].producers[0].total = Milliseconds(14);
  EXPECT_EQ(Verdict(rank), loss);
  // Too few samples to say.
  rank.host_lines[0].producers.clear();
  rank.host_lines[0].count = 9;
  EXPECT_EQ(Verdict(rank), loss);
}

TEST(Verdict, NoLossHasNoLine) {
  RankAnalysis rank = RankWith(Milliseconds(1000), 4);
  rank.host_account = {{"input_wait", "input wait", Milliseconds(2)}};
  const LineTime read{"/me/train.py", 25, "read", "", "", Milliseconds(2), {}, 100, {}};
  rank.host_lines = {{HostClass::kInputWait, Milliseconds(2), 100, true, {read}, {}, {}}};
  EXPECT_EQ(Verdict(rank), "median step 1.0 ms, mean 250.0 ms; no loss of 5 % or more");
}

TEST(Verdict, NamesWaitsForTheInterpreter) {
  RankAnalysis rank = RankWith(Milliseconds(40), 4);
  rank.host_account = {{"input_wait", "input wait", Milliseconds(20)}};
  rank.host_facts = {{"gil_wait", "", 2.5, "ms/step"}};
  const std::string loss =
      "median step 1.0 ms, mean 10.0 ms; biggest loss: input wait, 5.0 ms/step (50 % of the mean)";
  EXPECT_EQ(Verdict(rank), loss + "; of all phases 2.5 ms/step (25 %) were waits for Python's GIL");
  rank.host_facts[0].value = 0.9;
  EXPECT_EQ(Verdict(rank), loss);
}

}  // namespace
}  // namespace trainprof
