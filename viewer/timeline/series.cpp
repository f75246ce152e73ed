#include "viewer/timeline/series.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

bool IsNumber(const ArgValue& value) {
  return value.type == ArgValue::Type::kInt || value.type == ArgValue::Type::kDouble;
}

void FindCounters(const Trace& trace, std::vector<SeriesId>& found) {
  std::map<std::tuple<TrackId, std::string_view, std::string_view>, SeriesId> by_name;
  for (uint32_t row = 0; row < trace.counters.size(); ++row) {
    const TrackId track = trace.counters.track[row];
    const StringId name = trace.counters.name[row];
    trace.args.ForEach(trace.counters.args[row], [&](const Arg& arg) {
      if (!IsNumber(arg.value)) return;
      by_name.try_emplace({track, trace.Text(name), trace.Text(arg.key)},
                          SeriesId{.track = track, .name = name, .key = arg.key});
    });
  }
  for (const auto& [key, id] : by_name) found.push_back(id);
}

void FindMemory(const Trace& trace, std::vector<SeriesId>& found) {
  std::set<std::pair<int64_t, MemoryTotal>> by_device;
  for (const Allocation& allocation : trace.allocations) {
    for (size_t i = 0; i < kMemoryTotals; ++i) {
      const MemoryTotal total{static_cast<uint8_t>(i)};
      if (allocation.Total(total) == Allocation::kUnknown) continue;
      by_device.emplace(allocation.device_id, total);
    }
  }
  for (const auto& [id, total] : by_device) found.push_back({.device_id = id, .total = total});
}

// Of several tracks.
std::vector<std::pair<TraceTime, double>> MemoryOf(const Trace& trace, const SeriesId& id) {
  std::vector<std::pair<TraceTime, double>> values;
  for (uint32_t row = 0; row < trace.instants.size(); ++row) {
    CancelPoint(row);
    const Allocation* const allocation = trace.AllocationOf(Row{row});
    if (allocation == nullptr || allocation->device_id != id.device_id) continue;
    const int64_t bytes = allocation->Total(id.total);
    if (bytes == Allocation::kUnknown) continue;
    values.emplace_back(trace.instants.begin[row], static_cast<double>(bytes));
  }
  const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(values.begin(), values.end(), earlier)) {
    std::stable_sort(values.begin(), values.end(), earlier);
  }
  return values;
}

std::vector<std::pair<TraceTime, double>> CounterOf(const Trace& trace, const SeriesId& id) {
  std::vector<std::pair<TraceTime, double>> values;
  const auto [first, last] = trace.counters.rows_of(id.track);
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    if (trace.counters.name[row] != id.name) continue;
    const std::optional<ArgValue> value = trace.args.Find(trace.counters.args[row], id.key);
    if (!value || !IsNumber(*value)) continue;
    values.emplace_back(trace.counters.begin[row], value->Number());
  }
  return values;
}

}  // namespace

std::vector<SeriesId> FindSeries(const Trace& trace) {
  std::vector<SeriesId> found;
  FindCounters(trace, found);
  FindMemory(trace, found);
  return found;
}

void Series::Add(TraceTime time, double value) {
  if (!time_.empty() && time_.back() == time) {
    value_.back() = value;
    return;
  }
  time_.push_back(time);
  value_.push_back(value);
}

void Series::Finish() {
  if (size() <= kBlock) return;
  const auto level = [&](size_t size, size_t fan_out, auto range_of) {
    std::vector<Range> blocks;
    for (size_t i = 0; i < size; ++i) {
      const Range range = range_of(i);
      if (i % fan_out == 0) blocks.push_back(range);
      blocks.back().low = std::min(blocks.back().low, range.low);
      blocks.back().high = std::max(blocks.back().high, range.high);
    }
    blocks_.push_back(std::move(blocks));
  };
  level(size(), kBlock, [&](size_t i) { return Range{value_[i], value_[i]}; });
  while (blocks_.back().size() > kFanOut) {
    const std::vector<Range> below = blocks_.back();
    level(below.size(), kFanOut, [&](size_t i) { return below[i]; });
  }
}

Series::Range Series::Extent() const {
  Range range;
  if (size() == 0) return range;
  range = {value_[0], value_[0]};
  for (double v : value_) range = {std::min(range.low, v), std::max(range.high, v)};
  return range;
}

// By the values or blocks [first, last) of a level (0: values), those in the middle by the level
// above.
void Series::Widen(size_t level, size_t first, size_t last, Range& range) const {
  const auto add = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      const Range r = level == 0 ? Range{value_[i], value_[i]} : blocks_[level - 1][i];
      range = {std::min(range.low, r.low), std::max(range.high, r.high)};
    }
  };
  const size_t fan_out = level == 0 ? kBlock : kFanOut;
  const size_t first_block = (first + fan_out - 1) / fan_out;
  const size_t last_block = last / fan_out;
  if (level >= blocks_.size() || first_block >= last_block) return add(first, last);
  add(first, first_block * fan_out);
  Widen(level + 1, first_block, last_block, range);
  add(last_block * fan_out, last);
}

bool Series::Within(const Interval& part, Range& range) const {
  const auto first = std::upper_bound(time_.begin(), time_.end(), part.begin);
  const auto last = std::lower_bound(first, time_.end(), part.end);
  if (last == time_.begin()) return false;
  const auto begin =
      static_cast<size_t>((first == time_.begin() ? first : first - 1) - time_.begin());
  range = {value_[begin], value_[begin]};
  Widen(0, begin, static_cast<size_t>(last - time_.begin()), range);
  return true;
}

size_t Series::size_bytes() const {
  size_t bytes = sizeof(Series) + time_.capacity() * (sizeof(TraceTime) + sizeof(double));
  for (const std::vector<Range>& level : blocks_) bytes += level.capacity() * sizeof(Range);
  return bytes;
}

Series MakeSeries(const Trace& trace, const SeriesId& id, Duration shift) {
  Series series;
  const bool is_memory = id.track == kNoTrack;
  for (const auto& [time, value] : is_memory ? MemoryOf(trace, id) : CounterOf(trace, id)) {
    series.Add(time + shift, value);
  }
  series.Finish();
  return series;
}

std::vector<SeriesColumn> ColumnsOf(const Series& series, const Scale& scale) {
  std::vector<SeriesColumn> columns;
  for (int32_t pixel = 0; pixel < scale.width_px; ++pixel) {
    const TraceTime begin = scale.TimeAt(pixel);
    const TraceTime end = std::max(scale.TimeAt(pixel + 1), begin + Nanoseconds(1));
    Series::Range range;
    if (series.Within({begin, end}, range)) columns.push_back({pixel, range});
  }
  return columns;
}

}  // namespace trainprof
