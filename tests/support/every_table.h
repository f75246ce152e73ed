// A trace with a row in each table: what must hold for every table, a new one too.
#pragma once

#include "trace/tables/trace.h"

namespace trainprof {

// Each row is named as its table is titled, and stands on a thread or stream of its own process.
// The numbers of a described table (trace.h) differ from each other.
Trace TraceWithEveryTable();

}  // namespace trainprof
