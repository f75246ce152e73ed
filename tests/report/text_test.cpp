// The words that people read first.
#include <gtest/gtest.h>
#include <time.h>

#include <string>

#include "profiler/report/renderer.h"
#include "profiler/report/text.h"

namespace trainprof {
namespace {

TEST(Wrap, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(Wrap("aa bb cc", 2, 7), "aa bb\n  cc");
  EXPECT_EQ(Wrap("averylongword x", 2, 5), "averylongword\n  x");
  EXPECT_EQ(Wrap("", 2, 5), "");
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
  const std::string card = RenderCard(job, {});
  // `trainprof run` prints at most 20 lines, eight of which are its own.
  EXPECT_LE(std::count(card.begin(), card.end(), '\n'), 12);
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
  const std::string report = FindRenderer("json")->render(job, {});
  constexpr double kGenerous = 10;  // a second under sanitizers
  EXPECT_LT(CpuSeconds() - begin, kGenerous);
  EXPECT_NE(report.find("\"member 0\": \"the last one counts\""), std::string::npos);
  EXPECT_NE(report.find("\"member 199999\": \"value\""), std::string::npos);
  EXPECT_LT(report.find("\"member 0\""), report.find("\"member 1\""));
}

}  // namespace
}  // namespace trainprof
