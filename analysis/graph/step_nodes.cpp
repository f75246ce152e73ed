#include "analysis/graph/step_nodes.h"

#include <algorithm>
#include <map>

#include "trace/base/cancel.h"
#include "trace/base/near.h"

namespace trainprof {
namespace {

// A stream that works less than this share of what the busiest one of its device does is beside the steps.
constexpr double kShareOfWork = 0.05;

// By stream how long it worked, next to the stream of its device that worked longest.
std::vector<double> SharesOfWork(const Streams& streams) {
  std::vector<int64_t> work(streams.streams().size(), 0);
  std::map<DeviceId, int64_t> most;
  for (size_t i = 0; i < work.size(); ++i) {
    const Streams::Stream& stream = streams.streams()[i];
    for (uint32_t item = stream.first; item < stream.last; ++item) {
      CancelPoint(item);
      work[i] += (streams.end(item) - streams.begin(item)).ns;
    }
    int64_t& of_device = most[stream.device];
    of_device = std::max(of_device, work[i]);
  }
  std::vector<double> shares;
  for (size_t i = 0; i < work.size(); ++i) {
    const auto whole = static_cast<double>(most[streams.streams()[i].device]);
    shares.push_back(whole == 0 ? 1 : static_cast<double>(work[i]) / whole);
  }
  return shares;
}

}  // namespace

std::vector<TraceTime> MarksOf(const Steps& steps) {
  std::vector<TraceTime> marks;
  for (const Step& step : steps.steps) {
    if (marks.empty() || marks.back() < step.span.begin) marks.push_back(step.span.begin);
    marks.push_back(step.span.end);
  }
  return marks;
}

std::vector<std::vector<NodeId>> LastOfSteps(const Trace& trace, const Steps& steps,
                                             const Streams& streams,
                                             const std::vector<NodeId>& nodes) {
  std::vector<std::vector<NodeId>> last(steps.count());
  const std::vector<double> shares = SharesOfWork(streams);
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] < kShareOfWork) continue;
    const Streams::Stream& stream = streams.streams()[i];
    size_t last_step = SIZE_MAX;
    auto near = steps.steps.begin();
    for (uint32_t item = stream.first; item < stream.last; ++item) {
      CancelPoint(item);
      const Row call = streams.call(item);
      const TraceTime at = call == kNoRow ? streams.begin(item) : trace.api.begin[Index(call)];
      near = PartitionNear(steps.steps.begin(), steps.steps.end(), near,
                           [&](const Step& step) { return step.span.end <= at; });
      if (near == steps.steps.end() || at < near->span.begin) continue;
      const auto index = static_cast<size_t>(near - steps.steps.begin());
      if (index == last_step) last[index].pop_back();
      last[index].push_back(nodes[item]);
      last_step = index;
    }
  }
  return last;
}

}  // namespace trainprof
