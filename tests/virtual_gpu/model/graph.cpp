#include "tests/virtual_gpu/model/graph.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/operations.h"

namespace vgpu {
namespace {

std::atomic<uint32_t> last_graph = 0;
std::atomic<uint64_t> last_node = 0;

}  // namespace

std::unique_ptr<Graph> NewGraph() {
  auto graph = std::make_unique<Graph>();
  graph->id = ++last_graph;
  return graph;
}

GraphNode* AddNode(Graph& graph, const Operation& operation, std::vector<GraphNode*> after) {
  auto node = std::make_unique<GraphNode>();
  node->id = ++last_node;
  node->operation = operation;
  node->after = std::move(after);
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

bool BeginCapture(Stream& stream) {
  const std::lock_guard guard(TheMachine().lock);
  if (stream.capture != nullptr) return false;
  auto* capture = new Capture;  // ends in EndCapture
  capture->graph = NewGraph();
  capture->origin = &stream;
  capture->streams.push_back(&stream);
  stream.capture = capture;
  stream.capture_frontier.clear();
  return true;
}

std::unique_ptr<Graph> EndCapture(Stream& stream) {
  const std::lock_guard guard(TheMachine().lock);
  if (stream.capture == nullptr || stream.capture->origin != &stream) return nullptr;
  const std::unique_ptr<Capture> capture(stream.capture);
  for (Stream* joined : capture->streams) {
    joined->capture = nullptr;
    joined->capture_frontier.clear();
  }
  return std::move(capture->graph);
}

GraphNode& AddCaptured(Stream& stream, const Operation& operation) {
  GraphNode* node = AddNode(*stream.capture->graph, operation, stream.capture_frontier);
  stream.capture_frontier = {node};
  return *node;
}

void JoinCapture(Stream& stream, const Event& event) {
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.capture->streams.push_back(&stream);
    stream.capture_frontier.clear();
  }
  for (GraphNode* node : event.capture_frontier) {
    auto& frontier = stream.capture_frontier;
    if (std::find(frontier.begin(), frontier.end(), node) == frontier.end())
      frontier.push_back(node);
  }
}

std::unique_ptr<GraphExec> Instantiate(const Graph& graph) {
  auto exec = std::make_unique<GraphExec>();
  exec->graph.id = ++last_graph;
  exec->source_id = graph.id;
  if (const Tool* tool = AttachedTool()) exec->knew_tool = tool->RecordsKernels();
  std::unordered_map<const GraphNode*, GraphNode*> copy_of;
  for (const auto& node : graph.nodes) {
    std::vector<GraphNode*> after;
    for (const GraphNode* before : node->after) after.push_back(copy_of.at(before));
    GraphNode* copy = AddNode(exec->graph, node->operation, std::move(after));
    copy->empty = node->empty;
    copy->function = node->function;
    copy->argument = node->argument;
    copy_of[node.get()] = copy;
  }
  return exec;
}

namespace {

struct Issued {
  std::vector<Work> works;  // the whole graph's last
  std::vector<HostTurn> turns;
};

// What one launch does. With the machine's lock held.
Issued IssueNodes(GraphExec& exec, Stream& stream, int64_t now_ns) {
  Machine& machine = TheMachine();
  const int64_t begin = machine.ReadyNs(stream, now_ns);
  std::unordered_map<const GraphNode*, int64_t> end_of;
  Issued issued;
  Work whole = {};
  whole.start_ns = INT64_MAX;
  const auto add = [&](const GraphNode& node, int64_t start_ns, int64_t end_ns) {
    end_of[&node] = end_ns;
    whole.start_ns = std::min(whole.start_ns, start_ns);
    whole.end_ns = std::max(whole.end_ns, end_ns);
  };
  for (const auto& node : exec.graph.nodes) {
    int64_t ready = begin;
    for (const GraphNode* before : node->after) {
      ready = std::max(ready, end_of[before] + machine.DrawNs(Setting::graph_node_gap_ns));
    }
    end_of[node.get()] = ready;
    if (node->empty) continue;
    if (node->function != nullptr) {
      HostTurn turn = TurnIn(stream, ready, node->function, node->argument);
      turn.run.graph_id = exec.graph.id;
      turn.run.graph_node_id = node->id;
      issued.turns.push_back(turn);
      add(*node, ready, ready + machine.DrawNs(Setting::host_function_ns));
      continue;
    }
    Work work = machine.IssueNode(stream, node->operation, ready, now_ns);
    work.graph_id = exec.graph.id;
    work.graph_node_id = node->id;
    work.graph_knew_tool = exec.knew_tool;
    issued.works.push_back(work);
    add(*node, work.start_ns, work.end_ns);
  }
  if (whole.end_ns == 0) return issued;
  whole.kind = WorkKind::kGraph;
  whole.correlation = CurrentCorrelation();
  whole.stream = &stream;
  whole.issued_ns = now_ns;
  whole.graph_id = exec.graph.id;
  issued.works.push_back(whole);
  machine.Extend(stream, whole.end_ns);
  stream.pending.Push(whole.end_ns);
  return issued;
}

}  // namespace

void Launch(GraphExec& exec, Stream& stream) {
  Issued issued;
  {
    std::unique_lock guard(TheMachine().lock);
    const int64_t now = WaitForRoom(stream, guard);
    issued = IssueNodes(exec, stream, now);
  }
  for (const Work& work : issued.works) {
    Count(work);
    TellTool(work);
  }
  for (const HostTurn& turn : issued.turns) CallInTurn(turn);
}

}  // namespace vgpu
