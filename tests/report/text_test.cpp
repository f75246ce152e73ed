// The words that people read first.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace trainprof
