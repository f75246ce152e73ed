// Rows for tests: times are ns since the segment's tick 0.
#pragma once

#include "tests/support/segment_writer.h"
#include "trace/recording/wire/rows.h"

namespace trainprof::testing {

inline recording::DeviceRow RowOf(recording::DeviceRowType type, int64_t begin, int64_t end,
                                  uint32_t correlation) {
  recording::DeviceRow row{};
  row.begin_ns = SegmentWriter::kOriginNs + begin;
  row.end_ns = SegmentWriter::kOriginNs + end;
  row.correlation = correlation;
  row.context = 1;
  row.stream = 7;
  row.type = type;
  return row;
}

inline recording::CallRow CallOf(int64_t begin, int64_t end, uint32_t correlation, uint32_t name,
                                 uint32_t tid = 100) {
  recording::CallRow row{};
  row.begin_ns = SegmentWriter::kOriginNs + begin;
  row.end_ns = SegmentWriter::kOriginNs + end;
  row.correlation = correlation;
  row.tid = tid;
  row.name = name;
  row.domain = recording::CallDomain::kRuntime;
  return row;
}

}  // namespace trainprof::testing
