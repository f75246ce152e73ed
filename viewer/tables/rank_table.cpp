#include "viewer/tables/rank_table.h"

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

// Steps are the same of all ranks by their place in the job, counted from its begin.
void FindLateness(const Lines& lines, std::span<const RankAnalysis* const> ranks,
                  std::vector<RankRow>& rows) {
  if (!lines.aligned() || rows.size() < 2) return;
  int first = 0;
  int last = INT32_MAX;
  const auto steps_of = [&](const RankRow& row) -> const Steps& { return ranks[row.rank]->steps; };
  for (const RankRow& row : rows) {
    const Steps& steps = steps_of(row);
    first = std::max(first, steps.warmup_steps);
    last = std::min(last, steps.warmup_steps + static_cast<int>(steps.count()));
  }
  if (first >= last) return;
  std::vector<int64_t> late(rows.size(), 0);
  const int64_t count = last - first;
  for (int step = first; step < last; ++step) {
    std::vector<int64_t> begin;
    for (const RankRow& row : rows) {
      const Steps& steps = steps_of(row);
      const Step& own = steps.steps[static_cast<size_t>(step - steps.warmup_steps)];
      begin.push_back((own.span.begin + lines.Shift(row.rank)).ns);
    }
    const int64_t earliest = *std::min_element(begin.begin(), begin.end());
    // Divided first: the sum of many may pass 64 bits when clocks are off by hours.
    for (size_t i = 0; i < rows.size(); ++i) late[i] += (begin[i] - earliest) / count;
  }
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
