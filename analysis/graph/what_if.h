// What a graph would cost after a change.
#pragma once

#include <span>

#include "analysis/graph/change.h"
#include "analysis/graph/graph.h"
#include "analysis/graph/host_work.h"
#include "analysis/graph/recording_cost.h"

namespace trainprof {

// How the world answers to a change, as far as no trace tells. Gains are worked out under several of
// them: what they differ by is not known.
struct Assumption {
  // The program runs without trainprof: the host takes as much less. Outlives this.
  const RecordingCost* without_recording = nullptr;
  // Batches that were waited for come no earlier than they came: workers are as fast as they are.
  bool loader_is_limited = false;
  // But for these waits, in which the thread made the batch itself: rows of trace.ranges, in order.
  std::span<const Row> own_input{};
  // The host's own work takes that many times as long: what is done beside it needs processors, too.
  double contention = 1;
  // What the host did before calls that go (kDropWork) goes with them: it made what they copied.
  bool drops_preparation = false;
  // Bytes of a pinned copy per microsecond, where the trace shows none.
  int64_t pinned_bytes_per_us = 24'000;
  // Copies that became pinned run in a stream of their own, beside other work.
  bool pinned_copies_overlap = false;
  // Copies to the host for work that moves off the loop (kDropHostWork) run in a stream of their own.
  bool saved_copies_overlap = false;
  // Nothing lies between the nodes of a graph, where as much did between launches.
  bool closes_graph = false;
  // In times in which nothing shows that the host worked: it waited for the device, somehow. Outlives this.
  const HostWorkCut* silence = nullptr;
  // No node of a graph is missing: what stands behind its launch and waited was idle (Residual).
  bool has_all_graph_nodes = false;
  // Matrix products on CUDA cores take so many times as long as on tensor cores, whose peaks are 2 (GeForce) to 16 times
  // as high (A100, H100) in bfloat16; what memory bounds moves half the bytes.
  double tensor_core_speedup = 4;
  // The last collective of each step is still waited for.
  bool waits_for_last_collective = false;
  // Gradients are exchanged behind the backward pass, in the time that they take now.
  bool exchange_is_exposed = false;
};

// The recorded costs with all changes made. Rows that have no node, of a part that was not recorded,
// change nothing. O(V + E + rows log rows).
Costs CostsAfter(const Trace& trace, const Graph& graph, std::span<const Change* const> changes,
                 const Assumption& assumption);
// The same into room that may be there from the last time.
void CostsAfter(const Trace& trace, const Graph& graph, std::span<const Change* const> changes,
                const Assumption& assumption, Costs& costs);

}  // namespace trainprof
