#include "viewer/navigation/measure.h"

namespace trainprof {

Duration RangeTotals::Total() const {
  Duration total;
  for (const Duration& t : time) total += t;
  return total;
}

RangeTotals TotalsOf(const Lane& lane, const Interval& range) {
  if (range.Empty()) return {};
  const size_t first = lane.FirstEndingAfter(range.begin);
  const size_t last = lane.FirstBeginningAt(range.end, first);
  return {lane.TotalsWithin(range, first, last), last - first};
}

std::optional<RangeTotals> TotalsOf(LaneStore& store, uint32_t line, const Interval& range) {
  if (!store.Has(line) || !store.Ask(line, Form::kInnermost)) return std::nullopt;
  RangeTotals totals = TotalsOf(store.LaneOf(line, Form::kInnermost), range);
  totals.events = 0;
  for (const Lane& lane : store.LanesOf(line)) totals.events += TotalsOf(lane, range).events;
  return totals;
}

std::optional<TraceTime> SnapToEdge(std::span<const Lane> lanes, TraceTime t, Duration tolerance) {
  std::optional<TraceTime> best;
  const auto distance = [&](TraceTime edge) { return edge < t ? t - edge : edge - t; };
  const auto offer = [&](TraceTime edge) {
    if (distance(edge) > tolerance) return;
    const bool nearer = !best || distance(edge) < distance(*best) ||
                        (distance(edge) == distance(*best) && edge < *best);
    if (nearer) best = edge;
  };
  for (const Lane& lane : lanes) {
    const size_t next = lane.FirstEndingAfter(t);
    if (next > 0) offer(lane.interval(next - 1).end);
    if (next == lane.size()) continue;
    offer(lane.interval(next).begin);
    offer(lane.interval(next).end);
  }
  return best;
}

std::optional<Interval> GapAt(const Lane& lane, TraceTime t) {
  const size_t next = lane.FirstEndingAfter(t);
  if (next == 0 || next == lane.size()) return std::nullopt;
  const Interval gap{lane.interval(next - 1).end, lane.interval(next).begin};
  if (!gap.Contains(t)) return std::nullopt;
  return gap;
}

}  // namespace trainprof
