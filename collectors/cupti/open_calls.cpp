#include "collectors/cupti/open_calls.h"

#include "collectors/cupti/converter.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {

void Converter::EndOpenCalls(int64_t end_ns) {
  if (header_->open_calls_told.exchange(1) != 0) return;
  held_ns_ = 0;
  latest_ns_ = recording::MonotonicNs();
  at_first_ = false;
  for (const OpenCall& open : header_->open_calls.call) {
    const uint32_t thread = open.thread.load(std::memory_order_acquire);
    const BegunCall call = open.Begun();
    // It may have returned before it was said to have.
    if (thread == 0 || call.begin_ns > end_ns || IsRecorded(call.correlation)) continue;
    ApiRecord record{};
    record.kind =
        call.domain == recording::CallDomain::kDriver ? kDriverActivity : kRuntimeActivity;
    record.cbid = call.cbid;
    record.start = static_cast<uint64_t>(call.begin_ns - header_->time_offset_ns);
    record.end = static_cast<uint64_t>(end_ns - header_->time_offset_ns);
    record.thread = thread;
    record.correlation = call.correlation;
    const uint64_t rows = counts_.rows;
    Api(record);
    counts_.under_way += counts_.rows - rows;
  }
}

}  // namespace trainprof::collectors
