// Two sides beside each other: parts sum to the whole, what cannot be compared is refused, and the
// verdict says no more than the steps show.
#include "analysis/job/diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/analysis/diff_jobs.h"
#include "tests/support/random_trace.h"

namespace trainprof {
namespace {

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
      return JobOfTraces(
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
          const Interval& time = model.device_steps.steps[i].device;
          const Interval part = Intersect(ops.interval(Row{row}), time);
          if (!part.Empty()) expected[{name, i}] += part.Length().ns;
          counts[name] += time.Contains(ops.begin[row]) ? 1 : 0;
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

// A host that has launched all long before the device is done.
TEST(Diff, KernelsOfAHostThatRunsAheadAreThoseOfTheDevicesSteps) {
  const auto run = [](int kernel_us) {
    std::string host = "thread 1\n";
    std::string device = "stream 0 7\n";
    for (int i = 0; i < 30; ++i) {
      host += fmt::format("step {} {} ProfilerStep#{}\n", 100 * i, 100 * i + 100, i);
      for (int k = 2 * i; k < 2 * i + 2; ++k) {
        const int at = 50 * k;
        host += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", at, at + 5, k + 1);
        const int begin = 10 + kernel_us * k;
        device += fmt::format("kernel {} {} {} | corr={}\n", begin, begin + kernel_us,
                              k % 2 == 0 ? "gemm" : "softmax", k + 1);
      }
    }
    return JobOfTraces({TraceFromScript(host + device)});
  };
  const Diff diff = Compare({run(500)}, {run(600)});
  for (const std::string_view name : {"gemm", "softmax"}) {
    const DiffRow* const row = RowOf(diff, DiffTable::By::kOperation, name);
    ASSERT_NE(row, nullptr);
    EXPECT_NEAR(row->a_ms, 0.5, 1e-9);
    EXPECT_NEAR(row->b_ms, 0.6, 1e-9);
    EXPECT_NEAR(row->a_count, 1, 1e-9);
    EXPECT_NEAR(row->b_count, 1, 1e-9);
    EXPECT_TRUE(row->IsClear());
  }
  EXPECT_EQ(RowOf(diff, DiffTable::By::kOperation, "overlap"), nullptr);
  ExpectSums(diff);
}

TEST(Diff, SaysWhatGotSlowerAndByHowMuch) {
  const Diff diff = Compare({JobOfTraces({Steady(40, 50)})}, {JobOfTraces({Steady(40, 250)})});
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

  const Diff back = Compare({JobOfTraces({Steady(40, 250)})}, {JobOfTraces({Steady(40, 50)})});
  EXPECT_EQ(back.result, DiffResult::kFaster);
  EXPECT_DOUBLE_EQ(back.step.Difference(), -diff.step.Difference());
}

TEST(Diff, WhatTheStepGainsInOnePartAndLosesInAnotherIsSaid) {
  const Diff diff =
      Compare({JobOfTraces({Steady(40, 50, 600)})}, {JobOfTraces({Steady(40, 250, 400)})});
  EXPECT_EQ(diff.result, DiffResult::kNoDifference);
  EXPECT_NE(DiffVerdict(diff).find("; but in parts: "), std::string::npos) << DiffVerdict(diff);
  EXPECT_TRUE(RowOf(diff, DiffTable::By::kOperation, "gemm")->IsClear());
}

TEST(Diff, TheSameRunTwiceIsEqual) {
  const std::vector<JobAnalysis> run = {JobOfTraces({Steady(4, 50)})};
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
    return JobOfTraces({Training(
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
  JobAnalysis busy = JobOfTraces({Steady(40, 250)});
  busy.ranks[0].host_facts.push_back({"cpu_busy", "all cores together were busy 99 %", 99, "%"});
  const JobAnalysis quiet = JobOfTraces({Steady(40, 50)});
  const Diff diff = Compare({quiet}, {busy});
  EXPECT_EQ(Ids(diff.cautions).back(), "busy_host");
  EXPECT_TRUE(DiffVerdict(diff).ends_with("another run may say otherwise")) << DiffVerdict(diff);
  const Diff plain = Compare({quiet}, {JobOfTraces({Steady(40, 250)})});
  EXPECT_LT(diff.step.bounds->low, plain.step.bounds->low);
}

TEST(Diff, FewStepsHaveADifferenceAndNoInterval) {
  const Diff diff = Compare({JobOfTraces({Steady(6, 50)})}, {JobOfTraces({Steady(40, 250)})});
  EXPECT_EQ(diff.result, DiffResult::kUnknown);
  EXPECT_FALSE(diff.IsConclusive());
  EXPECT_FALSE(diff.step.bounds.has_value());
  EXPECT_NE(DiffVerdict(diff).find("how much of that is noise is not known"), std::string::npos);
  EXPECT_EQ(Ids(diff.cautions).back(), "few_steps");
}

TEST(Diff, WithoutStepsNothingIsCompared) {
  const Trace without = TraceFromScript("thread 1\nop 0 10 aten::add\n");
  const Diff diff = Compare({JobOfTraces({Steady(40, 50)})}, {JobOfTraces({without})}, true);
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
    return JobOfTraces({trace});
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
  const Diff mixed = Compare({JobOfTraces({kineto})}, {JobOfTraces({ours})});
  EXPECT_EQ(Ids(mixed.refusals), std::vector<std::string>{"source"});
}

TEST(Diff, DamagedRunsAreComparedAndNeverConclusive) {
  JobAnalysis damaged = JobOfTraces({Steady(40, 50)});
  damaged.ranks[0].quality.push_back({"lost_chunk", QualitySeverity::kDataLoss, 2, ""});
  const Diff diff = Compare({damaged}, {JobOfTraces({Steady(40, 250)})});
  EXPECT_EQ(diff.result, DiffResult::kSlower);
  EXPECT_FALSE(diff.IsConclusive());
  EXPECT_EQ(Ids(diff.losses), std::vector<std::string>{"data_loss"});
}

TEST(Diff, OnTheHostAloneTheStepIsTheThreads) {
  const auto host = [](int forward) {
    return JobOfTraces({TraceFromScript(fmt::format(R"(
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
    return JobOfTraces(ranks);
  };
  const Diff diff = Compare({job(50)}, {job(450)});
  EXPECT_NEAR(diff.step.Difference(), 0.2, 1e-9);
  EXPECT_NEAR(RowOf(diff, DiffTable::By::kRank, "1")->Difference(), 0.4, 1e-9);
  EXPECT_EQ(RowOf(diff, DiffTable::By::kRank, "0")->Difference(), 0);
  EXPECT_EQ(Table(diff, DiffTable::By::kRank)->rows[0].name, "1");
  ExpectSums(diff);
}

// Four ranks that wait for each other in a collective: the steps of all are as long as the latest's.
JobAnalysis WithLateRank(int64_t late, int by_us) {
  std::vector<Trace> ranks;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const int wait = rank == late ? by_us : 10;
    std::string host = "thread 1\n";
    std::string device = "stream 0 7\n";
    for (int i = 0; i < 20; ++i) {
      const int at = i * (by_us + 720);
      const int work = at + wait;
      const int end = at + by_us + 720;
      host += fmt::format("step {} {} ProfilerStep#{}\n", at, end, i);
      host += fmt::format(
          "annotation {} {} enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n", at,
          work);
      host += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", work, work + 5, 2 * i + 1);
      host += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", work + 6, work + 9, 2 * i + 2);
      host += fmt::format("call {} {} cudaDeviceSynchronize\n", work + 10, end - 1);
      device += fmt::format("kernel {} {} gemm | corr={}\n", work + 8, work + 608, 2 * i + 1);
      device += fmt::format("kernel {} {} ncclDevKernel_AllReduce_Sum_f32_RING_LL | corr={}\n",
                            work + 610, end - 2, 2 * i + 2);
    }
    ranks.push_back(TraceFromScript(host + device));
    ranks.back().rank = rank;
    ranks.back().world_size = 4;
  }
  return JobOfTraces(ranks);
}

TEST(Diff, NamesTheRankThatBecameLateAndWhatGrewThere) {
  const JobAnalysis good = WithLateRank(-1, 10);
  const JobAnalysis bad = WithLateRank(2, 3010);
  const Diff diff = Compare({good}, {bad});
  ASSERT_EQ(diff.late_ranks.size(), 1u);
  const LateRankDiff& late = diff.late_ranks[0];
  EXPECT_EQ(late.rank, 2);
  EXPECT_EQ(late.a_late_ms, 0);
  EXPECT_NEAR(late.b_late_ms, 3, 0.01);
  EXPECT_EQ(late.cause.name, "idle_input_wait");
  EXPECT_NEAR(late.cause.Difference(), 3, 0.01);
  EXPECT_TRUE(DiffVerdict(diff).ends_with(
      "; rank 2 became late by 3.00 ms/step, idle: input wait +3.00 there"))
      << DiffVerdict(diff);
  const Diff back = Compare({bad}, {good});
  ASSERT_EQ(back.late_ranks.size(), 1u);
  EXPECT_EQ(back.late_ranks[0].b_late_ms, 0);
  EXPECT_NE(DiffVerdict(back).find("; rank 2 is no longer late"), std::string::npos);
  EXPECT_TRUE(Compare({bad}, {bad}).late_ranks.empty());
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
    return JobOfTraces({TraceFromScript(script + "end\n")});
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
    return JobOfTraces({TraceFromScript(fmt::format(R"(
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

}  // namespace
}  // namespace trainprof
