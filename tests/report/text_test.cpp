// The words that people read first.
#include <gtest/gtest.h>
#include <time.h>

#include <nlohmann/json.hpp>
#include <string>

#include "profiler/report/for_people.h"
#include "profiler/report/memory_text.h"
#include "profiler/report/renderer.h"
#include "profiler/report/text.h"

namespace trainprof {
namespace {

TEST(Wrap, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(Wrap("aa bb cc", 2, 7), "aa bb\n  cc");
  EXPECT_EQ(Wrap("averylongword x", 2, 5), "averylongword\n  x");
  EXPECT_EQ(Wrap("", 2, 5), "");
}

TEST(FirstWords, CutsBetweenWords) {
  EXPECT_EQ(FirstWords("aa bb cc", 8), "aa bb cc");
  EXPECT_EQ(FirstWords("aa bb cc", 7), "aa ...");
  EXPECT_EQ(FirstWords("aa bbb ccc", 9), "aa ...");
  EXPECT_EQ(FirstWords("aa bb cccc", 9), "aa bb ...");
  EXPECT_EQ(FirstWords("averylongword x", 8), "avery...");
}

TEST(Card, WithoutStepsAGainIsOfAll) {
  JobAnalysis job;
  job.ranks.emplace_back();
  job.ranks[0].findings.emplace_back();
  EXPECT_NE(RenderCard(job, {}).find("gain 0.0 to 0.0 ms in all"), std::string::npos);
}

TEST(Card, StaysWithinTwelveLines) {
  JobAnalysis job;
  job.ranks.emplace_back().window = Milliseconds(4);
  for (int i = 0; i < 10; ++i) {
    Finding& finding = job.ranks[0].findings.emplace_back();
    finding.rule = "input-bound";
    finding.code = "TP101";
    finding.title = "t";
  }
  // `trainprof run` prints at most 20 lines, eight of which are its own.
  const auto lines = [&] {
    const std::string card = RenderCard(job, {});
    return std::count(card.begin(), card.end(), '\n');
  };
  EXPECT_LE(lines(), 12);
  job.ranks[0].memory.series.push_back({.name = "resident", .growth_bytes_per_step = 1e6});
  EXPECT_LE(lines(), 12);
}

TEST(Memory, SaysPeaksGrowthLinesAndWhatItCost) {
  RankAnalysis rank;
  EXPECT_EQ(MemoryText(rank), "");
  constexpr int64_t kMib = 1 << 20;
  rank.memory.series = {
      {7, "cuda:0 allocated", 3 << 10, 0, 4, false, 0, 0},
      {7, "resident", 400 * kMib, 0, 90, true, 2.0 * kMib, 100},
  };
  rank.memory.kept = {
      {"graph", "cpu", 0, 0, 8, 42, "total", "/a/train.py", 0, ""},
      {"tensor", "cpu", kMib, 2, 2, 27, "", "/a/model.py", 42, "/a/train.py"},
      {"tensor", "cuda:0", kMib, 0.25, 0, 30, "", "train.py", 0, ""},
      {"block", "cuda:0", 3 * kMib, 1, 0, 31, "", "train.py", 0, ""},
      {"python", "", kMib / 2, 1000.4, 0, 46, "", "train.py", 0, ""},
  };
  rank.memory.cost = Microseconds(20);
  rank.memory.searched_steps = 8;
  rank.memory.search = Milliseconds(300);
  EXPECT_EQ(
      MemoryText(rank),
      R"(  cuda:0 allocated         3.0 KiB at the peak, too few steps to tell whether it grows
  resident                 400 MiB at the peak, grows 2.0 MiB/step
    train.py:42 lets the graph behind total grow, by 8 nodes each step: what they saved stays
    model.py:27 (from train.py:42) keeps 2 tensors of 512 KiB each step, with their graphs
    train.py:30 keeps 1 tensor of 4.0 MiB every 4 steps on cuda:0
    train.py:31 allocated 1 block of 3.0 MiB each step on cuda:0 that stay
    train.py:46 keeps 1000 Python objects of 524 B each step
  in sight of Python these hold 1.5 MiB of the 2.0 MiB that come with each step
  --memory took 0.020 ms/step, and 300 ms in its search over 8 steps
)");
  EXPECT_EQ(
      MemoryCardLine(rank),
      "memory (resident) grows 2.0 MiB/step: train.py:42 lets the graph behind total grow, by 8 "
      "nodes each step: what they saved stays\n");
  rank.memory.series[1].growth_bytes_per_step = 0;
  EXPECT_EQ(MemoryCardLine(rank), "");
  EXPECT_NE(MemoryText(rank).find("no growth (noise 100 B)"), std::string::npos);
  EXPECT_EQ(MemoryText(rank).find("in sight of Python"), std::string::npos);
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Of a trace's top-level members: when each was looked for among all before it, 80,000 took 10 s.
TEST(Json, TakesLinearTimeForTheEnvironment) {
  constexpr int kNames = 200'000;
  JobAnalysis job;
  job.ranks.emplace_back();
  for (int i = 0; i < kNames; ++i) {
    job.ranks[0].environment.emplace_back("member " + std::to_string(i), "value");
  }
  job.ranks[0].environment.emplace_back("member 0", "the last one counts");
  const double begin = CpuSeconds();
  const std::string report = FindRenderer("json")->render(job, {}).value();
  constexpr double kGenerous = 10;  // a second under sanitizers
  EXPECT_LT(CpuSeconds() - begin, kGenerous);
  EXPECT_NE(report.find("\"member 0\": \"the last one counts\""), std::string::npos);
  EXPECT_NE(report.find("\"member 199999\": \"value\""), std::string::npos);
  EXPECT_LT(report.find("\"member 0\""), report.find("\"member 1\""));
}

// One rank's loss is not hidden behind another's oddity.
TEST(Json, SumsCountsOfOneKindBySeverity) {
  JobAnalysis job;
  for (const QualitySeverity severity :
       {QualitySeverity::kInfo, QualitySeverity::kDataLoss, QualitySeverity::kDataLoss}) {
    job.ranks.emplace_back().quality.push_back({"launches_without_kernel", severity, 3, ""});
  }
  const auto report = nlohmann::json::parse(FindRenderer("json")->render(job, {}).value());
  ASSERT_EQ(report["quality"].size(), 2u);
  EXPECT_EQ(report["quality"][0]["severity"], "info");
  EXPECT_EQ(report["quality"][0]["count"], 3);
  EXPECT_EQ(report["quality"][1]["severity"], "data_loss");
  EXPECT_EQ(report["quality"][1]["count"], 6);
}

TEST(ForPeople, NamesOfAJobArePartOfALine) {
  JobAnalysis job;
  job.elsewhere.push_back({"kind\nVERDICT", QualitySeverity::kDataLoss, 1, "x\nVERDICT all fine"});
  job.run.missing_files = {"rank-00000/x\nVERDICT all fine.tps"};
  const JobAnalysis clean = ForPeople(job);
  EXPECT_EQ(clean.elsewhere[0].kind, "kind\\nVERDICT");
  EXPECT_EQ(clean.elsewhere[0].detail, "x\\nVERDICT all fine");
  EXPECT_EQ(clean.run.missing_files[0], "rank-00000/x\\nVERDICT all fine.tps");
}

// A rank of four steps, `skipped` for one reason each.
RankAnalysis RankThatSkips(int64_t number, std::vector<std::string> skipped) {
  RankAnalysis rank;
  rank.rank = number;
  rank.window = Milliseconds(4);
  rank.steps.steps.resize(4);
  rank.passed = {"input-bound"};
  for (std::string& rule : skipped) {
    rank.skipped.push_back({std::move(rule), "the trace holds no device work"});
  }
  return rank;
}

size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string TextReport(const JobAnalysis& job) {
  return FindRenderer("text")->render(job, {}).value();
}

TEST(Card, SaysWhatNoFindingsAreAbout) {
  JobAnalysis job;
  job.ranks.push_back(RankThatSkips(0, {"cpu-tensor", "host-sync", "pageable-copy"}));
  const std::string card = RenderCard(job, {});
  EXPECT_NE(card.find("No findings in what was checked: input-bound\n"), std::string::npos) << card;
  EXPECT_NE(card.find("not checked: cpu-tensor, host-sync, pageable-copy: the trace holds no "),
            std::string::npos)
      << card;
  job.ranks[0].passed.clear();
  EXPECT_NE(RenderCard(job, {}).find("No rule could be checked\n"), std::string::npos);
}

// The supervisor's own lines count them.
TEST(Card, DoesNotCountLostRecordsASecondTime) {
  JobAnalysis job;
  job.ranks.push_back(RankThatSkips(0, {}));
  EXPECT_EQ(CountOf(RenderCard(job, {}), "lost"), 0u);
  job.ranks[0].quality.push_back({"dropped_events", QualitySeverity::kDataLoss, 7, ""});
  EXPECT_EQ(CountOf(RenderCard(job, {}), "lost"), 1u);
  EXPECT_NE(RenderCard(job, {}).find("inconclusive: records are lost or damaged: 7 x dropped_ev"),
            std::string::npos);
}

TEST(Card, NamesFindingsThatOnlyOtherRanksHave) {
  JobAnalysis job;
  job.ranks.push_back(RankThatSkips(0, {}));
  job.ranks.push_back(RankThatSkips(1, {}));
  job.ranks[0].window = Milliseconds(8);  // the slowest
  job.ranks[1].findings.emplace_back().severity = Severity::kError;
  EXPECT_NE(RenderCard(job, {}).find("findings of other ranks: 1 error (rank 1)\n"),
            std::string::npos);
}

// 4,000 ranks, one of them late: a line for those that are alike, one for the late one.
TEST(TextReport, ShowsManyRanksInGroups) {
  JobAnalysis job;
  constexpr uint32_t kRanks = 4000;
  constexpr uint32_t kLate = 1234;
  for (uint32_t r = 0; r < kRanks; ++r) {
    RankAnalysis rank = RankThatSkips(r, {});
    rank.window = Milliseconds(100);
    Finding& finding = rank.findings.emplace_back();
    finding.code = r == kLate ? "TP101" : "TP201";
    finding.rule = r == kLate ? "input-bound" : "low-utilisation";
    finding.title = "some title";
    job.ranks.push_back(std::move(rank));
    RankWaits& waits = job.waits.ranks.emplace_back();
    waits.collectives = 10;
    if (r != kLate) {
      waits.wait = Milliseconds(20 + r % 3);
      waits.awaited = kLate;
      waits.awaited_wait = Milliseconds(20);
    }
    job.waits.clocks.emplace_back();
  }
  job.waits.late = {kLate};
  job.waits.is_whole = true;
  const std::string text = TextReport(job);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40) << text;
  EXPECT_NE(text.find("ranks 0 to 1233, 1235 to 3999 waits 5.0 ms to 5.5 ms/step, 5.0 ms of it for "
                      "rank 1234"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("rank 1234 comes last"), std::string::npos) << text;
}

TEST(TextReport, SpeaksOfNoStepOfRanksWithoutAny) {
  JobAnalysis job;
  for (int64_t number = 0; number < 100; ++number) {
    job.ranks.push_back(RankThatSkips(number, {}));
    job.ranks.back().steps = {};
  }
  EXPECT_NE(TextReport(job).find("\n100 ranks (ranks 0 to 99): the first, rank 0: no steps"),
            std::string::npos)
      << TextReport(job);
}

TEST(TextReport, CallsNoRankSlowestWhereNoneMakesOthersWait) {
  JobAnalysis job;
  for (int64_t number = 0; number < 3; ++number) {
    RankAnalysis& rank = job.ranks.emplace_back(RankThatSkips(number, {}));
    rank.window = Milliseconds(100 + number % 2);  // by chance
  }
  const std::string text = TextReport(job);
  EXPECT_NE(text.find("VERDICT rank 0 (the ranks are alike): "), std::string::npos) << text;
  EXPECT_NE(text.find("\nRank 0 (the ranks are alike)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("slowest"), std::string::npos) << text;
  job.ranks[1].window = Milliseconds(110);
  EXPECT_NE(TextReport(job).find("\nRank 1, the slowest\n"), std::string::npos);
}

// Else several functions of a file far down read alike.
TEST(TextReport, LeavesOutFoldersWhereAFunctionsNameHasNoRoom) {
  JobAnalysis job;
  RankAnalysis& rank = job.ranks.emplace_back(RankThatSkips(0, {}));
  rank.window = Milliseconds(10);
  rank.host_other.total = Milliseconds(10);
  rank.host_other.items = {
      {OtherKind::kPython, "vllm/v1/utils.py(130): copy_to_gpu", Milliseconds(5), 1},
      {OtherKind::kPython, "vllm/v1/worker/gpu_model_runner.py(931): _update_states",
       Milliseconds(4), 1},
      {OtherKind::kRange, "a/range/with/a/name/that/is/longer/than/the/column", Milliseconds(1), 1},
  };
  const std::string text = TextReport(job);
  EXPECT_NE(text.find("  python vllm/v1/utils.py(130): copy_to_gpu "), std::string::npos) << text;
  EXPECT_NE(text.find("  python gpu_model_runner.py(931): _update_states "), std::string::npos)
      << text;
  EXPECT_NE(text.find("  range a/range/with/a/name/that/is/longer/than..."), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nMain thread, ms/step\n"), std::string::npos) << text;
}

TEST(TextReport, SaysOnceWhySeveralRulesWereSkipped) {
  JobAnalysis job;
  const std::vector<std::string> rules{"cpu-tensor", "host-sync", "low-utilisation"};
  job.ranks.push_back(RankThatSkips(0, rules));
  EXPECT_EQ(CountOf(TextReport(job), "no device work"), 1u);
  job.ranks.push_back(RankThatSkips(1, rules));
  EXPECT_NE(TextReport(job).find("the trace holds no device work (ranks 0 to 1)"),
            std::string::npos);
}

TEST(TextReport, ListsFindingsOfOtherRanksByRule) {
  JobAnalysis job;
  for (int64_t number = 0; number < 4; ++number) job.ranks.push_back(RankThatSkips(number, {}));
  job.ranks[0].window = Milliseconds(8);  // the slowest, without a finding
  for (const int64_t number : {1, 2, 3}) {
    Finding& finding = job.ranks[static_cast<size_t>(number)].findings.emplace_back();
    finding.rule = "input-bound";
    finding.severity = Severity::kError;
    finding.title = "waits in rank " + std::to_string(number);
    finding.gain.high_ms_per_step = number == 2 ? 5 : 1;
  }
  const std::string text = TextReport(job);
  EXPECT_EQ(CountOf(text, "input-bound  ranks 1 to 3, the most in rank 2: waits in rank 2"), 1u)
      << text;
}

TEST(Report, ShowsThePhasesByLine) {
  JobAnalysis job;
  RankAnalysis& rank = job.ranks.emplace_back();
  rank.window = Milliseconds(100);
  rank.has_host_phases = true;
  rank.host_account = {{"input_wait", "input wait", Milliseconds(97)},
                       {"forward", "forward", Milliseconds(3)}};
  const auto line = [](const char* function, int64_t number, int64_t ms, int64_t waiting) {
    return LineTime{"/me/\033[31mtrain.py", number, function, "", "", Milliseconds(ms),
                    Milliseconds(waiting),  ms,     {}};
  };
  std::vector<LineTime> lines = {line("read", 9, 60, 59), line("decode", 10, 20, 1)};
  for (int i = 0; i < 6; ++i) lines.push_back(line("augment", 20 + i, 3, 0));
  rank.host_lines = {
      {HostClass::kInputWait, Milliseconds(97), 97, true, lines, {}, {}},
      {HostClass::kForward, Milliseconds(3), 3, true, {line("step", 30, 3, 0)}, {}, {}}};
  rank.host_lines[0].work = {{BatchWork::kDecoding, Milliseconds(60)},
                             {BatchWork::kOther, Milliseconds(33)},
                             {BatchWork::kReading, Milliseconds(4)}};
  std::string text = RenderJob(*FindRenderer("text"), job, {}).value();
  const size_t begin = text.find("  where that was");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(text.substr(begin, text.find("\n\n", begin) - begin),
            R"(  where that was, by source line (100 samples of stacks)
  input wait                                            97.000   97.0 %
    \x1b[31mtrain.py:9 read, waiting                    60.000   60.0 %
    \x1b[31mtrain.py:10 decode                          20.000   20.0 %
    \x1b[31mtrain.py:20 augment                          3.000    3.0 %
    \x1b[31mtrain.py:21 augment                          3.000    3.0 %
    \x1b[31mtrain.py:22 augment                          3.000    3.0 %
    3 smaller ones                                       9.000    9.0 %
    making the batches was 62 % decoding)");
  rank.host_lines.clear();
  EXPECT_EQ(RenderJob(*FindRenderer("text"), job, {}).value().find("by source line"),
            std::string::npos);
}

}  // namespace
}  // namespace trainprof
