// The operations of each device in the order in which they began.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/tables/trace.h"

namespace trainprof {

// Rows of trace.device_ops by the index of their device; behind the devices those of none.
// Operations that begin together are in the order of the table. O(n log(streams)). Can be
// cancelled.
std::vector<std::vector<uint32_t>> OpsByBegin(const Trace& trace);

// Made once, when it is first asked for: not every trace's steps need it.
class DeviceOrder {
 public:
  explicit DeviceOrder(const Trace& trace) : trace_(trace) {}

  const std::vector<std::vector<uint32_t>>& ops();  // OpsByBegin()

 private:
  const Trace& trace_;
  std::vector<std::vector<uint32_t>> ops_;
};

}  // namespace trainprof
