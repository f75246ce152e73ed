#include "analysis/graph/other_streams.h"

#include <utility>

#include "analysis/graph/latencies.h"
#include "analysis/host/timeline.h"
#include "trace/base/cancel.h"

namespace trainprof {

std::optional<uint32_t> OtherStreams::EndedJustBefore(uint32_t item, const Streams::Stream& stream,
                                                      TraceTime explained) const {
  const TraceTime begin = streams_.begin(item);
  const Row call = streams_.call(item);
  const bool in_graph = call != kNoRow && trace_.api.kind[Index(call)] == ApiKind::kGraphLaunch;
  const auto index = static_cast<size_t>(&stream - streams_.streams().data());
  const bool are_known = waits_.are_recorded && !waits_.lacks_some[index];
  if (are_known && !in_graph) return std::nullopt;
  std::optional<uint32_t> found;
  for (const Streams::Stream& other : streams_.streams()) {
    if (&other == &stream || other.driver != stream.driver) continue;
    const auto ended = streams_.LastEndedBy(other, begin + kRounding);
    if (!ended || streams_.end(*ended) + kHandOver < begin) continue;
    if (streams_.end(*ended) <= explained || nodes_[*ended] == 0) continue;
    if (are_known && streams_.call(*ended) != call) continue;
    const auto place = [&](uint32_t i) { return std::pair(streams_.end(i), streams_.begin(i)); };
    if (!found || place(*found) < place(*ended)) found = ended;
  }
  return found;
}

std::optional<uint32_t> OtherStreams::HeldDeviceUntil(uint32_t item, const Streams::Stream& stream,
                                                      TraceTime explained) const {
  const TraceTime begin = streams_.begin(item);
  std::optional<uint32_t> found;
  for (const Streams::Stream& other : streams_.streams()) {
    if (&other == &stream || other.device != stream.device) continue;
    const auto ended = streams_.LastEndedBy(other, begin);
    const uint32_t running = ended ? *ended + 1 : other.first;
    if (running == other.last || streams_.begin(running) >= begin) continue;
    if (nodes_[running] == 0) continue;
    if (found && streams_.end(*found) <= streams_.end(running)) continue;
    uint32_t first = running;
    while (first > other.first && streams_.begin(first) > explained + kHandOver &&
           streams_.begin(first) - streams_.end(first - 1) <= kHandOver) {
      --first;
    }
    if (streams_.begin(first) <= explained + kHandOver) found = running;
  }
  return found;
}

std::set<Row> UnansweredFunctions(const Trace& trace) {
  std::vector<bool> launches(trace.strings.size(), false);
  for (uint32_t name = 0; name < launches.size(); ++name) {
    launches[name] = LaunchesHostFunction(trace.Text(StringId{name}));
  }
  std::set<Row> calls;
  for (uint32_t call = 0; call < trace.api.size(); ++call) {
    CancelPoint(call);
    if (launches[Index(trace.api.name[call])]) calls.insert(Row{call});
  }
  if (calls.empty()) return calls;
  for (uint32_t row = 0; row < trace.syncs.size(); ++row) {
    if (trace.syncs.kind[row] == SyncKind::kHostFunction) calls.erase(trace.syncs.call[row]);
  }
  return calls;
}

}  // namespace trainprof
