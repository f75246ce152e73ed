#include "viewer/timeline/rank_table.h"

#include <algorithm>

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

// The numbers of the steps that all ranks have, in order.
std::vector<int64_t> CommonSteps(std::span<const RankAnalysis* const> ranks,
                                 const std::vector<RankRow>& rows) {
  std::vector<int64_t> common;
  for (const Step& step : ranks[rows.front().rank]->steps.steps) common.push_back(step.number);
  for (const RankRow& row : rows) {
    const Steps& steps = ranks[row.rank]->steps;
    std::erase_if(common, [&](int64_t number) { return !steps.Find(number); });
  }
  return common;
}

// Steps are the same of all ranks by their number.
void FindLateness(const Lines& lines, std::span<const RankAnalysis* const> ranks,
                  std::vector<RankRow>& rows) {
  if (!lines.aligned() || rows.size() < 2) return;
  const std::vector<int64_t> common = CommonSteps(ranks, rows);
  std::vector<int64_t> late(rows.size(), 0);
  const auto count = static_cast<int64_t>(common.size());
  for (const int64_t number : common) {
    std::vector<int64_t> begin;
    for (const RankRow& row : rows) {
      const Steps& steps = ranks[row.rank]->steps;
      begin.push_back((steps.steps[*steps.Find(number)].span.begin + lines.Shift(row.rank)).ns);
    }
    const int64_t earliest = *std::min_element(begin.begin(), begin.end());
    // Divided first: the sum of many may pass 64 bits when clocks are off by hours.
    for (size_t i = 0; i < rows.size(); ++i) late[i] += (begin[i] - earliest) / count;
  }
  if (common.empty()) return;
  for (size_t i = 0; i < rows.size(); ++i) rows[i].late = Duration{late[i]};
}

}  // namespace

std::vector<RankRow> MakeRankTable(const Lines& lines, std::span<const RankAnalysis* const> ranks) {
  std::vector<RankRow> rows;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank] != nullptr) rows.push_back(RowOf(rank, *ranks[rank]));
  }
  FindLateness(lines, ranks, rows);
  return rows;
}

}  // namespace trainprof
