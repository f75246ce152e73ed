// Events at impossible times: kineto has written kernels at time 0 (kineto#109), which would
// stretch a trace over 50 years. They are set aside, whole, into Trace::others.
#include <algorithm>

#include "trace/formats/chrome/chrome_tables.h"

namespace trainprof {
namespace {

// No profile of one process has a hole of a day in it; recordings with longer ones exist, but then
// much more than a tenth of the events lies beyond.
constexpr int64_t kFarNs = 86'400'000'000'000;
constexpr size_t kRareShare = 10;  // one in ten
constexpr size_t kZeroShare = 2;   // at time 0 exactly: one in two
constexpr size_t kMedianSample = 1 << 16;

// Removes the rows for which far(begin).
template <class T, class Far>
void RemoveRows(T& table, Far far) {
  std::vector<uint32_t> kept;
  for (uint32_t row = 0; row < table.size(); ++row) {
    if (!far(table.begin[row])) kept.push_back(row);
  }
  ForEachStored(table, [&](auto& rows) {
    for (size_t i = 0; i < kept.size(); ++i) rows[i] = rows[kept[i]];
  });
  ForEachColumn(table, [&](auto& column) { column.resize(kept.size()); });
}

struct Spread {
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
};

}  // namespace

template <class T>
void ChromeTables::KeepRow(const T& table, size_t row) {
  const Trace& trace = builder_.trace();
  const Track& track = trace.tracks[Index(table.track[row])];
  ChromeEvent event;
  event.phase = 'X';
  event.has_time = true;
  event.time_ns = table.begin[row].ns;
  event.name = table.name[row];
  event.category = table.category[row];
  event.pid = {ChromeId::Kind::kNumber, trace.processes[Index(track.process)].pid, kEmptyString};
  event.tid = {ChromeId::Kind::kNumber, track.tid, kEmptyString};
  trace.args.ForEach(table.args[row], [&](const Arg& arg) { event.args.push_back(arg); });
  if constexpr (std::is_same_v<T, InstantTable>) {
    event.phase = 'i';
    event.scope = table.scope[row];
  } else if constexpr (std::is_same_v<T, CounterTable>) {
    event.phase = 'C';
  } else if constexpr (std::is_same_v<T, FlowTable>) {
    event.phase = table.phase[row];
    event.bind = table.bind[row];
    event.has_id = true;
    event.id = table.id[row];
  } else {
    event.has_duration = true;
    event.duration_ns = (table.end(row) - table.begin[row]).ns;
  }
  notes_.Add(event.time_ns == 0 ? Note::kZeroTime : Note::kTimeOutlier);
  KeepWithTime(event);
}

void ChromeTables::SetOutliersAside() {
  Trace& trace = builder_.trace();
  const auto for_each_time = [&](auto visit) {
    ForEachTable(trace, [&](Table, const EventColumns& table) {
      for (TraceTime time : table.begin) visit(time);
    });
  };
  Spread spread;
  size_t total = 0;
  for_each_time([&](TraceTime time) {
    ++total;
    spread.first = std::min(spread.first, time.ns);
    spread.last = std::max(spread.last, time.ns);
  });
  if (total == 0 || spread.last - spread.first <= kFarNs) return;
  std::vector<int64_t> times;
  const size_t stride = total / kMedianSample + 1;
  ForEachTable(trace, [&](Table, const EventColumns& table) {
    for (size_t row = 0; row < table.size(); row += stride) times.push_back(table.begin[row].ns);
  });
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  const int64_t median = *middle;
  const auto is_far = [&](TraceTime time) {
    return time.ns < median - kFarNs || time.ns > median + kFarNs;
  };
  size_t far_count = 0;
  size_t zero_count = 0;
  for_each_time([&](TraceTime time) {
    far_count += is_far(time) ? 1 : 0;
    zero_count += is_far(time) && time.ns == 0 ? 1 : 0;
  });
  const bool zeros_go = zero_count > 0 && zero_count * kZeroShare < total;
  const bool others_go = (far_count - zero_count) * kRareShare < total;
  const auto goes = [&](TraceTime time) {
    return is_far(time) && (time.ns == 0 ? zeros_go : others_go);
  };
  ForEachTable(trace, [&](Table, auto& table) {
    bool any = false;
    for (size_t row = 0; row < table.size(); ++row) {
      if (!goes(table.begin[row])) continue;
      any = true;
      KeepRow(table, row);
    }
    if (any) RemoveRows(table, goes);
  });
}

}  // namespace trainprof
