#include "analysis/steps/periods.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// At least so many operations a period: any iteration has more.
constexpr size_t kMinPeriod = 4;
// The first good one of so many names is taken.
constexpr size_t kMaxCandidates = 16;
// Of the operations between the first and the last recurrence, by number.
constexpr double kMinPeriodMatch = 0.9;
// Of all that the device did, by time.
constexpr double kMinWork = 0.8;
// Of the time from its first operation to its last.
constexpr double kMinExtent = 0.5;
// Of the periods: that show the host's part, and that were launched by themselves.
constexpr double kMinIterations = 0.9;

using Places = std::vector<size_t>;  // in the order of the device's operations

bool IsOptimizersKernel(std::string_view name) {
  using names_internal::ContainsNoCase;
  return ContainsNoCase(name, "multi_tensor_apply") || ContainsNoCase(name, "adam") ||
         ContainsNoCase(name, "sgd") || ContainsNoCase(name, "optimizer");
}

class Periods {
 public:
  Periods(const Trace& trace, const std::vector<uint32_t>& ops) : trace_(trace), ops_(ops) {}

  std::vector<Row> Find();

 private:
  const DeviceOpTable& table() const { return trace_.device_ops; }
  StringId NameAt(size_t place) const { return table().name[ops_[place]]; }
  // The first of the names first that occur least: one that occurs once a period is among them.
  std::vector<Places> Candidates() const;
  bool IsIteration(const Places& at, size_t period);
  bool Recurs(const Places& at, size_t period) const;
  bool CoversTheTrace(const Places& at, size_t period) const;
  bool ShowsTheHost(const Places& at);
  void FindHostsPart();

  const Trace& trace_;
  const std::vector<uint32_t>& ops_;
  // Found when the first candidate asks.
  Places with_host_;              // operations that a layer has not
  std::vector<TraceTime> waits_;  // begins of the host's waits
};

std::vector<Places> Periods::Candidates() const {
  std::vector<Places> places(trace_.strings.size());
  for (size_t i = 0; i < ops_.size(); ++i) {
    CancelPoint(i);
    places[Index(NameAt(i))].push_back(i);
  }
  std::erase_if(places, [](const Places& at) { return at.size() < kMinRepetitions; });
  std::sort(places.begin(), places.end(), [](const Places& a, const Places& b) {
    return std::pair(a.size(), a.front()) < std::pair(b.size(), b.front());
  });
  places.resize(std::min(places.size(), kMaxCandidates));
  return places;
}

bool Periods::Recurs(const Places& at, size_t period) const {
  size_t matches = 0;
  for (size_t i = at.front(); i < at.back(); ++i) {
    CancelPoint(i);
    if (i + period < ops_.size() && NameAt(i) == NameAt(i + period)) ++matches;
  }
  return static_cast<double>(matches) >=
         kMinPeriodMatch * static_cast<double>(at.back() - at.front());
}

bool Periods::CoversTheTrace(const Places& at, size_t period) const {
  Duration recurring;
  Duration all;
  TraceTime end = table().end[ops_.front()];
  for (size_t i = 0; i < ops_.size(); ++i) {
    CancelPoint(i);
    const Duration length = table().interval(Row{ops_[i]}).Length();
    const bool recurs = (i >= period && NameAt(i) == NameAt(i - period)) ||
                        (i + period < ops_.size() && NameAt(i) == NameAt(i + period));
    all += length;
    if (recurs) recurring += length;
    end = std::max(end, table().end[ops_[i]]);
  }
  const auto share = [](Duration part, Duration whole) {
    return static_cast<double>(part.ns) / std::max(1.0, static_cast<double>(whole.ns));
  };
  const TraceTime first = table().begin[ops_[at.front()]];
  const TraceTime last = table().begin[ops_[at.back()]];
  // The last period has no end to see.
  const Duration known = last - first;
  const Duration mean{known.ns / static_cast<int64_t>(at.size() - 1)};
  return share(recurring, all) >= kMinWork &&
         share(known + mean, end - table().begin[ops_.front()]) >= kMinExtent;
}

void Periods::FindHostsPart() {
  if (!with_host_.empty() || !waits_.empty()) return;
  std::vector<int8_t> is_optimizers(trace_.strings.size(), -1);
  for (size_t i = 0; i < ops_.size(); ++i) {
    CancelPoint(i);
    const CopyDirection direction = table().direction[ops_[i]];
    int8_t& is = is_optimizers[Index(NameAt(i))];
    if (is < 0) is = IsOptimizersKernel(trace_.Text(NameAt(i))) ? 1 : 0;
    const bool crosses =
        direction == CopyDirection::kHostToDevice || direction == CopyDirection::kDeviceToHost;
    if (crosses || is == 1) with_host_.push_back(i);
  }
  for (uint32_t call = 0; call < trace_.api.size(); ++call) {
    CancelPoint(call);
    if (trace_.api.kind[call] == ApiKind::kSync) waits_.push_back(trace_.api.begin[call]);
  }
  std::sort(waits_.begin(), waits_.end());
}

bool Periods::ShowsTheHost(const Places& at) {
  FindHostsPart();
  size_t shown = 0;
  size_t anew = 0;
  for (size_t k = 0; k + 1 < at.size(); ++k) {
    const Row launch = table().launch[ops_[at[k]]];
    const Row next = table().launch[ops_[at[k + 1]]];
    if (launch == kNoRow || launch != next) ++anew;
    const auto op = std::lower_bound(with_host_.begin(), with_host_.end(), at[k]);
    bool is_shown = op != with_host_.end() && *op < at[k + 1];
    if (!is_shown && launch != kNoRow && next != kNoRow) {
      const auto wait =
          std::lower_bound(waits_.begin(), waits_.end(), trace_.api.begin[Index(launch)]);
      is_shown = wait != waits_.end() && *wait < trace_.api.begin[Index(next)];
    }
    if (is_shown) ++shown;
  }
  const double least = kMinIterations * static_cast<double>(at.size() - 1);
  return static_cast<double>(shown) >= least && static_cast<double>(anew) >= least;
}

bool Periods::IsIteration(const Places& at, size_t period) {
  return Recurs(at, period) && CoversTheTrace(at, period) && ShowsTheHost(at);
}

std::vector<Row> Periods::Find() {
  for (const Places& at : Candidates()) {
    Places distances;
    for (size_t i = 0; i + 1 < at.size(); ++i) distances.push_back(at[i + 1] - at[i]);
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::nth_element(distances.begin(), middle, distances.end());
    const size_t period = *middle;
    if (period < kMinPeriod || at.front() + period >= ops_.size()) continue;
    if (!IsIteration(at, period)) continue;
    std::vector<Row> found;
    for (const size_t i : at) found.push_back(Row{ops_[i]});
    return found;
  }
  return {};
}

}  // namespace

std::vector<Row> PeriodicOps(const Trace& trace, DeviceOrder& order) {
  const auto busiest = std::max_element(
      order.ops().begin(), order.ops().end(),
      [](const auto& fewer, const auto& more) { return fewer.size() < more.size(); });
  return busiest->empty() ? std::vector<Row>{} : Periods(trace, *busiest).Find();
}

}  // namespace trainprof
