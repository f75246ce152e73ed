// From a finding to the places where it shows.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/viewer/open_job.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

using testing::Covers;
using testing::OpenJob;

TEST(Findings, TheNextPlaceOfNoneIsTheFirstOnes) {
  OpenJob job;
  State& state = job.state();
  ShowEvidence(state, +1);
  EXPECT_EQ(state.finding, (FindingRef{0, 0}));
  EXPECT_EQ(state.evidence, 0u);
  ShowEvidence(state, +1);
  EXPECT_EQ(state.evidence, 1u);
  state.finding.reset();
  ShowEvidence(state, -1);
  const size_t count = state.document->Analysis(0)->findings.size();
  EXPECT_EQ(state.finding, (FindingRef{0, static_cast<uint32_t>(count - 1)}));
  OpenJob none({"thread 1\nrepeat 3 every 1000\n  step 0 900 ProfilerStep#1\nend\n"});
  ShowEvidence(none.state(), +1);
  EXPECT_EQ(none.state().message, "There are no findings");
}

TEST(Findings, OpenTheirWorstInstance) {
  OpenJob job;
  State& state = job.state();
  const std::vector<Finding>& findings = state.document->Analysis(0)->findings;
  ASSERT_FALSE(findings.empty());
  ASSERT_GT(findings[0].evidence.size(), 1u);
  OpenFindingNumber(state, 1);
  EXPECT_EQ(state.finding, (FindingRef{0, 0}));
  EXPECT_TRUE(Covers(state.view, findings[0].evidence[0].when));
  ASSERT_TRUE(state.reveal);
  EXPECT_EQ(state.lines().lines()[*state.reveal].kind == LineKind::kIdle,
            findings[0].evidence[0].table == Table::kIdle);
  ShowEvidence(state, +1);
  EXPECT_TRUE(Covers(state.view, findings[0].evidence[1].when));
  ShowEvidence(state, -1);
  ShowEvidence(state, -1);  // around the end
  EXPECT_EQ(state.evidence, findings[0].evidence.size() - 1);
  OpenFindingNumber(state, 99);
  EXPECT_NE(state.message.find("There is no finding 99"), std::string::npos);
  EXPECT_EQ(state.finding, (FindingRef{0, 0}));
}

// GPU 1 alone idles, and is copied to without pinned memory.
constexpr std::string_view kSecondGpuScript = R"(
thread 1
repeat 12 every 10000
  step 0 9900 ProfilerStep#1
  call 10 20 cudaLaunchKernel | corr=100
  call 30 40 cudaLaunchKernel | corr=200
  call 4000 7000 cudaMemcpyAsync | corr=300
end
stream 0 7
repeat 12 every 10000
  kernel 20 9900 busy_kernel | corr=100
end
stream 1 7
repeat 12 every 10000
  kernel 40 1000 idle_kernel | corr=200
  copy 4010 6990 Memcpy HtoD (Pageable -> Device) | corr=300 bytes=40000000
end
)";

// Alone, and as the second of two ranks.
TEST(Findings, LeadToTheirOwnRow) {
  for (const uint32_t rank : {0u, 1u}) {
    OpenJob job(rank == 0 ? std::vector{kSecondGpuScript}
                          : std::vector{testing::kLoaderBoundScript, kSecondGpuScript});
    State& state = job.state();
    ASSERT_EQ(state.document->ranks(), rank + 1);
    const RankAnalysis& analysis = *state.document->Analysis(rank);
    const Trace& trace = state.document->TraceOf(rank);
    std::set<std::string> rules;
    for (uint32_t i = 0; i < analysis.findings.size(); ++i) {
      const Finding& finding = analysis.findings[i];
      OpenFinding(state, {rank, i});
      for (const Evidence& evidence : finding.evidence) {
        ASSERT_TRUE(state.reveal) << finding.rule;
        const Line& line = state.lines().lines()[*state.reveal];
        const EventColumns* const columns = ColumnsOf(trace, evidence.table);
        rules.insert(finding.rule);
        EXPECT_EQ(line.rank, rank) << finding.rule;
        if (columns == nullptr) {
          EXPECT_EQ(line.kind, LineKind::kIdle) << finding.rule;
          EXPECT_EQ(trace.devices[Index(line.device)].id, 1) << finding.rule;
          EXPECT_EQ(evidence.device, line.device);
        } else {
          EXPECT_EQ(line.track, columns->track[Index(evidence.row)]) << finding.rule;
          EXPECT_EQ(evidence.when, columns->interval(evidence.row)) << finding.rule;
        }
        ShowEvidence(state, +1);
      }
    }
    EXPECT_TRUE(rules.contains("low-utilisation") && rules.contains("pageable-copy"));
  }
}

}  // namespace
}  // namespace trainprof
