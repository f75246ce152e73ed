// Prints how the devices of an exported trace spent the time between the first and the last row of
// GPU work, from the tables, for comparison with HTA: one line of JSON, nanoseconds.
//
// usage: gpu_breakdown TRACE
#include <fmt/format.h>

#include "trace/base/interval_set.h"
#include "trace/base/kernel_names.h"
#include "trace/formats/importer.h"

int main(int argc, char** argv) {
  using namespace trainprof;
  if (argc != 2) {
    fmt::print(stderr, "usage: gpu_breakdown TRACE\n");
    return 2;
  }
  const Result<Trace> trace = ImportTrace(argv[1]);
  if (!trace.ok()) {
    fmt::print(stderr, "{}\n", trace.error());
    return 1;
  }
  const DeviceOpTable& ops = trace.value().device_ops;
  std::vector<Interval> busy;
  std::vector<Interval> compute;
  for (uint32_t row = 0; row < ops.size(); ++row) {
    busy.push_back(ops.interval(Row{row}));
    if (ops.kind[row] != DeviceOpKind::kKernel) continue;
    if (!IsCommunicationKernel(trace.value().Text(ops.name[row]))) compute.push_back(busy.back());
  }
  const IntervalSet busy_set = IntervalSet::Union(std::move(busy));
  const IntervalSet compute_set = IntervalSet::Union(std::move(compute));
  if (busy_set.Empty()) {
    fmt::print("{{\"window\": 0}}\n");
    return 0;
  }
  const Duration window = busy_set.intervals().back().end - busy_set.intervals().front().begin;
  fmt::print("{{\"window\": {}, \"idle\": {}, \"compute\": {}, \"non_compute\": {}}}\n", window.ns,
             window.ns - busy_set.Total().ns, compute_set.Total().ns,
             busy_set.Total().ns - compute_set.Total().ns);
  return 0;
}
