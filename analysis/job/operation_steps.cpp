#include "analysis/job/operation_steps.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// visit(name, step, part, begins): each part of an operation of that device that lies in a step's
// time on the device.
template <class Visit>
void ForEachPart(const Trace& trace, DeviceId of, std::span<const Step> steps, Visit visit) {
  const DeviceOpTable& ops = trace.device_ops;
  for (uint32_t row = 0; row < ops.size(); ++row) {
    CancelPoint(row);
    if (trace.tracks[Index(ops.track[row])].device != of) continue;
    const Interval op = ops.interval(Row{row});
    auto step = std::upper_bound(steps.begin(), steps.end(), op.begin,
                                 [](TraceTime t, const Step& s) { return t < s.device.end; });
    for (; step != steps.end(); ++step) {
      const bool begins = step->device.Contains(op.begin);
      if (!begins && op.end <= step->device.begin) break;
      const Interval part = Intersect(op, step->device);
      visit(ops.name[row], static_cast<size_t>(step - steps.begin()),
            part.Empty() ? Duration{} : part.Length(), begins);
    }
  }
}

}  // namespace

void SumOperations(const Trace& trace, DeviceId of, std::span<const Step> steps,
                   DeviceSteps& device) {
  std::unordered_map<StringId, size_t> places;
  std::vector<StringId> names;  // in the order of first sight
  std::vector<Duration> totals;
  ForEachPart(trace, of, steps, [&](StringId name, size_t, Duration part, bool) {
    const auto [place, is_new] = places.try_emplace(name, names.size());
    if (is_new) {
      names.push_back(name);
      totals.emplace_back();
    }
    totals[place->second] += part;
  });
  // Of equal ones the first by name, so that it does not depend on the order of events.
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (totals[a] != totals[b]) return totals[a] > totals[b];
    return trace.Text(names[a]) < trace.Text(names[b]);
  });
  const std::vector<Duration> none(steps.size());
  const size_t named = std::min(order.size(), kMostOperations);
  device.others = {"", static_cast<int64_t>(order.size() - named), 0, none};
  std::vector<size_t> row_of(names.size(), named);
  for (size_t i = 0; i < named; ++i) {
    row_of[order[i]] = i;
    device.operations.push_back({std::string(trace.Text(names[order[i]])), 1, 0, none});
  }
  ForEachPart(trace, of, steps, [&](StringId name, size_t step, Duration part, bool begins) {
    const size_t row = row_of[places.at(name)];
    OperationSteps& sum = row < named ? device.operations[row] : device.others;
    sum.steps[step] += part;
    sum.count += begins ? 1 : 0;
  });
}

}  // namespace trainprof
