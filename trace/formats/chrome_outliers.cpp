// Events at impossible times: kineto has written kernels at time 0 (kineto#109), which would
// stretch a trace over 50 years. They are set aside, whole, into Trace::others.
#include <algorithm>

#include "trace/formats/chrome_tables.h"

namespace trainprof {
namespace {

// No profile of one process has a hole of a day in it; recordings with longer ones exist, but then
// much more than a tenth of the events lies beyond.
constexpr int64_t kFarNs = 86'400'000'000'000;
constexpr size_t kRareShare = 10;  // one in ten
constexpr size_t kZeroShare = 2;   // at time 0 exactly: one in two
constexpr size_t kMedianSample = 1 << 16;

void AppendTimes(const EventColumns& table, size_t stride, std::vector<int64_t>& times) {
  for (size_t row = 0; row < table.size(); row += stride) times.push_back(table.begin[row].ns);
}

// Removes the rows for which far(row) from the common columns and the given ones.
template <class Far, class... Columns>
void RemoveRows(EventColumns& table, Far far, Columns&... columns) {
  size_t kept = 0;
  const auto move_down = [&](auto& column, size_t row) { column[kept] = column[row]; };
  for (size_t row = 0; row < table.size(); ++row) {
    if (far(row)) continue;
    move_down(table.begin, row);
    move_down(table.end, row);
    move_down(table.name, row);
    move_down(table.track, row);
    move_down(table.args, row);
    (move_down(columns, row), ...);
    ++kept;
  }
  table.end.resize(kept);
  table.name.resize(kept);
  table.track.resize(kept);
  table.args.resize(kept);
  (columns.resize(kept), ...);
  table.begin.resize(kept);
}

struct Spread {
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
};

}  // namespace

// `fill` sets what only this table's rows have.
template <class Fill>
void ChromeTables::KeepRow(const EventColumns& table, size_t row, Fill fill) {
  const Trace& trace = builder_.trace();
  const Track& track = trace.tracks[Index(table.track[row])];
  ChromeEvent event;
  event.phase = 'X';
  event.has_time = true;
  event.time_ns = table.begin[row].ns;
  event.name = table.name[row];
  event.pid = {ChromeId::Kind::kNumber, trace.processes[Index(track.process)].pid, kEmptyString};
  event.tid = {ChromeId::Kind::kNumber, track.tid, kEmptyString};
  trace.args.ForEach(table.args[row], [&](const Arg& arg) { event.args.push_back(arg); });
  fill(event);
  if (event.phase == 'X') {
    event.has_duration = true;
    event.duration_ns = (table.end[row] - table.begin[row]).ns;
  }
  notes_.Add(event.time_ns == 0 ? Note::kZeroTime : Note::kTimeOutlier);
  KeepWithTime(event);
}

void ChromeTables::SetOutliersAside() {
  Trace& t = builder_.trace();
  EventColumns* const tables[] = {&t.ranges,   &t.api,      &t.device_ops, &t.syncs,
                                  &t.instants, &t.counters, &t.flows};
  Spread spread;
  size_t total = 0;
  for (const EventColumns* table : tables) {
    total += table->size();
    for (TraceTime time : table->begin) {
      spread.first = std::min(spread.first, time.ns);
      spread.last = std::max(spread.last, time.ns);
    }
  }
  if (total == 0 || spread.last - spread.first <= kFarNs) return;
  std::vector<int64_t> times;
  for (const EventColumns* table : tables) {
    AppendTimes(*table, total / kMedianSample + 1, times);
  }
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  const int64_t median = *middle;
  const auto is_far = [&](TraceTime time) {
    return time.ns < median - kFarNs || time.ns > median + kFarNs;
  };
  size_t far_count = 0;
  size_t zero_count = 0;
  for (const EventColumns* table : tables) {
    for (TraceTime time : table->begin) {
      far_count += is_far(time) ? 1 : 0;
      zero_count += is_far(time) && time.ns == 0 ? 1 : 0;
    }
  }
  const bool zeros_go = zero_count > 0 && zero_count * kZeroShare < total;
  const bool others_go = (far_count - zero_count) * kRareShare < total;
  const auto goes = [&](TraceTime time) {
    return is_far(time) && (time.ns == 0 ? zeros_go : others_go);
  };
  const auto set_aside = [&](EventColumns& table, auto fill, auto&... columns) {
    const auto far = [&](size_t row) { return goes(table.begin[row]); };
    bool any = false;
    for (size_t row = 0; row < table.size(); ++row) {
      if (!far(row)) continue;
      any = true;
      KeepRow(table, row, [&](ChromeEvent& event) { fill(event, row); });
    }
    if (any) RemoveRows(table, far, columns...);
  };
  const auto category = [](auto& table) {
    return [&table](ChromeEvent& event, size_t row) { event.category = table.category[row]; };
  };
  const auto point = [](auto& table, char phase) {
    return [&table, phase](ChromeEvent& event, size_t row) {
      event.category = table.category[row];
      event.phase = phase;
    };
  };
  set_aside(t.ranges, category(t.ranges), t.ranges.kind, t.ranges.category);
  set_aside(t.api, category(t.api), t.api.kind, t.api.category, t.api.correlation);
  set_aside(t.device_ops, category(t.device_ops), t.device_ops.kind, t.device_ops.category,
            t.device_ops.direction, t.device_ops.bytes, t.device_ops.correlation);
  set_aside(t.syncs, category(t.syncs), t.syncs.category, t.syncs.correlation);
  set_aside(
      t.instants,
      [&](ChromeEvent& event, size_t row) {
        point(t.instants, 'i')(event, row);
        event.scope = t.instants.scope[row];
      },
      t.instants.category, t.instants.scope);
  set_aside(t.counters, point(t.counters, 'C'), t.counters.category);
  set_aside(
      t.flows,
      [&](ChromeEvent& event, size_t row) {
        point(t.flows, t.flows.phase[row])(event, row);
        event.bind = t.flows.bind[row];
        event.has_id = true;
        event.id = t.flows.id[row];
      },
      t.flows.category, t.flows.id, t.flows.phase, t.flows.bind);
}

}  // namespace trainprof
