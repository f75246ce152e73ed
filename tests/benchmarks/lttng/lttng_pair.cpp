// The peer of nvtx_overhead_benchmark: what one push+pop pair costs as two tracepoints of LTTng-UST. Prints
// nanoseconds a pair, the fastest of many runs.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include <cstdio>

#include "tests/benchmarks/fastest.h"
#include "tests/benchmarks/lttng/pair_tracepoints.h"

int main() {
  std::printf("%.3f\n", trainprof::FastestNs([] {
                lttng_ust_tracepoint(trainprof_peer, push, "forward");
                lttng_ust_tracepoint(trainprof_peer, pop);
              }));
  return 0;
}
