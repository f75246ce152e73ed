#include "analysis/account/operators.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "trace/base/cancel.h"
#include "trace/recording/wire/facts.h"
#include "trace/recording/wire/format.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

// Of recording one; nothing where they were not recorded.
std::optional<Duration> CostOfOne(const Trace& trace) {
  const std::string_view text = EnvironmentValue(trace.environment, fact::kOperatorCostNs);
  if (text.empty()) return std::nullopt;
  int64_t ns = 0;
  std::from_chars(text.data(), text.data() + text.size(), ns);
  return Nanoseconds(std::clamp<int64_t>(ns, 0, Milliseconds(1).ns));
}

class Sums {
 public:
  explicit Sums(const Trace& trace) : trace_(trace) {}

  void Add(StringId name, Duration part) {
    OperatorTime& row = RowOf(name);
    ++row.count;
    row.own += part;
    row.whole += part;
  }
  void TakeFrom(StringId name, Duration part) { RowOf(name).own = RowOf(name).own - part; }

  std::vector<OperatorTime> Largest() && {
    std::erase_if(rows_, [](const OperatorTime& row) { return row.count == 0; });
    std::stable_sort(rows_.begin(), rows_.end(), [](const OperatorTime& a, const OperatorTime& b) {
      return a.own != b.own ? a.own > b.own : a.name < b.name;
    });
    if (rows_.size() > kMostOperators) rows_.resize(kMostOperators);
    return std::move(rows_);
  }

 private:
  OperatorTime& RowOf(StringId name) {
    const auto [place, is_new] = place_.try_emplace(name, rows_.size());
    if (is_new) rows_.push_back({std::string(trace_.Text(name)), 0, {}, {}});
    return rows_[place->second];
  }

  const Trace& trace_;
  std::unordered_map<StringId, size_t> place_;
  std::vector<OperatorTime> rows_;
};

}  // namespace

Operators OperatorsOf(const Trace& trace, const Steps& steps) {
  Operators result;
  const std::optional<Duration> cost = CostOfOne(trace);
  if (!cost) return result;
  const RangeTable& ranges = trace.ranges;
  const auto is_operator = [&](Row row) { return ranges.kind[Index(row)] == RangeKind::kCpuOp; };
  const auto is_module = [&](Row row) {
    return trace.Text(ranges.name[Index(row)]).starts_with(recording::kModulePrefix);
  };
  Sums operators(trace);
  Sums modules(trace);
  for (size_t i = 0; i < ranges.size(); ++i) {
    CancelPoint(i);
    const Row row{static_cast<uint32_t>(i)};
    if (!is_operator(row)) continue;
    const Duration part = steps.window.TotalWithin(ranges.interval(row));
    if (part.ns == 0) continue;
    ++result.recorded;
    const bool of_module = is_module(row);
    Sums& sums = of_module ? modules : operators;
    sums.Add(ranges.name[i], part);
    for (Row above = ranges.parent[i]; above != kNoRow; above = ranges.parent[Index(above)]) {
      if (!is_operator(above) || is_module(above) != of_module) continue;
      sums.TakeFrom(ranges.name[Index(above)], part);
      break;
    }
  }
  result.operators = std::move(operators).Largest();
  result.modules = std::move(modules).Largest();
  result.recording = {cost->ns * result.recorded};
  return result;
}

}  // namespace trainprof
