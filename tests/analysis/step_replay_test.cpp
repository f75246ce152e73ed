// How long steps would have taken after a change.
#include "analysis/graph/step_replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "analysis/graph/build.h"
#include "analysis/host/timeline.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// A loop of 3 ms of work and a read-back in each step, and a logger of its own pace, whose operation took the device or the
// link for `held` us just before the loop's in steps 10 and 15: sooner that one would have come first.
std::string WithLogger(int64_t at, int64_t held, std::string_view operation, bool is_kernel) {
  std::string host = "thread 1\n";
  std::string stream = "stream 0 7\n";
  std::string logger = "thread 2\n";
  std::string other = "stream 0 9\n";
  for (int64_t step = 0; step < 20; ++step) {
    const int64_t begin = 4000 * step;
    const bool is_held = step == 10 || step == 15;
    const int64_t kernel = begin + 3020 + (is_held && is_kernel ? held : 0);
    const int64_t copy = begin + 3610 + (is_held && !is_kernel ? held : 0);
    host += fmt::format("step {} {} step\nannotation {} {} tokenize\n", begin, begin + 4000,
                        begin + 10, begin + 3000);
    host += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", begin + 3010, begin + 3013,
                        2 * step + 1);
    host += fmt::format("call {} {} cudaMemcpyAsync | corr={}\n", begin + 3020, copy + 30,
                        2 * step + 2);
    stream += fmt::format("kernel {} {} forward | corr={}\n", kernel, begin + 3600, 2 * step + 1);
    stream += fmt::format("copy {} {} Memcpy DtoH (Device -> Pageable) | corr={}\n", copy,
                          copy + 10, 2 * step + 2);
    if (!is_held) continue;
    logger += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", begin + at - 15,
                          begin + at - 10, 100 + step);
    other += fmt::format("{} {} {} {} | corr={}\n", is_kernel ? "kernel" : "copy", begin + at,
                         is_kernel ? kernel + 5 : copy - 1, operation, 100 + step);
  }
  return host + logger + stream + other;
}

void ExpectTheLoopFirst(const std::string& script, EdgeKind held_by) {
  const Trace trace = TraceFromScript(script);
  const Steps steps = FindSteps(trace);
  const Graph graph = BuildGraph(trace, steps, FindBlockingCalls(trace));
  ASSERT_GE(std::count(graph.edge_kind.begin(), graph.edge_kind.end(), held_by), 2);
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
      << "all that was gained until then was lost in step 10";
  const std::vector<int64_t> same = replay.After({}, {});
  EXPECT_TRUE(std::equal(same.begin(), same.end(), replay.recorded().begin()));
}

TEST(StepReplay, WhoIsReadyFirstTakesTheLinkFirst) {
  ExpectTheLoopFirst(WithLogger(3599, 100, "Memcpy DtoH (Device -> Pageable)", false),
                     EdgeKind::kEngine);
}

TEST(StepReplay, WhoIsReadyFirstTakesTheDeviceFirst) {
  ExpectTheLoopFirst(WithLogger(3012, 100, "histogram", true), EdgeKind::kInferredRoom);
}

}  // namespace
}  // namespace trainprof
