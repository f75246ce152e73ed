#include "analysis/graph/host_items.h"

#include <algorithm>
#include <utility>

#include "analysis/graph/call_waits.h"
#include "analysis/host/timeline.h"
#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"

namespace trainprof {
namespace {

// Of a thread the times of its outermost waits for input, without what its calls take.
std::vector<InputPiece> InputPieces(const Trace& trace, TrackId thread,
                                    const std::vector<uint32_t>& outer_calls) {
  std::vector<InputPiece> pieces;
  const std::vector<bool> waits = FindInputWaits(trace, thread);
  const auto [first, last] = trace.ranges.rows_of(thread);
  auto call = outer_calls.begin();
  TraceTime behind{INT64_MIN};  // of the last outermost wait
  for (uint32_t range = first; range < last; ++range) {
    CancelPoint(range);
    const Interval times = trace.ranges.interval(Row{range});
    if (!waits[range - first] || times.begin < behind || times.Empty()) continue;
    behind = times.end;
    TraceTime at = times.begin;
    while (call != outer_calls.end() && trace.api.end(*call) <= at) ++call;
    for (; call != outer_calls.end() && trace.api.begin[*call] < times.end; ++call) {
      const Interval before{at, trace.api.begin[*call]};
      if (!before.Empty()) pieces.push_back({before, range});
      at = std::max(at, trace.api.end(*call));
    }
    if (at < times.end) pieces.push_back({{at, times.end}, range});
    // The call that goes on behind this wait may stand in the next one, too.
    if (call != outer_calls.begin()) --call;
  }
  return pieces;
}

class Finder {
 public:
  Finder(const Trace& trace, TrackId stepping, std::vector<TraceTime> marks,
         const std::vector<bool>& blocking, const Streams& streams)
      : trace_(trace), stepping_(stepping), waits_(trace, blocking, streams) {
    items_.marks = std::move(marks);
    items_.waits.emplace_back();
    AssignLarge(items_.outer_call, trace.api.size());
  }

  HostItems Find() && {
    for (uint32_t id = 0; id < trace_.tracks.size(); ++id) {
      const TrackId track{id};
      const auto [first, last] = trace_.api.rows_of(track);
      if (first == last && track != stepping_) continue;
      items_.threads.push_back({track, ItemsOf(track)});
    }
    return std::move(items_);
  }

 private:
  std::vector<uint32_t> OuterCalls(TrackId thread) {
    std::vector<uint32_t> outer;
    const auto [first, last] = trace_.api.rows_of(thread);
    for (uint32_t call = first; call < last; ++call) {
      CancelPoint(call);
      const bool is_inner = !outer.empty() && trace_.api.begin[call] < trace_.api.end(outer.back());
      if (!is_inner) outer.push_back(call);
      items_.outer_call[call] = outer.back();
    }
    return outer;
  }

  // What a call waits for, and the calls within it: the driver's do the runtime's work.
  void AddWait(uint32_t call, HostItem& item) {
    std::optional<CallWait> wait = waits_.Of(Row{call});
    if (!wait) return;
    // A call within one may end behind it: times are rounded, and of a damaged trace anything.
    wait->from = std::min(wait->from, trace_.api.end(item.index));
    if (item.wait == 0) {
      item.wait = static_cast<uint32_t>(items_.waits.size());
      items_.waits.push_back(*std::move(wait));
      return;
    }
    CallWait& all = items_.waits[item.wait];
    if (wait->targets.empty()) return;
    if (all.targets.empty()) {
      all = *std::move(wait);
      return;
    }
    all.targets.insert(all.targets.end(), wait->targets.begin(), wait->targets.end());
  }

  std::vector<HostItem> ItemsOf(TrackId thread) {
    const std::vector<uint32_t> outer = OuterCalls(thread);
    std::vector<HostItem> items;
    ReserveLarge(items, outer.size());
    const uint32_t last = trace_.api.rows_of(thread).second;
    for (size_t i = 0; i < outer.size(); ++i) {
      HostItem item{NodeKind::kCall, outer[i], 0};
      const uint32_t next = i + 1 < outer.size() ? outer[i + 1] : last;
      for (uint32_t call = outer[i]; call < next; ++call) AddWait(call, item);
      items.push_back(item);
    }
    const auto by_begin = [&](const HostItem& a, const HostItem& b) {
      return items_.Times(trace_, a).begin < items_.Times(trace_, b).begin;
    };
    const auto merge_from = [&](size_t middle) {
      std::inplace_merge(items.begin(), items.begin() + static_cast<ptrdiff_t>(middle), items.end(),
                         by_begin);
    };
    size_t middle = items.size();
    for (const InputPiece& piece : InputPieces(trace_, thread, outer)) {
      items.push_back({NodeKind::kInput, static_cast<uint32_t>(items_.inputs.size()), 0});
      items_.inputs.push_back(piece);
    }
    merge_from(middle);
    if (thread != stepping_) return items;
    middle = items.size();
    for (uint32_t mark = 0; mark < items_.marks.size(); ++mark) {
      items.push_back({NodeKind::kStep, mark, 0});
    }
    // Of what begins together the step does so first.
    std::rotate(items.begin(), items.begin() + static_cast<ptrdiff_t>(middle), items.end());
    merge_from(items_.marks.size());
    return items;
  }

  const Trace& trace_;
  const TrackId stepping_;
  const CallWaits waits_;
  HostItems items_;
};

}  // namespace

Interval HostItems::Times(const Trace& trace, const HostItem& item) const {
  switch (item.kind) {
    case NodeKind::kInput:
      return inputs[item.index].interval;
    case NodeKind::kStep:
      return {marks[item.index], marks[item.index]};
    default:
      return trace.api.interval(Row{item.index});
  }
}

HostItems FindHostItems(const Trace& trace, TrackId stepping, std::vector<TraceTime> marks,
                        const std::vector<bool>& blocking_calls, const Streams& streams) {
  return Finder(trace, stepping, std::move(marks), blocking_calls, streams).Find();
}

}  // namespace trainprof
