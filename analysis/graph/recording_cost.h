// What recording itself took of the host: that goes without trainprof, and a gain is what is measured then.
#pragma once

#include <vector>

#include "analysis/graph/graph.h"
#include "trace/base/interval_set.h"
#include "trace/base/time.h"
#include "trace/tables/trace.h"

namespace trainprof {

// When the host took longer, and the share of it that its work takes where it is not recorded.
struct SlowedTime {
  Interval interval;
  double share = 1;
};

struct RecordingCost {
  Duration call;   // of a call that is recorded
  Duration stack;  // of taking its stack, beside that
  // Measured (account/slowed_host.h): calls and stacks within are part of it. In time order, disjoint.
  std::vector<SlowedTime> measured{};
  bool stack_is_measured = false;  // by the recorder

  bool Any() const { return call.ns != 0 || stack.ns != 0 || !measured.empty(); }
  // What it may be as well. What is measured may be a quarter less or more, what is assumed where nothing is measured half
  // as much or seven times: on an H200 a launch took 1.8 us in a row of launches, 18 in autograd's threads, 7 all in all
  // (docs/gpu_results.md).
  RecordingCost AtLeast() const;
  RecordingCost AtMost() const;

 private:
  RecordingCost Scaled(double of_measured, double of_assumed) const;
};

// As long as nothing is measured. Nothing where it is not known: of what others recorded.
RecordingCost RecordingCostOf(const Trace& trace);

// Takes it out of a graph's costs. O((V + E) log(measured + waits)), on all cores, where it is not nothing.
void LeaveOut(const RecordingCost& cost, const Trace& trace, const Graph& graph, Costs& costs);

}  // namespace trainprof
