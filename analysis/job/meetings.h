// One rank's collective is found again in the others': by communicator, and by its number there or its place
// in the order. How far clocks are apart is not asked: those of different hosts agree in nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/job/digest.h"

namespace trainprof {

// A rank in a collective.
struct Attendance {
  uint32_t rank = 0;  // index into the digests
  Interval when;      // by the rank's own clock
  Duration exposed;   // CollectiveCall::exposed

  bool operator==(const Attendance&) const = default;
};

// One collective of all that took part in it and whose trace is there: at least two.
struct Meeting {
  uint32_t communicator = 0;  // index into Meetings::communicators
  uint32_t first = 0;         // of Meetings::attendances
  uint32_t count = 0;

  bool operator==(const Meeting&) const = default;
};

// Ranks that meet by one name.
struct Communicator {
  std::string name;             // "" where no trace says it
  std::string members;          // as traces write them; may be ""
  std::vector<uint32_t> ranks;  // indices into the digests, in order
  bool is_whole = false;        // none of its ranks' traces is missing
  // All leave a collective at one time. False of a sender and its receiver.
  bool ends_together = true;

  bool operator==(const Communicator&) const = default;
};

struct Meetings {
  std::vector<Communicator> communicators;
  std::vector<Meeting> meetings;        // by communicator, then in its order
  std::vector<Attendance> attendances;  // of each meeting, by rank
  std::vector<int64_t> alone;           // by rank: its calls that were found in no other rank
  std::vector<std::string> doubts;      // why calls were not matched, one sentence each

  std::span<const Attendance> Of(const Meeting& meeting) const {
    return std::span(attendances).subspan(meeting.first, meeting.count);
  }
};

// What is matched. Calls are of one communicator where its name and members are the same, and both are on devices
// or both on hosts. Where the trace numbers them, those of one number, operation and place among equals are one
// meeting. Elsewhere a rank's sequence of operations is laid beside that of the communicator's lowest rank: where both
// are as long and the same, each beside its own, unless their ends speak against it; else at the only shift where all
// that overlaps is the same and the ends agree (SureShift). Where a rank has no such shift, each operation is tried
// alone; what has none even then is not matched, and said. Operations with a root (broadcast, reduce, gather, scatter) are left out: who has sent goes on and
// waits for nobody. So are send and receive between more than two ranks: traces do not say whose.
//
// `digests` in the order of their ranks. O(n log n) in all calls.
Meetings MatchCollectives(std::span<const RankDigest> digests);

// For tests. `mine` and `other` are calls of two ranks in order: `mine[i]` is the same collective as
// `other[i + shift]`. Nothing where it is not sure.
struct OrderedCall {
  uint32_t operation = 0;  // equal ones are the same
  Interval when;
};
std::optional<int64_t> SureShift(std::span<const OrderedCall> mine,
                                 std::span<const OrderedCall> other);

}  // namespace trainprof
