#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "analysis/graph/build.h"
#include "analysis/graph/step_replay.h"
#include "analysis/graph/what_if.h"
#include "analysis/host/timeline.h"
#include "analysis/model.h"
#include "analysis/residual_site.h"
#include "tests/analysis/random_program.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_script.h"

namespace trainprof {
using trainprof::testing::Rounds;
namespace {

Graph GraphOf(const Trace& trace) {
  return BuildGraph(trace, FindSteps(trace), FindBlockingCalls(trace));
}

// The recorded end of a node; -1 of those that stand for no row's end.
int64_t RecordedEnd(const Trace& trace, const Graph& graph, NodeId node) {
  const uint32_t row = graph.row[node];
  switch (graph.kind[node]) {
    case NodeKind::kDeviceOp:
      return trace.device_ops.end(row).ns;
    case NodeKind::kHostFunction:
      return trace.syncs.end(row).ns;
    case NodeKind::kWait:
      return trace.api.end(row).ns;
    case NodeKind::kCall:
      return graph.WaitOf(Row{row}) == 0 ? trace.api.end(row).ns : -1;
    default:
      return -1;
  }
}

void ExpectIdentity(const Trace& trace, const Graph& graph) {
  const std::vector<int64_t> ends = Replay(graph, graph.recorded);
  ASSERT_EQ(ends, graph.ends);
  for (NodeId node = 1; node < graph.size(); ++node) {
    const int64_t recorded = RecordedEnd(trace, graph, node);
    if (recorded < 0) continue;
    ASSERT_EQ(ends[node], recorded)
        << "node " << node << " of kind " << static_cast<int>(graph.kind[node]) << " row "
        << graph.row[node];
  }
}

TEST(Graph, ReplayedAsItIsGivesTheRecording) {
  for (uint64_t seed = 0; seed < Rounds<uint64_t>(2000); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Simulation run = Simulate(DrawProgram(random));
    const Graph graph = GraphOf(run.trace);
    ExpectIdentity(run.trace, graph);
    ASSERT_EQ(graph.dropped_edges, 0);
    ASSERT_TRUE(graph.residuals.empty()) << graph.residuals.size();
    for (const auto& nodes : graph.last_of_step) ASSERT_FALSE(nodes.empty());
  }
}

// The simulator really does what is asked: each operation ends when it says. Latencies are learnt as medians,
// so that a few microseconds are allowed for each step.
void ExpectGain(const RandomProgram& program, const Tweak& tweak, const Change& change,
                const Simulation& run, const Graph& graph) {
  const Simulation truth = Simulate(program, tweak);
  const Change* const changes[] = {&change};
  const std::vector<int64_t> ends = Replay(graph, CostsAfter(run.trace, graph, changes, {}));
  const auto allowed = static_cast<double>(30'000 + 12'000 * program.steps.size());
  ASSERT_EQ(run.trace.device_ops.size(), truth.trace.device_ops.size());
  for (uint32_t op = 0; op < truth.trace.device_ops.size(); ++op) {
    ASSERT_NEAR(static_cast<double>(ends[graph.node_of_op[op]]),
                static_cast<double>(truth.trace.device_ops.end(op).ns), allowed)
        << "operation " << op << ", recorded " << run.trace.device_ops.end(op).ns;
  }
}

TEST(Graph, WithoutItsWaitsARunTakesWhatTheSimulatorSays) {
  for (uint64_t seed = 0; seed < Rounds<uint64_t>(1000); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RandomProgram program = DrawProgram(random);
    const Simulation run = Simulate(program);
    const Graph graph = GraphOf(run.trace);
    Change change{Edit::kRemoveWaits, {}, kNoDevice, false};
    for (uint32_t call = 0; call < run.trace.api.size(); ++call) change.rows.push_back(Row{call});
    ExpectGain(program, {.waits = false}, change, run, graph);
  }
}

TEST(Graph, WithBatchesInTimeARunTakesWhatTheSimulatorSays) {
  for (uint64_t seed = 0; seed < Rounds<uint64_t>(1000); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RandomProgram program = DrawProgram(random);
    const Simulation run = Simulate(program);
    const Graph graph = GraphOf(run.trace);
    Change change{Edit::kFeedInput, {}, kNoDevice, false};
    for (uint32_t range = 0; range < run.trace.ranges.size(); ++range) {
      if (run.trace.Text(run.trace.ranges.name[range]) == "data_wait") {
        change.rows.push_back(Row{range});
      }
    }
    RandomProgram fed = program;
    for (auto& step : fed.steps) {
      for (Action& action : step) {
        if (action.does == Does::kInput) action.ns = std::min<int64_t>(action.ns, 15'000);
      }
    }
    ExpectGain(fed, {}, change, run, graph);
  }
}

TEST(Graph, WithoutItsEventsARunTakesWhatTheSimulatorSays) {
  for (uint64_t seed = 0; seed < Rounds<uint64_t>(1000); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RandomProgram program = DrawProgram(random);
    const Simulation run = Simulate(program);
    const Graph graph = GraphOf(run.trace);
    Change change{Edit::kDropDependencies, {}, kNoDevice, false};
    for (uint32_t sync = 0; sync < run.trace.syncs.size(); ++sync) {
      if (run.trace.syncs.kind[sync] == SyncKind::kStreamWaits) change.rows.push_back(Row{sync});
    }
    ExpectGain(program, {.events = false}, change, run, graph);
  }
}

// Launches lost, operations moved, times that contradict each other: whatever comes in, a node depends on
// those before it alone, and what is recorded is what a replay gives.
TEST(Graph, OfAnyTracePointsBackAndGivesTheRecording) {
  for (uint64_t seed = 0; seed < Rounds<uint64_t>(3000); ++seed) {
    SCOPED_TRACE(seed);
    RandomTraceOptions options;
    options.nested = seed % 3 != 0;
    const Trace trace = BuildTrace(DrawTrace(seed, options));
    const Graph graph = GraphOf(trace);
    for (NodeId node = 1; node < graph.size(); ++node) {
      ASSERT_LT(graph.first_edge[node], graph.first_edge[node + 1]) << "node " << node;
      for (EdgeId edge = graph.first_edge[node]; edge < graph.first_edge[node + 1]; ++edge) {
        ASSERT_LT(graph.from[edge], node);
      }
    }
    const std::vector<int64_t> ends = Replay(graph, graph.recorded);
    ASSERT_EQ(ends, graph.ends);
    for (uint32_t op = 0; op < trace.device_ops.size(); ++op) {
      ASSERT_EQ(ends[graph.node_of_op[op]], trace.device_ops.end(op).ns) << "operation " << op;
    }
  }
}

// Times of calls are rounded: the driver's ends behind the runtime's that it is part of.
TEST(Graph, ACallEndsWhenItDidThoughOneWithinItEndsLater) {
  const Trace trace = TraceFromScript(R"(
    thread 1
      call 10 13 cudaLaunchKernel | corr=1
      call 20 40 cudaMemcpy | corr=2
      call 21 44 cuCtxSynchronize | corr=3
      call 50 53 cudaLaunchKernel | corr=4
    stream 0 7
      kernel 15 60 forward | corr=1
      kernel 62 70 backward | corr=4)");
  const Graph graph = GraphOf(trace);
  const std::vector<int64_t> ends = Replay(graph, graph.recorded);
  EXPECT_EQ(ends[graph.WaitOf(Row{1})], 40'000);
}

// A host far ahead; in each of six steps the stream calls a function of the host for 3 ms between two kernels.
// `row`: what the trace tells of the function.
Trace StreamWithHostFunctions(std::string_view row) {
  return TraceFromScript(fmt::format(R"(
    thread 1
    repeat 6 every 100
      step 0 90 step
      call 10 13 cudaLaunchKernel | corr=1
      call 14 17 cudaLaunchHostFunc | corr=2
      call 18 21 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 6 every 8000
      kernel 20 1500 forward | corr=1
      {}
      kernel 4505 8015 backward | corr=3
    end)",
                                     row));
}

// By how much the last kernel ends earlier without them, in us.
double SavedUs(const Trace& trace, const Graph& graph, const Change& change) {
  const Change* const changes[] = {&change};
  const std::vector<int64_t> before = Replay(graph, graph.recorded);
  const std::vector<int64_t> after = Replay(graph, CostsAfter(trace, graph, changes, {}));
  const NodeId last = graph.node_of_op[trace.device_ops.size() - 1];
  return static_cast<double>(before[last] - after[last]) / 1e3;
}

TEST(Graph, WithoutAHostFunctionItsStreamGoesOnAtOnce) {
  const Trace trace = StreamWithHostFunctions("host-function 1505 4500 callback | corr=2");
  Change change{Edit::kDropDependencies, {}, kNoDevice, false};
  for (uint32_t row = 0; row < trace.syncs.size(); ++row) {
    if (trace.syncs.kind[row] == SyncKind::kHostFunction) change.rows.push_back(Row{row});
  }
  ASSERT_EQ(change.rows.size(), 6u);
  EXPECT_EQ(SavedUs(trace, GraphOf(trace), change), 6 * 2'995);
}

// CUPTI before 13.1 tells of the call alone.
TEST(Graph, AHostFunctionWithoutARowIsInferredWhereItsStreamStoodStill) {
  const Trace trace = StreamWithHostFunctions("");
  const Graph graph = GraphOf(trace);
  Change change{Edit::kDropDependencies, {}, kNoDevice, false};
  for (NodeId node = 0; node < graph.size(); ++node) {
    if (graph.kind[node] != NodeKind::kInferredFunction) continue;
    EXPECT_EQ(trace.Text(trace.api.name[graph.row[node]]), "cudaLaunchHostFunc");
    change.calls.push_back(Row{graph.row[node]});
  }
  ASSERT_EQ(change.calls.size(), 6u);
  EXPECT_TRUE(graph.residuals.empty());
  EXPECT_NEAR(SavedUs(trace, graph, change), 6 * 3'000, 6 * 10);
}

// What stood still behind a graph whose nodes are not in the trace is their time, and else nobody's.
TEST(Graph, WhatStandsBehindAGraphMayHaveWaitedForItsMissingNodes) {
  for (const bool has_graph : {true, false}) {
    const Trace trace =
        TraceFromScript(fmt::format(R"(
      thread 1
      repeat 8 every 5000
        step 0 5000 step
        call 10 20 cudaLaunchKernel | corr=1
        call 30 40 {} | corr=2
        call 50 60 cudaLaunchKernel | corr=3
        call 70 4905 cudaStreamSynchronize | corr=4
      end
      stream 0 7
      repeat 8 every 5000
        kernel 15 1000 forward | corr=1
        kernel 4000 4900 backward | corr=3
        sync 70 4905 Stream Sync | corr=4
      end)",
                                    has_graph ? "cudaGraphLaunch" : "cudaGetDevice"));
    const Steps steps = FindSteps(trace);
    const Graph graph = BuildGraph(trace, steps, FindBlockingCalls(trace));
    ASSERT_EQ(graph.residuals.size(), 8u);
    for (const Residual& residual : graph.residuals) {
      EXPECT_EQ(residual.is_behind_graph, has_graph);
      EXPECT_NEAR(static_cast<double>(residual.ns), 3e6, 1e4);
    }
    const StepReplay replay(trace, steps, graph, true);
    EXPECT_NEAR(replay.identity_error(), has_graph ? 0 : 0.6, 0.01);
    const std::vector<int64_t> all = replay.After({}, {.has_all_graph_nodes = true});
    EXPECT_NEAR(StepReplay::MeanOf(all) / 1e6, has_graph ? 2 : 5, 0.05);
    EXPECT_EQ(LargestResidual(RankModel(trace)).name, has_graph ? "" : "backward");
  }
}

// -- The replay against an event simulator: a node begins when the last of what it waits for has come.

Graph DrawGraph(Random& random) {
  Graph graph;
  const auto nodes = static_cast<NodeId>(random.Between(1, 60));
  for (NodeId node = 0; node < nodes; ++node) {
    graph.kind.push_back(node == 0 ? NodeKind::kStart : NodeKind::kDeviceOp);
    graph.row.push_back(node);
    graph.first_edge.push_back(static_cast<EdgeId>(graph.from.size()));
    graph.recorded.duration.push_back(0);
    const int64_t long_ns = random.Chance(5) ? 5'000'000'000 : 0;
    if (node != 0) graph.recorded.SetDuration(node, long_ns + random.Between(0, 1000));
    const int64_t edges = node == 0 ? 0 : random.Between(1, 4);
    for (int64_t i = 0; i < edges; ++i) {
      const auto edge = static_cast<EdgeId>(graph.from.size());
      graph.from.push_back(static_cast<NodeId>(random.Between(0, node - 1)));
      graph.edge_kind.push_back(EdgeKind::kStream);
      graph.recorded.lag.push_back(0);
      const int64_t far = random.Chance(5) ? random.Between(-3, 3) * 2'000'000'000 : 0;
      graph.recorded.SetLag(edge, far + random.Between(-200, 500));
      if (i > 0 && random.Chance(10)) graph.recorded.Drop(edge);
    }
  }
  graph.first_edge.push_back(static_cast<EdgeId>(graph.from.size()));
  return graph;
}

std::vector<int64_t> SimulateEvents(const Graph& graph) {
  struct Arrival {
    int64_t at;
    NodeId node;
    bool operator<(const Arrival& other) const { return at > other.at; }
  };
  std::vector<int> missing(graph.size(), 0);
  std::vector<int64_t> begin(graph.size(), INT64_MIN);
  std::vector<int64_t> end(graph.size(), 0);
  std::vector<std::vector<std::pair<NodeId, EdgeId>>> out(graph.size());
  for (NodeId node = 0; node < graph.size(); ++node) {
    for (EdgeId edge = graph.first_edge[node]; edge < graph.first_edge[node + 1]; ++edge) {
      if (graph.recorded.lag[edge] == kNever) continue;
      ++missing[node];
      out[graph.from[edge]].push_back({node, edge});
    }
  }
  std::priority_queue<Arrival> arrivals;
  begin[0] = 0;
  arrivals.push({0, 0});
  while (!arrivals.empty()) {
    const NodeId node = arrivals.top().node;
    arrivals.pop();
    end[node] = begin[node] + graph.recorded.Duration(node);
    for (const auto& [next, edge] : out[node]) {
      begin[next] = std::max(begin[next], end[node] + graph.recorded.Lag(edge));
      if (--missing[next] == 0) arrivals.push({begin[next], next});
    }
  }
  return end;
}

TEST(Graph, AReplayAgreesWithAnEventSimulatorToTheNanosecond) {
  for (uint64_t seed = 0; seed < Rounds<uint64_t>(10'000); ++seed) {
    Random random(seed);
    const Graph graph = DrawGraph(random);
    ASSERT_EQ(Replay(graph, graph.recorded), SimulateEvents(graph)) << "seed " << seed;
  }
}

TEST(Graph, ToShortenANodeOrDropAnEdgeNeverLengthensAReplay) {
  for (uint64_t seed = 0; seed < Rounds<uint64_t>(2000); ++seed) {
    Random random(seed);
    const Graph graph = DrawGraph(random);
    const std::vector<int64_t> before = Replay(graph, graph.recorded);
    Costs costs = graph.recorded;
    const auto node = static_cast<NodeId>(random.Between(0, graph.size() - 1));
    costs.SetDuration(node, random.Between(0, std::max<int64_t>(0, costs.Duration(node))));
    for (EdgeId edge = graph.first_edge[node] + 1; edge < graph.first_edge[node + 1]; ++edge) {
      if (random.Chance(50)) costs.Drop(edge);
    }
    const std::vector<int64_t> after = Replay(graph, costs);
    for (NodeId n = 0; n < graph.size(); ++n) ASSERT_LE(after[n], before[n]) << "seed " << seed;
  }
}

// Kineto names the stream whose event is waited for, not its device: of two with that number it may be either. That
// the wait is recorded tells no less than if it were not.
TEST(Graph, AWaitForAStreamThatTwoDevicesHaveIsForTheOneThatEnded) {
  for (const char* wait : {"", "sync 21 21 Stream Wait Event | corr=4 on-stream=7 record=3"}) {
    SCOPED_TRACE(wait);
    const Trace trace = TraceFromScript(fmt::format(R"(
      thread 1
      repeat 20 every 8000
        step 0 7990 step
        call 10 13 cudaLaunchKernel | corr=1
        call 18 20 cudaEventRecord | corr=3
        call 21 23 cudaStreamWaitEvent | corr=4
        call 24 27 cudaLaunchKernel | corr=5
        call 28 7980 cudaDeviceSynchronize | corr=6
      end
      stream 1 7
      repeat 20 every 8000
        kernel 15 4000 forward | corr=1
      end
      stream 0 7
      repeat 20 every 8000
        {}
        kernel 4005 7970 backward | corr=5
      end)",
                                                    wait));
    const RankModel model(trace);
    EXPECT_LT(model.step_replay->identity_error(), 0.01);
    const auto device = std::find_if(
        model.devices.begin(), model.devices.end(),
        [&](const DeviceAccount& d) { return trace.devices[Index(d.device)].id == 0; });
    ASSERT_NE(device, model.devices.end());
    EXPECT_GT(model.PerStepMs(device->Of(DeviceClass::kIdleOtherDevice)), 3.5);
  }
}

}  // namespace
}  // namespace trainprof
