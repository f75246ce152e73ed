#include "analysis/tables/rank_table.h"

namespace trainprof {
namespace {

const DeviceReport* LeastBusy(const RankAnalysis& rank) {
  const DeviceReport* least = nullptr;
  for (const DeviceReport& device : rank.devices) {
    if (!device.stray && (least == nullptr || device.busy < least->busy)) least = &device;
  }
  return least;
}

RankRow RowOf(uint32_t index, const RankAnalysis& rank) {
  RankRow row{.rank = index,
              .number = rank.rank,
              .steps = rank.steps.count(),
              .mean_ms = rank.steps.MeanMilliseconds(),
              .median_ms = rank.steps.Median().ToMilliseconds(),
              .loader_wait_ms = rank.DevicePerStepMs(rank.loader_wait.total)};
  const DeviceReport* const device = LeastBusy(rank);
  if (device == nullptr) return row;
  row.busy = rank.DeviceShare(device->busy);
  row.busy_high = rank.DeviceShare(device->busy_high);
  for (size_t c = 0; c < kDeviceClasses && c < device->account.size(); ++c) {
    row.device_ms[c] = rank.DevicePerStepMs(device->account[c].total);
  }
  return row;
}

}  // namespace

std::vector<RankRow> MakeRankTable(const JobClock& clock,
                                   std::span<const RankAnalysis* const> ranks) {
  const std::vector<std::optional<Duration>> late = LatenessOf(clock, ranks);
  std::vector<RankRow> rows;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank] == nullptr) continue;
    rows.push_back(RowOf(rank, *ranks[rank]));
    rows.back().late = late[rank];
  }
  return rows;
}

}  // namespace trainprof
