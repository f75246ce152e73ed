#include "analysis/graph/streams.h"

#include <algorithm>

#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/near.h"

namespace trainprof {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// The last of [first, last) for which `holds`, which holds for none behind the first that it does not.
template <class Holds>
std::optional<uint32_t> LastThat(uint32_t first, uint32_t last, Holds holds) {
  uint32_t low = first;
  while (low < last) {
    const uint32_t middle = low + (last - low) / 2;
    holds(middle) ? low = middle + 1 : last = middle;
  }
  if (low == first) return std::nullopt;
  return low - 1;
}

}  // namespace

Streams::Streams(const Trace& trace) : trace_(trace), of_track_(trace.tracks.size(), kNone) {
  ReserveLarge(rows_, trace.device_ops.size());
  ReserveLarge(issued_, trace.device_ops.size());
  for (uint32_t id = 0; id < trace.tracks.size(); ++id) {
    const TrackId track{id};
    auto [op, op_end] = trace.device_ops.rows_of(track);
    auto [sync, sync_end] = trace.syncs.rows_of(track);
    Stream stream{track, trace.tracks[id].device, kNoProcess, static_cast<uint32_t>(size()), 0};
    while (op < op_end || sync < sync_end) {
      CancelPoint(size_t{op} + sync);
      if (sync < sync_end && trace.syncs.kind[sync] != SyncKind::kHostFunction) {
        ++sync;
        continue;
      }
      const bool is_function =
          op == op_end || (sync < sync_end && trace.syncs.begin[sync] < trace.device_ops.begin[op]);
      Add(is_function ? sync++ : op++, is_function, stream);
    }
    stream.last = static_cast<uint32_t>(size());
    if (stream.first == stream.last) continue;
    of_track_[id] = static_cast<uint32_t>(streams_.size());
    streams_.push_back(stream);
  }
}

void Streams::Add(uint32_t row, bool is_function, Stream& stream) {
  const auto item = static_cast<uint32_t>(size());
  rows_.push_back(row | (is_function ? kIsFunction : 0));
  const Row by = call(item);
  TraceTime issued = by == kNoRow ? begin(item) : trace_.api.begin[Index(by)];
  if (item > stream.first) issued = std::max(issued, issued_.back());
  issued_.push_back(issued);
  if (by != kNoRow && stream.driver == kNoProcess) {
    stream.driver = trace_.ProcessOf(trace_.api.track[Index(by)]);
  }
}

const Streams::Stream* Streams::Of(TrackId track) const {
  if (track == kNoTrack || of_track_[Index(track)] == kNone) return nullptr;
  return &streams_[of_track_[Index(track)]];
}

std::optional<uint32_t> Streams::LastIssuedBefore(const Stream& stream, TraceTime at) const {
  return LastThat(stream.first, stream.last, [&](uint32_t item) { return issued_[item] < at; });
}

std::optional<uint32_t> Streams::LastIssuedBefore(const Stream& stream, TraceTime at,
                                                  uint32_t& near) const {
  const auto begin = issued_.begin();
  const auto first = begin + stream.first;
  const auto last = begin + stream.last;
  const auto found = PartitionNear(first, last, std::clamp(begin + near, first, last),
                                   [&](TraceTime issued) { return issued < at; });
  near = static_cast<uint32_t>(found - begin);
  if (found == first) return std::nullopt;
  return near - 1;
}

std::optional<uint32_t> Streams::LastEndedBy(const Stream& stream, TraceTime at) const {
  return LastThat(stream.first, stream.last, [&](uint32_t item) { return end(item) <= at; });
}

}  // namespace trainprof
