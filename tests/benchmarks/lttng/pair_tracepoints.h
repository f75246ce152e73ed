// The tracepoints of LTTng-UST that say what an NVTX push and pop say. LTTng includes this file several times, each
// time to make something else of it: hence no include guard of the usual kind.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER trainprof_peer

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/benchmarks/lttng/pair_tracepoints.h"

#if !defined(TRAINPROF_LTTNG_PAIR_TRACEPOINTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TRAINPROF_LTTNG_PAIR_TRACEPOINTS_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(trainprof_peer, push, LTTNG_UST_TP_ARGS(const char*, name),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))

LTTNG_UST_TRACEPOINT_EVENT(trainprof_peer, pop, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
