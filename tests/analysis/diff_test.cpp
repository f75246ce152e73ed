// Two sides beside each other: parts sum to the whole, what cannot be compared is refused, and the
// verdict says no more than the steps show.
#include "analysis/job/diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/random_trace.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

JobAnalysis JobOf(const std::vector<Trace>& traces, const std::string& path = "job") {
  JobAnalyzer analyzer;
  int64_t place = 0;
  for (const Trace& trace : traces) analyzer.Add(DigestOf(RankModel(trace), place++));
  JobSource source;
  source.path = path;
  return std::move(analyzer).Finish(source, {});
}

// Steps that wait for data, launch a kernel and end with it. `wait(step)` in us.
template <class Wait>
Trace Training(int steps, Wait wait, int kernel_us = 600,
               std::string_view file = "/a/train.py(3)") {
  std::string host = "thread 1\n";
  std::string device = "stream 0 7\n";
  int at = 0;
  for (int i = 0; i < steps; ++i) {
    const int waited = wait(i);
    const int work = at + waited;
    const int end = work + 20 + kernel_us;
    host += fmt::format("step {} {} ProfilerStep#{}\n", at, end, i);
    host += fmt::format(
        "annotation {} {} enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ | "
        "stack={}: main\n",
        at, work, file);
    host += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", work + 5, work + 10, i + 1);
    device += fmt::format("kernel {} {} gemm | corr={}\n", work + 12, end, i + 1);
    at = end;
  }
  return TraceFromScript(host + device);
}

Trace Steady(int steps, int wait_us, int kernel_us = 600) {
  return Training(
      steps, [=](int i) { return wait_us + i % 3; }, kernel_us);
}

Diff Compare(const std::vector<JobAnalysis>& a, const std::vector<JobAnalysis>& b,
             bool anyway = false) {
  return DiffOf(a, b, anyway);
}

const DiffTable* Table(const Diff& diff, DiffTable::By by) {
  for (const DiffTable& table : diff.tables) {
    if (table.by == by) return &table;
  }
  return nullptr;
}

const DiffRow* RowOf(const Diff& diff, DiffTable::By by, std::string_view name) {
  const DiffTable* const table = Table(diff, by);
  if (table == nullptr) return nullptr;
  for (const DiffRow& row : table->rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

void ExpectSums(const Diff& diff) {
  for (const DiffTable& table : diff.tables) {
    if (table.by == DiffTable::By::kRank) continue;
    double a = 0;
    double b = 0;
    double difference = 0;
    for (const DiffRow& row : table.rows) {
      a += row.a_ms;
      b += row.b_ms;
      difference += row.Difference();
    }
    // To a thousandth of a nanosecond: all that doubles lose.
    EXPECT_NEAR(a, table.whole.a_ms, 1e-9) << Name(table.by);
    EXPECT_NEAR(b, table.whole.b_ms, 1e-9) << Name(table.by);
    EXPECT_NEAR(difference, table.whole.Difference(), 1e-9) << Name(table.by);
  }
}

std::vector<std::string> Ids(const std::vector<DiffDoubt>& doubts) {
  std::vector<std::string> ids;
  for (const DiffDoubt& doubt : doubts) ids.push_back(doubt.id);
  return ids;
}

TEST(Diff, PartsSumToTheWholeOnRandomTraces) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const auto draw = [&](uint64_t more) {
      return JobOf(
          {BuildTrace(DrawTrace(seed + more, {.most_events = 300, .least_steps = 4})),
           BuildTrace(DrawTrace(seed + more + 1, {.most_events = 300, .least_steps = 4}))});
    };
    const Diff diff = Compare({draw(0), draw(100)}, {draw(200)}, true);
    if (diff.result == DiffResult::kRefused) continue;
    ++compared;
    ExpectSums(diff);
    if (const DiffTable* const classes = Table(diff, DiffTable::By::kClass)) {
      EXPECT_EQ(classes->whole, diff.step);
    }
  }
  EXPECT_GT(compared, 20);
}

// Each operation, cut at each step by hand.
TEST(Diff, OperationsAreSummedByStep) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Trace trace = BuildTrace(DrawTrace(seed, {.most_events = 300, .least_steps = 2}));
    const RankModel model(trace);
    const RankDigest digest = DigestOf(model, 0);
    for (const DeviceSteps& device : digest.devices) {
      std::map<std::pair<std::string, size_t>, int64_t> expected;
      std::map<std::string, int64_t> counts;
      const DeviceOpTable& ops = trace.device_ops;
      for (uint32_t row = 0; row < ops.size(); ++row) {
        const DeviceId of = trace.tracks[Index(ops.track[row])].device;
        if (of == kNoDevice || trace.devices[Index(of)].id != device.device) continue;
        const std::string name(trace.Text(ops.name[row]));
        for (size_t i = 0; i < model.device_steps.count(); ++i) {
          const Interval& span = model.device_steps.steps[i].span;
          const Interval part = Intersect(ops.interval(Row{row}), span);
          if (!part.Empty()) expected[{name, i}] += part.Length().ns;
          counts[name] += span.Contains(ops.begin[row]) ? 1 : 0;
        }
      }
      EXPECT_EQ(device.others.names, 0);
      for (const OperationSteps& each : device.operations) {
        EXPECT_EQ(each.count, counts[each.name]) << seed << " " << each.name;
        for (size_t i = 0; i < each.steps.size(); ++i) {
          EXPECT_EQ(each.steps[i].ns, (expected[{each.name, i}])) << seed << " " << each.name;
          expected.erase({each.name, i});
        }
      }
      EXPECT_TRUE(expected.empty()) << seed;
    }
  }
}

TEST(Diff, SaysWhatGotSlowerAndByHowMuch) {
  const Diff diff = Compare({JobOf({Steady(40, 50)})}, {JobOf({Steady(40, 250)})});
  EXPECT_EQ(diff.result, DiffResult::kSlower);
  EXPECT_TRUE(diff.IsConclusive());
  EXPECT_NEAR(diff.step.Difference(), 0.2, 1e-9);
  EXPECT_NEAR(RowOf(diff, DiffTable::By::kClass, "idle_input_wait")->Difference(), 0.2, 0.001);
  EXPECT_NEAR(RowOf(diff, DiffTable::By::kPhase, "input_wait")->Difference(), 0.2, 0.001);
  EXPECT_EQ(RowOf(diff, DiffTable::By::kOperation, "gemm")->Difference(), 0);
  EXPECT_TRUE(
      DiffVerdict(diff).starts_with("B is 0.200 ms/step slower than A (0.671 -> 0.871 "
                                    "ms/step, +29.8 %, 90 % interval +0.18"))
      << DiffVerdict(diff);
  EXPECT_TRUE(DiffVerdict(diff).ends_with(": idle: input wait +0.200")) << DiffVerdict(diff);
  ExpectSums(diff);

  const Diff back = Compare({JobOf({Steady(40, 250)})}, {JobOf({Steady(40, 50)})});
  EXPECT_EQ(back.result, DiffResult::kFaster);
  EXPECT_DOUBLE_EQ(back.step.Difference(), -diff.step.Difference());
}

TEST(Diff, WhatTheStepGainsInOnePartAndLosesInAnotherIsSaid) {
  const Diff diff = Compare({JobOf({Steady(40, 50, 600)})}, {JobOf({Steady(40, 250, 400)})});
  EXPECT_EQ(diff.result, DiffResult::kNoDifference);
  EXPECT_NE(DiffVerdict(diff).find("; but in parts: "), std::string::npos) << DiffVerdict(diff);
  EXPECT_TRUE(RowOf(diff, DiffTable::By::kOperation, "gemm")->IsClear());
}

TEST(Diff, TheSameRunTwiceIsEqual) {
  const std::vector<JobAnalysis> run = {JobOf({Steady(4, 50)})};
  const Diff diff = Compare(run, run);
  EXPECT_EQ(diff.result, DiffResult::kEqual);
  EXPECT_TRUE(diff.IsConclusive());
  for (const DiffTable& table : diff.tables) {
    for (const DiffRow& row : table.rows) EXPECT_EQ(row.a_ms, row.b_ms);
  }
  for (const FindingDiff& finding : diff.findings) {
    EXPECT_EQ(finding.state, FindingState::kUnchanged);
  }
}

TEST(Diff, OneRunASideIsNotToldFromOnePercent) {
  const auto exact = [](int steps, int wait) {
    return JobOf({Training(
        steps, [=](int) { return wait; }, 1000)});
  };
  EXPECT_EQ(Compare({exact(40, 100)}, {exact(40, 110)}).result, DiffResult::kNoDifference);
  const Diff slower = Compare({exact(40, 100)}, {exact(40, 140)});
  EXPECT_EQ(slower.result, DiffResult::kSlower);
  EXPECT_EQ(Ids(slower.cautions).back(), "run_to_run");
  // Of several runs a side that agree, less is enough.
  const Diff several = Compare({exact(40, 100), exact(41, 100), exact(42, 100)},
                               {exact(40, 110), exact(41, 110), exact(42, 110)});
  EXPECT_EQ(several.result, DiffResult::kSlower);
}

TEST(Diff, OnABusyHostOneRunASideSaysSo) {
  JobAnalysis busy = JobOf({Steady(40, 250)});
  busy.ranks[0].host_facts.push_back({"cpu_busy", "all cores together were busy 99 %", 99, "%"});
  const JobAnalysis quiet = JobOf({Steady(40, 50)});
  const Diff diff = Compare({quiet}, {busy});
  EXPECT_EQ(Ids(diff.cautions).back(), "busy_host");
  EXPECT_TRUE(DiffVerdict(diff).ends_with("another run may say otherwise")) << DiffVerdict(diff);
  const Diff plain = Compare({quiet}, {JobOf({Steady(40, 250)})});
  EXPECT_LT(diff.step.bounds->low, plain.step.bounds->low);
}

TEST(Diff, FewStepsHaveADifferenceAndNoInterval) {
  const Diff diff = Compare({JobOf({Steady(6, 50)})}, {JobOf({Steady(40, 250)})});
  EXPECT_EQ(diff.result, DiffResult::kUnknown);
  EXPECT_FALSE(diff.IsConclusive());
  EXPECT_FALSE(diff.step.bounds.has_value());
  EXPECT_NE(DiffVerdict(diff).find("how much of that is noise is not known"), std::string::npos);
  EXPECT_EQ(Ids(diff.cautions).back(), "few_steps");
}

TEST(Diff, WithoutStepsNothingIsCompared) {
  const Trace without = TraceFromScript("thread 1\nop 0 10 aten::add\n");
  const Diff diff = Compare({JobOf({Steady(40, 50)})}, {JobOf({without})}, true);
  EXPECT_EQ(diff.result, DiffResult::kRefused);
  EXPECT_EQ(diff.refusals[0].id, "no_steps");
  EXPECT_TRUE(diff.tables.empty());
}

TEST(Diff, AnotherEnvironmentIsRefused) {
  const auto run = [](const std::vector<std::pair<std::string, std::string>>& environment,
                      int64_t world_size = 1) {
    Trace trace = Steady(40, 50);
    trace.environment = environment;
    trace.world_size = world_size;
    return JobOf({trace});
  };
  const std::vector<std::pair<std::string, std::string>> here = {{"driver.version", "12.4"},
                                                                 {"torch.version", "2.6.0"}};
  EXPECT_TRUE(Compare({run(here)}, {run(here)}).refusals.empty());
  for (const auto& [name, value] : {std::pair{"driver.version", "12.6"},
                                    {"torch.version", "2.7.0"},
                                    {"loader.batch_size", "64"}}) {
    auto there = here;
    there.push_back({name, value});
    if (std::string_view(name) == "loader.batch_size") {
      // Not told on the other side: no difference, but said.
      const Diff diff = Compare({run(here)}, {run(there)});
      EXPECT_TRUE(diff.refusals.empty());
      EXPECT_NE(diff.cautions[0].text.find("batch size"), std::string::npos);
      continue;
    }
    there.erase(std::ranges::find(there, std::string(name), [](const auto& f) { return f.first; }));
    const Diff diff = Compare({run(here)}, {run(there)});
    EXPECT_EQ(diff.result, DiffResult::kRefused) << name;
    EXPECT_FALSE(diff.IsConclusive());
    ASSERT_EQ(diff.refusals.size(), 1u);
    EXPECT_EQ(diff.refusals[0].b, value);
    EXPECT_TRUE(diff.tables.empty());
    const Diff anyway = Compare({run(here)}, {run(there)}, true);
    EXPECT_NE(anyway.result, DiffResult::kRefused);
    EXPECT_EQ(Ids(anyway.refusals), Ids(diff.refusals));
  }
  EXPECT_EQ(Ids(Compare({run(here)}, {run(here, 2)}).refusals),
            std::vector<std::string>{"world_size"});
  Trace kineto = Steady(40, 50);
  kineto.source = SourceKind::kKineto;
  Trace ours = Steady(40, 50);
  ours.source = SourceKind::kRecording;
  ours.environment = {};
  const Diff mixed = Compare({JobOf({kineto})}, {JobOf({ours})});
  EXPECT_EQ(Ids(mixed.refusals), std::vector<std::string>{"source"});
}

TEST(Diff, DamagedRunsAreComparedAndNeverConclusive) {
  JobAnalysis damaged = JobOf({Steady(40, 50)});
  damaged.ranks[0].quality.push_back({"lost_chunk", QualitySeverity::kDataLoss, 2, ""});
  const Diff diff = Compare({damaged}, {JobOf({Steady(40, 250)})});
  EXPECT_EQ(diff.result, DiffResult::kSlower);
  EXPECT_FALSE(diff.IsConclusive());
  EXPECT_EQ(Ids(diff.losses), std::vector<std::string>{"data_loss"});
}

TEST(Diff, OnTheHostAloneTheStepIsTheThreads) {
  const auto host = [](int forward) {
    return JobOf({TraceFromScript(fmt::format(R"(
thread 1
repeat 30 every 1000
step 0 {} step 1
annotation 10 {} forward
end
)",
                                              forward + 100, forward))});
  };
  const Diff diff = Compare({host(500)}, {host(700)});
  EXPECT_FALSE(diff.on_devices);
  ASSERT_EQ(diff.tables.size(), 1u);
  EXPECT_EQ(diff.tables[0].whole, diff.step);
  EXPECT_NEAR(RowOf(diff, DiffTable::By::kPhase, "forward")->Difference(), 0.2, 1e-9);
  ExpectSums(diff);
}

TEST(Diff, RanksStandBesideEachOther) {
  const auto job = [](int wait) {
    std::vector<Trace> ranks = {Steady(40, 50), Steady(40, wait)};
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].rank = static_cast<int64_t>(i);
      ranks[i].world_size = 2;
    }
    return JobOf(ranks);
  };
  const Diff diff = Compare({job(50)}, {job(450)});
  EXPECT_NEAR(diff.step.Difference(), 0.2, 1e-9);
  EXPECT_NEAR(RowOf(diff, DiffTable::By::kRank, "1")->Difference(), 0.4, 1e-9);
  EXPECT_EQ(RowOf(diff, DiffTable::By::kRank, "0")->Difference(), 0);
  EXPECT_EQ(Table(diff, DiffTable::By::kRank)->rows[0].name, "1");
  ExpectSums(diff);
}

// More names than a digest keeps: a kernel that is among the largest on one side alone is not said
// to be gone.
TEST(Diff, KernelsThatOneSideDoesNotTellOfAreAmongTheOthers) {
  const auto run = [](int largest) {
    std::string script =
        "thread 1\nrepeat 12 every 10000\nstep 0 9000 ProfilerStep#1\nend\nstream 0 7\n";
    script += "repeat 12 every 10000\n";
    int at = 0;
    for (int i = 0; i < 70; ++i) {
      const int length = i == largest ? 100 : 10 + i;
      script += fmt::format("kernel {} {} k{}\n", at, at + length, i);
      at += length;
    }
    return JobOf({TraceFromScript(script + "end\n")});
  };
  const Diff diff = Compare({run(0)}, {run(1)});
  // k0 is listed in A alone, k1 in B alone.
  EXPECT_EQ(RowOf(diff, DiffTable::By::kOperation, "k0"), nullptr);
  EXPECT_EQ(RowOf(diff, DiffTable::By::kOperation, "k1"), nullptr);
  EXPECT_NE(RowOf(diff, DiffTable::By::kOperation, "others"), nullptr);
  EXPECT_NE(RowOf(diff, DiffTable::By::kOperation, "k69"), nullptr);
  ExpectSums(diff);
}

TEST(Diff, OperationsAtTheSameTimeAreTakenOff) {
  const auto run = [](int second) {
    return JobOf({TraceFromScript(fmt::format(R"(
thread 1
repeat 20 every 1000
step 0 1000 ProfilerStep#1
end
stream 0 7
repeat 20 every 1000
kernel 100 500 gemm
end
stream 0 8
repeat 20 every 1000
kernel 100 {} softmax
end
)",
                                              second))});
  };
  const Diff diff = Compare({run(300)}, {run(400)});
  EXPECT_NEAR(RowOf(diff, DiffTable::By::kOperation, "softmax")->Difference(), 0.1, 1e-9);
  EXPECT_NEAR(RowOf(diff, DiffTable::By::kOperation, "overlap")->a_ms, -0.2, 1e-9);
  EXPECT_NEAR(RowOf(diff, DiffTable::By::kOperation, "overlap")->Difference(), -0.1, 1e-9);
  EXPECT_EQ(Table(diff, DiffTable::By::kOperation)->whole.Difference(), 0);
  ExpectSums(diff);
}

FindingState StateOf(const Diff& diff, std::string_view rule) {
  for (const FindingDiff& finding : diff.findings) {
    if (finding.rule == rule) return finding.state;
  }
  ADD_FAILURE() << "no " << rule;
  return FindingState::kUnchanged;
}

TEST(Diff, FindingsAreNewFixedOrUnchanged) {
  const JobAnalysis good = JobOf({Steady(40, 5)});
  const auto bad = [](std::string_view file) {
    return JobOf({Training(
        40, [](int i) { return 400 + i % 3; }, 600, file)});
  };
  EXPECT_EQ(StateOf(Compare({good}, {bad("/a/train.py(3)")}), "input-bound"), FindingState::kNew);
  EXPECT_EQ(StateOf(Compare({bad("/a/train.py(3)")}, {good}), "input-bound"), FindingState::kFixed);
  // Another checkout, another line.
  EXPECT_EQ(StateOf(Compare({bad("/a/train.py(3)")}, {bad("/b/c/train.py(9)")}), "input-bound"),
            FindingState::kUnchanged);
  // In one run of three: neither new nor fixed.
  EXPECT_EQ(StateOf(Compare({good}, {good, bad("train.py(3)"), good}), "input-bound"),
            FindingState::kSporadic);
  EXPECT_EQ(StateOf(Compare({good}, {good, bad("train.py(3)"), bad("train.py(3)")}), "input-bound"),
            FindingState::kNew);
}

TEST(Diff, ARuleThatWasNotCheckedHasFixedNothing) {
  const JobAnalysis bad = JobOf({Steady(40, 400)});
  JobAnalysis unchecked = JobOf({Steady(40, 5)});
  std::erase(unchecked.ranks[0].passed, "input-bound");
  unchecked.ranks[0].skipped.push_back({"input-bound", "the trace has no loader"});
  const Diff diff = Compare({bad}, {unchecked});
  EXPECT_EQ(StateOf(diff, "input-bound"), FindingState::kNotChecked);
  EXPECT_EQ(diff.findings[0].note, "not checked in B: the trace has no loader");
}

TEST(Fingerprint, HoldsNoLineFolderOrNumber) {
  const auto of = [](std::string file, int64_t line, std::string function) {
    return FingerprintOf("host-sync", Site{std::move(file), line, std::move(function), "", 7});
  };
  EXPECT_EQ(of("/home/ci/1/train.py", 12, "main"), of("C:\\w\\train.py", 99, "main"));
  EXPECT_NE(of("train.py", 12, "main"), of("train.py", 12, "evaluate"));
  EXPECT_NE(of("train.py", 12, "main"), of("model.py", 12, "main"));
  EXPECT_EQ(of("", 0, "step 12"), of("", 0, "step 7"));
  EXPECT_EQ(of("", 0, "void at::native::gemm_128x64<float, 4>(at::Tensor const&)"),
            of("", 0, "void at::native::gemm_256x128<double, 2>(at::Tensor const&)"));
  EXPECT_NE(FingerprintOf("a", Site{}), FingerprintOf("b", Site{}));
  // What is in a file of a baseline stays what it is.
  EXPECT_EQ(of("train.py", 12, "main").size(), 16u);
}

}  // namespace
}  // namespace trainprof
