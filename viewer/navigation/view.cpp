#include "viewer/navigation/view.h"

#include <algorithm>
#include <cmath>

namespace trainprof {
namespace {

// Exact where the factor is 1 and for any length below 2^53 ns, 104 days.
int64_t Scaled(int64_t ns, double factor, int64_t most) {
  const double scaled = std::round(static_cast<double>(ns) * factor);
  if (!(scaled < static_cast<double>(most))) return most;
  return static_cast<int64_t>(std::max(scaled, -static_cast<double>(most)));
}

Interval Limits(const Interval& extent) {
  const Duration margin{extent.Length().ns / 10};
  Interval limits{extent.begin - margin, extent.end + margin};
  if (limits.Length() < kLeastView) limits.end = limits.begin + kLeastView;
  return limits;
}

}  // namespace

Interval ClampView(const Interval& view, const Interval& extent) {
  const Interval limits = Limits(extent);
  const Duration length = std::clamp(view.Length(), kLeastView, limits.Length());
  const TraceTime latest = limits.end - length;
  const TraceTime begin = std::clamp(view.begin, limits.begin, latest);
  return {begin, begin + length};
}

Interval ZoomAt(const Interval& view, TraceTime at, double factor, const Interval& extent) {
  const Duration most = Limits(extent).Length();
  const Duration length{std::max(Scaled(view.Length().ns, factor, most.ns), kLeastView.ns)};
  // By the ratio that the limits leave, so that `at` stays in its place at the ends of the zoom
  // too.
  const double ratio = static_cast<double>(length.ns) / static_cast<double>(view.Length().ns);
  const TraceTime begin = at - Duration{Scaled((at - view.begin).ns, ratio, most.ns)};
  return ClampView({begin, begin + length}, extent);
}

Interval Pan(const Interval& view, double pixels, int32_t width_px, const Interval& extent) {
  const Duration by{Scaled(view.Length().ns, pixels / width_px, Limits(extent).Length().ns)};
  return ClampView({view.begin + by, view.end + by}, extent);
}

Interval ViewOf(const Interval& shown, const Interval& extent) {
  const Duration length = std::max(shown.Length(), kLeastView);
  const Duration margin{length.ns / 100 * kMarginPercent};
  return ClampView({shown.begin - margin, shown.begin + length + margin}, extent);
}

void ViewHistory::Leave(const Interval& view) {
  ahead_.clear();
  if (!behind_.empty() && behind_.back() == view) return;
  if (behind_.size() == kMostHistory) behind_.erase(behind_.begin());
  behind_.push_back(view);
}

std::optional<Interval> ViewHistory::Back(const Interval& now) {
  if (behind_.empty()) return std::nullopt;
  const Interval view = behind_.back();
  behind_.pop_back();
  ahead_.push_back(now);
  return view;
}

std::optional<Interval> ViewHistory::Forward(const Interval& now) {
  if (ahead_.empty()) return std::nullopt;
  const Interval view = ahead_.back();
  ahead_.pop_back();
  behind_.push_back(now);
  return view;
}

}  // namespace trainprof
