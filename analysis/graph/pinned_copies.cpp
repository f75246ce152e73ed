// The bandwidth of copies that the device does by itself.
#include "analysis/graph/pinned_copies.h"

#include <algorithm>
#include <vector>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// Copies from here on tell the bandwidth, not what each costs by itself.
constexpr int64_t kLargeCopyBytes = 1 << 20;

}  // namespace

int64_t PinnedBytesPerMicrosecond(const Trace& trace) {
  const DeviceOpTable& ops = trace.device_ops;
  std::vector<int64_t> rates;
  for (uint32_t row = 0; row < ops.size(); ++row) {
    CancelPoint(row);
    const int64_t ns = ops.interval(Row{row}).Length().ns;
    const bool is_pinned = ops.direction[row] == CopyDirection::kHostToDevice &&
                           ops.source[row] == MemoryKind::kPinned &&
                           ops.bytes[row] >= kLargeCopyBytes && ns > 0;
    if (is_pinned) rates.push_back(ops.bytes[row] * 1000 / ns);
  }
  if (rates.empty()) return 0;
  const auto middle = rates.begin() + static_cast<ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

}  // namespace trainprof
