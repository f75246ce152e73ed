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
// Fewer than kMinRepetitions tell where each period is as long as this: no short one is the same by accident.
constexpr size_t kLongPeriod = 16;
constexpr size_t kFewestRepetitions = 3;
// Periods of time: behind a longer pause it is another work.
constexpr int64_t kFramesReach = 4;
// Operations of each name in a period from which it holds layers itself, and so is none.
constexpr size_t kLayersWithin = 8;

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
  // Whether so many of the periods are nearly all of them.
  bool NearlyAll(size_t some, const Places& at) const;
  bool AreLaunchedAnew(const Places& at) const;
  bool ShowTheHost(const Places& at);
  bool Optimize(const Places& at);
  bool HoldsLayers(const Places& at, size_t period) const;
  std::vector<bool> Strangers(const Places& at) const;
  bool AreFramed(const Places& at, size_t period, bool at_both_ends);
  void FindHostsPart();

  const Trace& trace_;
  const std::vector<uint32_t>& ops_;
  // Found when the first candidate asks.
  Places with_host_;              // operations that take the host
  Places optimizers_;             // an optimizer's kernels
  std::vector<TraceTime> waits_;  // begins of the host's waits
};

std::vector<Places> Periods::Candidates() const {
  std::vector<Places> places(trace_.strings.size());
  for (size_t i = 0; i < ops_.size(); ++i) {
    CancelPoint(i);
    places[Index(NameAt(i))].push_back(i);
  }
  std::erase_if(places, [](const Places& at) { return at.size() < kFewestRepetitions; });
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
  TraceTime end = table().end(ops_.front());
  for (size_t i = 0; i < ops_.size(); ++i) {
    CancelPoint(i);
    const Duration length = table().interval(Row{ops_[i]}).Length();
    const bool recurs = (i >= period && NameAt(i) == NameAt(i - period)) ||
                        (i + period < ops_.size() && NameAt(i) == NameAt(i + period));
    all += length;
    if (recurs) recurring += length;
    end = std::max(end, table().end(ops_[i]));
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
  if (!with_host_.empty() || !waits_.empty() || !optimizers_.empty()) return;
  std::vector<int8_t> is_optimizers(trace_.strings.size(), -1);
  for (size_t i = 0; i < ops_.size(); ++i) {
    CancelPoint(i);
    const CopyDirection direction = table().direction[ops_[i]];
    int8_t& is = is_optimizers[Index(NameAt(i))];
    if (is < 0) is = IsOptimizersKernel(trace_.Text(NameAt(i))) ? 1 : 0;
    const bool crosses =
        direction == CopyDirection::kHostToDevice || direction == CopyDirection::kDeviceToHost;
    if (crosses || is == 1) with_host_.push_back(i);
    if (is == 1) optimizers_.push_back(i);
  }
  for (uint32_t call = 0; call < trace_.api.size(); ++call) {
    CancelPoint(call);
    if (trace_.api.kind[call] == ApiKind::kSync) waits_.push_back(trace_.api.begin[call]);
  }
  std::sort(waits_.begin(), waits_.end());
}

bool Periods::NearlyAll(size_t some, const Places& at) const {
  return static_cast<double>(some) >= kMinIterations * static_cast<double>(at.size() - 1);
}

bool Periods::AreLaunchedAnew(const Places& at) const {
  size_t anew = 0;
  for (size_t k = 0; k + 1 < at.size(); ++k) {
    const Row launch = table().launch[ops_[at[k]]];
    if (launch == kNoRow || launch != table().launch[ops_[at[k + 1]]]) ++anew;
  }
  return NearlyAll(anew, at);
}

bool AnyBetween(const Places& some, size_t from, size_t to) {
  const auto first = std::lower_bound(some.begin(), some.end(), from);
  return first != some.end() && *first < to;
}

bool Periods::ShowTheHost(const Places& at) {
  size_t shown = 0;
  for (size_t k = 0; k + 1 < at.size(); ++k) {
    const Row launch = table().launch[ops_[at[k]]];
    const Row next = table().launch[ops_[at[k + 1]]];
    bool is_shown = AnyBetween(with_host_, at[k], at[k + 1]);
    if (!is_shown && launch != kNoRow && next != kNoRow) {
      const auto wait =
          std::lower_bound(waits_.begin(), waits_.end(), trace_.api.begin[Index(launch)]);
      is_shown = wait != waits_.end() && *wait < trace_.api.begin[Index(next)];
    }
    if (is_shown) ++shown;
  }
  return NearlyAll(shown, at);
}

bool Periods::Optimize(const Places& at) {
  size_t with = 0;
  for (size_t k = 0; k + 1 < at.size(); ++k) {
    if (AnyBetween(optimizers_, at[k], at[k + 1])) ++with;
  }
  return NearlyAll(with, at);
}

// Many operations of few names: what recurs within a period are its layers.
bool Periods::HoldsLayers(const Places& at, size_t period) const {
  std::vector<StringId> names;
  for (size_t i = at.front(); i < at.front() + period; ++i) names.push_back(NameAt(i));
  std::sort(names.begin(), names.end());
  const auto distinct = std::unique(names.begin(), names.end()) - names.begin();
  return period >= kLayersWithin * static_cast<size_t>(distinct);
}

// The names that come in fewer than half of the periods.
std::vector<bool> Periods::Strangers(const Places& at) const {
  std::vector<uint32_t> count(trace_.strings.size(), 0);
  for (size_t i = at.front(); i < at.back(); ++i) ++count[Index(NameAt(i))];
  std::vector<bool> strange;
  for (const uint32_t each : count) strange.push_back(2 * size_t{each} < at.size() - 1);
  return strange;
}

// As layers are: kernels that do not recur stand before them (an embedding) or behind them (the head of a model).
// Before a loop, too, other work may stand, as a prefill before tokens: that alone does not speak against periods
// that hold layers.
bool Periods::AreFramed(const Places& at, size_t period, bool at_both_ends) {
  const std::vector<bool> strange = Strangers(at);
  const Duration all = table().begin[ops_[at.back()]] - table().begin[ops_[at.front()]];
  const Duration reach{kFramesReach * (all.ns / static_cast<int64_t>(at.size() - 1))};
  const auto is_strange = [&](size_t i) {
    return table().kind[ops_[i]] == DeviceOpKind::kKernel && strange[Index(NameAt(i))];
  };
  const auto is_pause = [&](size_t i) {  // before that operation
    return table().begin[ops_[i]] - table().end(ops_[i - 1]) > reach;
  };
  bool behind = false;
  for (size_t i = at.back() + 1; i < ops_.size() && !behind && !is_pause(i); ++i) {
    CancelPoint(i);
    behind = is_strange(i);
  }
  bool before = false;
  for (size_t i = at.front(); i > 0 && !before && !is_pause(i); --i) {
    CancelPoint(i);
    before = is_strange(i - 1);
  }
  return at_both_ends ? behind || before : behind || (before && !HoldsLayers(at, period));
}

bool Periods::IsIteration(const Places& at, size_t period) {
  if (!Recurs(at, period) || !CoversTheTrace(at, period) || !AreLaunchedAnew(at)) return false;
  FindHostsPart();
  if (Optimize(at)) return true;
  if (ShowTheHost(at)) return !AreFramed(at, period, false);
  return HoldsLayers(at, period) && !AreFramed(at, period, true);
}

std::vector<Row> Periods::Find() {
  for (const Places& at : Candidates()) {
    Places distances;
    for (size_t i = 0; i + 1 < at.size(); ++i) distances.push_back(at[i + 1] - at[i]);
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::nth_element(distances.begin(), middle, distances.end());
    const size_t period = *middle;
    const size_t least = at.size() < kMinRepetitions ? kLongPeriod : kMinPeriod;
    if (period < least || at.front() + period >= ops_.size()) continue;
    if (!IsIteration(at, period)) continue;
    std::vector<Row> found;
    for (const size_t i : at) found.push_back(Row{ops_[i]});
    return found;
  }
  return {};
}

}  // namespace

std::vector<Row> PeriodicOps(const Trace& trace, DeviceRows& rows) {
  const auto busiest = std::max_element(
      rows.ops().begin(), rows.ops().end(),
      [](const auto& fewer, const auto& more) { return fewer.size() < more.size(); });
  return busiest->empty() ? std::vector<Row>{} : Periods(trace, *busiest).Find();
}

}  // namespace trainprof
