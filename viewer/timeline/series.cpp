#include "viewer/timeline/series.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

constexpr const char* kMemoryKeys[] = {"Total Allocated", "Total Reserved", "Total Host"};

bool IsNumber(const ArgValue& value) {
  return value.type == ArgValue::Type::kInt || value.type == ArgValue::Type::kDouble;
}

double NumberOf(const ArgValue& value) {
  return value.type == ArgValue::Type::kInt ? static_cast<double>(value.integer) : value.real;
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
  const StringId name = trace.strings.Find("[memory]");
  const StringId device_key = trace.strings.Find("Device Id");
  if (name == kEmptyString) return;
  std::map<std::pair<int64_t, size_t>, SeriesId> by_device;
  for (uint32_t row = 0; row < trace.instants.size(); ++row) {
    if (trace.instants.name[row] != name) continue;
    const std::optional<ArgValue> device = trace.args.Find(trace.instants.args[row], device_key);
    for (size_t k = 0; k < std::size(kMemoryKeys); ++k) {
      const StringId key = trace.strings.Find(kMemoryKeys[k]);
      if (key == kEmptyString || !trace.args.Find(trace.instants.args[row], key)) continue;
      const int64_t id = device ? device->integer : -1;
      by_device.try_emplace({id, k}, SeriesId{.device_id = id, .name = name, .key = key});
    }
  }
  for (const auto& [key, id] : by_device) found.push_back(id);
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
  std::vector<std::pair<TraceTime, double>> values;
  const bool is_memory = id.track == kNoTrack;
  const EventColumns& table = is_memory ? static_cast<const EventColumns&>(trace.instants)
                                        : static_cast<const EventColumns&>(trace.counters);
  const auto [first, last] =
      is_memory ? std::pair{0u, static_cast<uint32_t>(table.size())} : table.rows_of(id.track);
  const StringId device_key = trace.strings.Find("Device Id");
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    if (table.name[row] != id.name) continue;
    const std::optional<ArgValue> value = trace.args.Find(table.args[row], id.key);
    if (!value || !IsNumber(*value)) continue;
    if (is_memory) {
      const std::optional<ArgValue> device = trace.args.Find(table.args[row], device_key);
      if ((device ? device->integer : -1) != id.device_id) continue;
    }
    values.emplace_back(table.begin[row] + shift, NumberOf(*value));
  }
  // Of several tracks for memory.
  const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(values.begin(), values.end(), earlier)) {
    std::stable_sort(values.begin(), values.end(), earlier);
  }
  Series series;
  for (const auto& [time, value] : values) series.Add(time, value);
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
