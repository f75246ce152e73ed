// Puts the events of one segment into a rank's trace: pairs pushes with pops and starts with ends,
// names threads, converts ticks, and counts what was lost or does not fit.
#pragma once

#include "trace/build/trace_builder.h"
#include "trace/recording/read/tick_converter.h"
#include "trace/recording/segments/segment_reader.h"
#include "trace/recording/segments/segment_scan.h"

namespace trainprof::recording {

// How many rows DecodeSegment will add, nearly always at most.
ExpectedRows RowsOf(const SegmentReader& segment, const SegmentScan& scan);

// `base` is time 0 of the trace; `on_payload` as for ReadAhead. O(records).
void DecodeSegment(const SegmentReader& segment, const SegmentScan& scan,
                   const TickConverter& clock, HostTime base, const OnPayload& on_payload,
                   TraceBuilder& builder);

}  // namespace trainprof::recording
