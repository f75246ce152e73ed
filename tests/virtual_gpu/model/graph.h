// CUDA graphs: captured from streams or built node by node, instantiated, launched.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/virtual_gpu/model/host_functions.h"
#include "tests/virtual_gpu/model/machine.h"

namespace vgpu {

struct GraphNode {
  uint64_t id = 0;  // of the process, never used twice
  Operation operation;
  bool empty = false;               // only orders others
  HostFunction function = nullptr;  // called instead of an operation
  void* argument = nullptr;
  std::vector<GraphNode*> after;  // nodes of the same graph that stand before it
};

struct Graph {
  uint32_t id = 0;
  std::vector<std::unique_ptr<GraphNode>> nodes;  // each after those that it depends on
};

// What is launched: a copy with node ids of its own.
struct GraphExec {
  Graph graph;
  uint32_t source_id = 0;
  bool knew_tool = false;  // a tool recorded kernels when it was made
};

struct Capture {
  std::unique_ptr<Graph> graph;
  Stream* origin = nullptr;
  std::vector<Stream*> streams;  // origin first
};

std::unique_ptr<Graph> NewGraph();
GraphNode* AddNode(Graph& graph, const Operation& operation, std::vector<GraphNode*> after);

// False when the stream is being captured already.
bool BeginCapture(Stream& stream);
// Null when the stream is not the origin of a capture.
std::unique_ptr<Graph> EndCapture(Stream& stream);

// With the machine's lock held.
GraphNode& AddCaptured(Stream& stream, const Operation& operation);
void JoinCapture(Stream& stream, const Event& event);

std::unique_ptr<GraphExec> Instantiate(const Graph& graph);
// Issues all nodes. Waits while too much is pending in the stream. No node: no work, as in CUDA.
void Launch(GraphExec& exec, Stream& stream);

}  // namespace vgpu
