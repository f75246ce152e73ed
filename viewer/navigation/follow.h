// From an event to the next one: along its lane, or between a call and what it launched.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "viewer/timeline/lines.h"

namespace trainprof {

// Both ways between the calls of one rank and the device operations that they launched.
class LaunchLinks {
 public:
  // Keeps a reference. O(operations + calls). Can be cancelled.
  explicit LaunchLinks(const Trace& trace);
  // Those of operations alone; OpsOf() knows nothing yet. O(1).
  static LaunchLinks Unfinished(const Trace& trace) { return LaunchLinks(trace, {}); }

  bool whole() const { return !begin_.empty(); }

  // The call that launched an operation, or kNoRow.
  Row CallOf(Row op) const { return trace_.device_ops.launch[Index(op)]; }
  // What a call launched, in the order of their rows; several for a graph.
  std::span<const Row> OpsOf(Row call) const;

 private:
  LaunchLinks(const Trace& trace, std::vector<uint32_t> begin)
      : trace_(trace), begin_(std::move(begin)) {}

  const Trace& trace_;
  std::vector<uint32_t> begin_;  // ops of call c: [begin_[c], begin_[c + 1]); empty: not made
  std::vector<Row> ops_;
};

// The event to go to from a call (its first operation) or an operation (its call); nothing where
// there is none, or for other events. `links` is of the event's rank.
std::optional<EventRef> Follow(const LaunchLinks& links, const EventRef& event);

// The event of a lane that begins next after, or last before, event `i`; nothing at the ends.
std::optional<size_t> NextEvent(const Lane& lane, size_t i);
std::optional<size_t> PreviousEvent(const Lane& lane, size_t i);

}  // namespace trainprof
