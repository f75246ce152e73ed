// What was asked of each stream and when: what a wait for a stream, an event or a context waits for is the
// last thing asked for before it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/graph/graph.h"

namespace trainprof {

// What streams did, stream by stream in the order of begin: operations, and host functions that they
// waited for. Items are numbered through; 12 bytes each.
class Streams {
 public:
  // O(n). The trace must outlive it.
  explicit Streams(const Trace& trace);

  struct Stream {
    TrackId track = kNoTrack;
    DeviceId device = kNoDevice;
    ProcessId driver = kNoProcess;  // the process whose calls it obeys; kNoProcess: not known
    uint32_t first = 0;             // its items: [first, last)
    uint32_t last = 0;
  };
  std::span<const Stream> streams() const { return streams_; }
  // Null where nothing happened on that track.
  const Stream* Of(TrackId track) const;

  size_t size() const { return rows_.size(); }
  NodeKind kind(uint32_t item) const {
    return (rows_[item] & kIsFunction) != 0 ? NodeKind::kHostFunction : NodeKind::kDeviceOp;
  }
  // Of device_ops, or of syncs.
  uint32_t row(uint32_t item) const { return rows_[item] & ~kIsFunction; }
  TraceTime begin(uint32_t item) const { return Columns(item).begin[row(item)]; }
  TraceTime end(uint32_t item) const { return Columns(item).end(row(item)); }
  // Of api; kNoRow where it is not known.
  Row call(uint32_t item) const {
    return kind(item) == NodeKind::kDeviceOp ? trace_.device_ops.launch[row(item)]
                                             : trace_.syncs.call[row(item)];
  }
  // When its call began; never before that of what stands before it in the stream.
  TraceTime issued(uint32_t item) const { return issued_[item]; }

  // Of a stream the last item that was asked for before `at`. O(log n).
  std::optional<uint32_t> LastIssuedBefore(const Stream& stream, TraceTime at) const;
  // The same from `near` on, where the last answer was found, which it sets; O(log distance).
  std::optional<uint32_t> LastIssuedBefore(const Stream& stream, TraceTime at,
                                           uint32_t& near) const;
  // The last item that had ended at `at`. O(log n).
  std::optional<uint32_t> LastEndedBy(const Stream& stream, TraceTime at) const;

 private:
  static constexpr uint32_t kIsFunction = 1u << 31;

  const EventColumns& Columns(uint32_t item) const {
    if (kind(item) == NodeKind::kDeviceOp) return trace_.device_ops;
    return trace_.syncs;
  }
  void Add(uint32_t row, bool is_function, Stream& stream);

  const Trace& trace_;
  std::vector<Stream> streams_;
  std::vector<uint32_t> rows_;
  std::vector<TraceTime> issued_;
  std::vector<uint32_t> of_track_;
};

}  // namespace trainprof
