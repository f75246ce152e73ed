// What calls of the host waited for: devices, or room in a queue that was full.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/graph/host_items.h"

namespace trainprof {

class CallWaits {
 public:
  // `blocking_calls`: FindBlockingCalls(trace). Keeps references. O(n log n).
  CallWaits(const Trace& trace, const std::vector<bool>& blocking_calls, const Streams& streams);

  // Where the last answers were found: what the next call of the same thread waits for stands near.
  struct Near {
    std::vector<uint32_t> of_stream;
    size_t sync = 0;
    size_t op = 0;
  };

  // Nothing of a call that waits for nothing. `near`: as it is made before a thread's first call. O(streams log n); of calls
  // that follow one another O(streams log distance). May be called on several threads.
  std::optional<CallWait> Of(Row call, Near& near) const;

 private:
  struct OfCall {
    uint32_t call = 0;
    uint32_t index = 0;  // a row of syncs, or an item of streams
  };

  void LearnIssues();
  void CollectSyncs();
  void CollectOps();
  // How long a call of that name takes that waits for nothing.
  Duration TypicalIssue(Row call) const;
  bool IsHeld(Row call) const;
  static std::span<const OfCall> RowsOf(const std::vector<OfCall>& rows, Row call, size_t& near);

  void AddSyncTargets(Row call, Row sync, Near& near, std::vector<uint32_t>& targets) const;
  void AddOwnTargets(Row call, Near& near, std::vector<uint32_t>& targets) const;
  void AddLastIssued(const Streams::Stream* stream, TraceTime before,
                     std::vector<uint32_t>& targets) const;
  // Of all streams of the device; of all that the process drives, where it is not known.
  void AddContextTargets(Row call, DeviceId device, Near& near,
                         std::vector<uint32_t>& targets) const;
  void AddRoom(Row call, Near& near, std::vector<uint32_t>& targets) const;

  const Trace& trace_;
  const std::vector<bool>& blocking_;
  const Streams& streams_;
  std::vector<int32_t> issue_ns_;     // by name: the lower quartile; negative: not known
  std::vector<HostWait> host_waits_;  // by name
  std::vector<OfCall> syncs_;         // by call
  std::vector<OfCall> ops_;           // by call: of blocking copies, and of launches that were held
};

}  // namespace trainprof
