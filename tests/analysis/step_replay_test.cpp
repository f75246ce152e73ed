// How long steps would have taken after a change.
#include "analysis/graph/step_replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/graph/build.h"
#include "analysis/host/timeline.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// A loop of 3 ms of work and a read-back in each step, and a logger that copies every 7 ms, as it likes. In step 10 its copy
// takes the link just before the loop's: sooner that one would have come first.
constexpr char kLogger[] = R"(
    thread 1
    repeat 20 every 4000
      step 0 4000 step
      annotation 10 3000 tokenize
      call 3010 3013 cudaLaunchKernel | corr=1
      call 3020 3530 cudaMemcpyAsync | corr=2
    end
    thread 2
    call 43480 43485 cudaMemcpyAsync | corr=3
    stream 0 7
    repeat 20 every 4000
      kernel 3020 3500 forward | corr=1
      copy 3510 3520 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4
    end
    stream 0 9
    copy 43490 43510 Memcpy DtoH (Device -> Pageable) | corr=3 bytes=4)";

TEST(StepReplay, WhoIsReadyFirstTakesTheLinkFirst) {
  const Trace trace = TraceFromScript(kLogger);
  const Steps steps = FindSteps(trace);
  const Graph graph = BuildGraph(trace, steps, FindBlockingCalls(trace));
  ASSERT_NE(std::count(graph.edge_kind.begin(), graph.edge_kind.end(), EdgeKind::kEngine), 0);
  const StepReplay replay(trace, steps, graph, true);
  ASSERT_EQ(replay.identity_error(), 0);
  Change change{Edit::kDropHostWork, {}};
  for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
    if (trace.Text(trace.ranges.name[row]) == "tokenize") change.rows.push_back(Row{row});
  }
  ASSERT_EQ(change.rows.size(), 20u);
  const Change* const changes[] = {&change};
  const std::vector<int64_t> after = replay.After(changes, {});
  EXPECT_LT(*std::max_element(after.begin(), after.end()), 1'100'000)
      << "all that was gained until step 10 was lost there";
  const std::vector<int64_t> same = replay.After({}, {});
  EXPECT_TRUE(std::equal(same.begin(), same.end(), replay.recorded().begin()));
}

}  // namespace
}  // namespace trainprof
