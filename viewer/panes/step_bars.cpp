#include "viewer/panes/step_bars.h"

#include <algorithm>

namespace trainprof {
namespace {

// Bars are as high as the longest step, unless that is this much longer than the median: then all
// others would be too low to read.
constexpr int64_t kMostMedians = 2;

// From below.
constexpr HostClass kHostParts[] = {
    HostClass::kForward,   HostClass::kBackward, HostClass::kOptimizer, HostClass::kCopy,
    HostClass::kInputWait, HostClass::kRankWait, HostClass::kOther};

const DeviceAccount* BusiestDevice(std::span<const DeviceAccount> accounts) {
  const DeviceAccount* busiest = nullptr;
  for (const DeviceAccount& account : accounts) {
    if (busiest == nullptr || account.busy.Total() > busiest->busy.Total()) busiest = &account;
  }
  return busiest;
}

// Which of `steps` are also in `detailed`, a part of them.
std::vector<bool> InDetail(const std::vector<Step>& steps, const std::vector<Step>& detailed) {
  std::vector<bool> in(steps.size());
  size_t d = 0;
  for (size_t s = 0; s < steps.size() && d < detailed.size(); ++s) {
    if (steps[s].span.begin != detailed[d].span.begin) continue;
    in[s] = true;
    ++d;
  }
  return in;
}

// Fills in the time of each step by `within`, an array by class.
template <class Within>
void Account(const std::vector<Step>& steps, const std::vector<bool>& counts,
             const std::vector<size_t>& class_of_part, Within within, StepBars& bars) {
  bars.time.resize(steps.size() * bars.parts.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!counts[s]) continue;
    ++bars.detailed;
    const auto totals = within(steps[s]);
    for (size_t p = 0; p < bars.parts.size(); ++p) {
      const Duration time = totals[class_of_part[p]];
      bars.time[s * bars.parts.size() + p] = time;
      bars.parts[p].total += time;
    }
  }
}

void AccountDevice(const Trace& trace, const DeviceAccount& device, const RankAnalysis& analysis,
                   StepBars& bars) {
  std::vector<size_t> classes;
  for (size_t c = 0; c < kDeviceClasses; ++c) {
    const auto value = static_cast<DeviceClass>(c);
    const Category category = CategoryOf(value);
    bars.parts.push_back({Title(value), category, IsIdle(value), {}});
    classes.push_back(c);
  }
  bars.source = "GPU " + std::to_string(trace.devices[Index(device.device)].id);
  const std::vector<Step>& steps = analysis.steps.steps;
  Account(
      steps, InDetail(steps, analysis.device_steps.steps), classes,
      [&](const Step& step) { return device.Within(step.device); }, bars);
}

void AccountThread(const HostAccount& host, const RankAnalysis& analysis, StepBars& bars) {
  std::vector<size_t> classes;
  for (const HostClass part : kHostParts) {
    bars.parts.push_back({Title(part), CategoryOf(part), false, {}});
    classes.push_back(static_cast<size_t>(part));
  }
  bars.source = "main thread";
  const std::vector<Step>& steps = analysis.steps.steps;
  Account(
      steps, std::vector<bool>(steps.size(), true), classes,
      [&](const Step& step) { return host.Within(step.span); }, bars);
}

void SetHeights(StepBars& bars) {
  std::vector<Duration> lengths;
  for (const Interval& span : bars.spans) lengths.push_back(span.Length());
  if (lengths.empty()) return;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  bars.median = *middle;
  const Duration longest = *std::max_element(lengths.begin(), lengths.end());
  bars.limit = std::max(std::min(longest, Duration{bars.median.ns * kMostMedians}), Duration{1});
}

}  // namespace

StepBars MakeStepBars(const Lines& lines, uint32_t rank, const Steps& steps,
                      const RankAnalysis* analysis) {
  StepBars bars;
  bars.analysed = analysis != nullptr;
  const Duration shift = lines.Shift(rank);
  for (const Step& step : steps.steps) {
    const Interval& time = steps.clock == StepClock::kDevice ? step.device : step.span;
    bars.spans.push_back({time.begin + shift, time.end + shift});
    bars.numbers.push_back(step.number);
  }
  SetHeights(bars);
  if (analysis == nullptr) return bars;
  const RankView& view = lines.ranks()[rank];
  if (const DeviceAccount* device = BusiestDevice(lines.AccountsOf(rank))) {
    AccountDevice(*view.trace, *device, *analysis, bars);
  } else if (view.host != nullptr) {
    AccountThread(*view.host, *analysis, bars);
  } else {
    AccountThread(AccountHost(*view.trace, analysis->steps), *analysis, bars);
  }
  return bars;
}

std::vector<uint32_t> WorstOfColumns(std::span<const Interval> spans, size_t columns) {
  const size_t count = std::min(spans.size(), columns);
  std::vector<uint32_t> worst;
  for (size_t column = 0; column < count; ++column) {
    const size_t first = spans.size() * column / count;
    const size_t last = spans.size() * (column + 1) / count;
    size_t longest = first;
    for (size_t s = first; s < last; ++s) {
      if (spans[s].Length() > spans[longest].Length()) longest = s;
    }
    worst.push_back(static_cast<uint32_t>(longest));
  }
  return worst;
}

}  // namespace trainprof
