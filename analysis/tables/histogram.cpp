#include "analysis/tables/histogram.h"

#include <algorithm>
#include <cmath>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// Zero has no logarithm: a nanosecond more for all.
double Scaled(Duration duration) { return std::log(static_cast<double>(duration.ns) + 1); }

}  // namespace

size_t Histogram::BinOf(Duration duration) const {
  if (bins.size() < 2 || longest <= shortest) return 0;
  const double share = (Scaled(duration) - Scaled(shortest)) / (Scaled(longest) - Scaled(shortest));
  const double bin = std::floor(share * static_cast<double>(bins.size()));
  return static_cast<size_t>(std::clamp(bin, 0.0, static_cast<double>(bins.size() - 1)));
}

Duration Histogram::BeginOf(size_t b) const {
  if (b == 0 || bins.empty()) return shortest;
  if (b >= bins.size()) return longest;
  const double share = static_cast<double>(b) / static_cast<double>(bins.size());
  const double scaled = Scaled(shortest) + share * (Scaled(longest) - Scaled(shortest));
  return Duration{static_cast<int64_t>(std::exp(scaled) - 1)};
}

Histogram MakeHistogram(const Trace& trace, Table table, StringId name) {
  Histogram histogram;
  const EventColumns* const columns = ColumnsOf(trace, table);
  if (columns == nullptr || !Lasts(trace, table)) return histogram;
  std::vector<int64_t> durations;
  const auto size = static_cast<uint32_t>(columns->size());
  for (uint32_t row = 0; row < size; ++row) {
    CancelPoint(row);
    if (columns->name[row] != name) continue;
    durations.push_back(columns->interval(Row{row}).Length().ns);
    histogram.total += Duration{durations.back()};
  }
  if (durations.empty()) return histogram;
  histogram.count = durations.size();
  const auto [shortest, longest] = std::minmax_element(durations.begin(), durations.end());
  histogram.shortest = Duration{*shortest};
  histogram.longest = Duration{*longest};
  histogram.bins.assign(histogram.shortest == histogram.longest ? 1 : kHistogramBins, 0);
  for (int64_t ns : durations) ++histogram.bins[histogram.BinOf(Duration{ns})];
  const auto middle = durations.begin() + static_cast<int64_t>((durations.size() - 1) / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  histogram.median = Duration{*middle};
  return histogram;
}

}  // namespace trainprof
