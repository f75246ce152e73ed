#include "viewer/timeline/lane_store.h"

#include <algorithm>

#include "viewer/timeline/line_events.h"

namespace trainprof {

LaneStore::LaneStore(const Lines& lines, LaneStore&& before)
    : lines_(lines),
      categorizers_(std::move(before.categorizers_)),
      made_(std::move(before.made_)),
      size_bytes_(before.size_bytes_),
      turn_(before.turn_) {
  categorizers_.resize(lines.ranks().size());
  std::erase_if(made_, [&](const auto& made) {
    const Line& line = lines.lines()[made.first];
    const bool analysed =
        line.kind == LineKind::kRank || line.kind == LineKind::kGpu || line.kind == LineKind::kIdle;
    const bool same = lines.Shift(line.rank) == before.lines_.Shift(line.rank) &&
                      (!analysed || lines.ranks()[line.rank] == before.lines_.ranks()[line.rank]);
    if (!same) size_bytes_ -= made.second.size_bytes;
    return !same;
  });
}

const std::vector<Lane>& LaneStore::LanesOf(uint32_t line) { return Make(line).lanes; }
const Series& LaneStore::SeriesOf(uint32_t line) { return Make(line).series; }

LaneStore::Made& LaneStore::Make(uint32_t index) {
  const auto [it, is_new] = made_.try_emplace(index);
  Made& made = it->second;
  made.used = turn_;
  if (!is_new) return made;
  const Line& line = lines_.lines()[index];
  if (line.lanes == 0) {
    made.series = MakeSeries(lines_.TraceOf(index), lines_.SeriesOf(line.rank)[line.series],
                             lines_.Shift(line.rank));
    made.size_bytes = made.series.size_bytes();
  } else {
    MakeLanes(line, made);
    for (const Lane& lane : made.lanes) made.size_bytes += lane.size_bytes();
  }
  size_bytes_ += made.size_bytes;
  return made;
}

void LaneStore::MakeLanes(const Line& line, Made& made) {
  std::unique_ptr<Categorizer>& categorizer = categorizers_[line.rank];
  if (!categorizer) {
    categorizer = std::make_unique<Categorizer>(*lines_.ranks()[line.rank].trace);
  }
  const Duration shift = lines_.Shift(line.rank);
  const std::vector<Segment<DeviceClass>>* idle = nullptr;
  if (line.kind == LineKind::kIdle) {
    for (const DeviceAccount& account : lines_.AccountsOf(line.rank)) {
      if (account.device == line.device) idle = &account.idle;
    }
  }
  const auto category_of = [&](Table table, uint32_t row) {
    switch (table) {
      case Table::kRanges:
        return categorizer->OfRange(row);
      case Table::kApi:
        return categorizer->OfCall(row);
      case Table::kDeviceOps:
        return categorizer->OfDeviceOp(row);
      case Table::kSyncs:
        return Category::kSync;
      case Table::kIdle:
        return CategoryOf((*idle)[row].value);
      case Table::kBusy:
        return Category::kCompute;
      case Table::kInstants:
      case Table::kSteps:
        break;
    }
    return Category::kAnnotation;
  };
  made.lanes.resize(line.lanes);
  DepthPlacer placer;
  VisitEvents(lines_, line, [&](const Interval& event, Table table, uint32_t row) {
    const uint32_t depth = placer.Place(event);
    if (depth >= made.lanes.size()) return;
    made.lanes[depth].Add(event.begin + shift, event.end + shift, category_of(table, row), table,
                          Row{row});
  });
  for (Lane& lane : made.lanes) lane.Finish();
}

void LaneStore::Trim(size_t most_bytes) {
  if (size_bytes_ > most_bytes) {
    std::vector<std::pair<uint64_t, uint32_t>> by_age;
    for (const auto& [line, made] : made_) {
      if (made.used != turn_) by_age.emplace_back(made.used, line);
    }
    std::sort(by_age.begin(), by_age.end());
    for (const auto& [used, line] : by_age) {
      if (size_bytes_ <= most_bytes) break;
      size_bytes_ -= made_[line].size_bytes;
      made_.erase(line);
    }
  }
  ++turn_;
}

LaneStore::Place LaneStore::PlaceOf(const EventRef& event) {
  const uint32_t line = lines_.LineOf(event);
  if (line == kNoLine) return {};
  const Interval time = lines_.TimeOf(event);
  const std::vector<Lane>& lanes = LanesOf(line);
  for (uint32_t depth = 0; depth < lanes.size(); ++depth) {
    const Lane& lane = lanes[depth];
    size_t i = lane.FirstBeginningAt(time.begin);
    for (; i < lane.size() && lane.interval(i).begin == time.begin; ++i) {
      if (lane.table(i) == event.table && lane.row(i) == event.row) return {line, depth, i};
    }
  }
  return {};
}

EventRef LaneStore::RefOf(uint32_t line, uint32_t lane, size_t event) {
  const Lane& on = LanesOf(line)[lane];
  return {lines_.lines()[line].rank, on.table(event), on.row(event)};
}

}  // namespace trainprof
