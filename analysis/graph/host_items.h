// What each host thread did that a device, or a step, may have waited for: its outermost calls, its waits
// for input, and where its steps begin. What lies between two of them is the host's own work.
#pragma once

#include <span>
#include <vector>

#include "analysis/graph/streams.h"

namespace trainprof {

// 12 bytes: times stand where the row does.
struct HostItem {
  NodeKind kind = NodeKind::kCall;  // kCall, kInput or kStep
  uint32_t index = 0;               // row of api, of HostItems::inputs, or of `marks`
  uint32_t wait = 0;  // of a call: what it waited for, in HostItems::waits; 0: nothing
};

// A stretch of a wait for input without a call in it.
struct InputPiece {
  Interval interval;
  uint32_t range = 0;  // row of ranges
};

// Of a call that waits.
struct CallWait {
  EdgeKind kind = EdgeKind::kSync;  // or kQueueRoom
  Row sync = kNoRow;                // of trace.syncs, that tells of it
  bool is_explained = true;         // false: nothing recorded ended while it waited
  TraceTime from;                   // it did its own work until here
  std::vector<uint32_t> targets;    // items of Streams; the one that ended last stands first
};

struct HostThread {
  TrackId track = kNoTrack;
  std::vector<HostItem> items;  // in time order; they overlap only where a file's events do
  bool issues = false;          // it asks a device for work; where no thread does, all may have
};

struct HostItems {
  std::vector<HostThread> threads;
  std::vector<InputPiece> inputs;
  std::vector<TraceTime> marks;
  std::vector<CallWait> waits;       // the first one is nobody's
  std::vector<uint32_t> outer_call;  // by row of api: the outermost call around it, or itself

  Interval Times(const Trace& trace, const HostItem& item) const;
};

// Of threads that call a device's runtime, and of the one that steps (kNoTrack: none). `marks`: moments of
// that thread which get a node of their own, ascending. O(n log n).
HostItems FindHostItems(const Trace& trace, TrackId stepping, std::vector<TraceTime> marks,
                        const std::vector<bool>& blocking_calls, const Streams& streams);

}  // namespace trainprof
