#include "analysis/graph/host_items.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "analysis/graph/call_waits.h"
#include "analysis/host/timeline.h"
#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/parallel.h"

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

// What one thread did. Its items name its own inputs, and its waits from 1 on.
struct Found {
  std::vector<HostItem> items;
  std::vector<InputPiece> inputs;
  std::vector<CallWait> waits;
  bool issues = false;
};

class ThreadFinder {
 public:
  // `outer_call`: this thread's rows of it are set.
  ThreadFinder(const Trace& trace, TrackId thread, const CallWaits& waits,
               std::vector<uint32_t>& outer_call)
      : trace_(trace), thread_(thread), waits_(waits), outer_call_(outer_call) {}

  // `marks`: nullptr of a thread that does not step.
  Found Find(const std::vector<TraceTime>* marks) && {
    const std::vector<uint32_t> outer = OuterCalls();
    AddCalls(outer);
    size_t middle = found_.items.size();
    found_.inputs = InputPieces(trace_, thread_, outer);
    for (uint32_t input = 0; input < found_.inputs.size(); ++input) {
      found_.items.push_back({NodeKind::kInput, input, 0});
    }
    MergeFrom(middle, {});
    if (marks == nullptr) return std::move(found_);
    middle = found_.items.size();
    for (uint32_t mark = 0; mark < marks->size(); ++mark) {
      found_.items.push_back({NodeKind::kStep, mark, 0});
    }
    // Of what begins together the step does so first.
    std::rotate(found_.items.begin(), found_.items.begin() + static_cast<ptrdiff_t>(middle),
                found_.items.end());
    MergeFrom(marks->size(), *marks);
    return std::move(found_);
  }

 private:
  std::vector<uint32_t> OuterCalls() {
    std::vector<uint32_t> outer;
    const auto [first, last] = trace_.api.rows_of(thread_);
    for (uint32_t call = first; call < last; ++call) {
      CancelPoint(call);
      found_.issues = found_.issues || StartsWork(trace_.api.kind[call]);
      const bool is_inner = !outer.empty() && trace_.api.begin[call] < trace_.api.end(outer.back());
      if (!is_inner) outer.push_back(call);
      outer_call_[call] = outer.back();
    }
    return outer;
  }

  void AddCalls(const std::vector<uint32_t>& outer) {
    ReserveLarge(found_.items, outer.size());
    const uint32_t last = trace_.api.rows_of(thread_).second;
    for (size_t i = 0; i < outer.size(); ++i) {
      HostItem item{NodeKind::kCall, outer[i], 0};
      const uint32_t next = i + 1 < outer.size() ? outer[i + 1] : last;
      for (uint32_t call = outer[i]; call < next; ++call) AddWait(call, item);
      found_.items.push_back(item);
    }
  }

  // What a call waits for, and the calls within it: the driver's do the runtime's work.
  void AddWait(uint32_t call, HostItem& item) {
    std::optional<CallWait> wait = waits_.Of(Row{call}, near_);
    if (!wait) return;
    // A call within one may end behind it: times are rounded, and of a damaged trace anything.
    wait->from = std::min(wait->from, trace_.api.end(item.index));
    if (item.wait == 0) {
      found_.waits.push_back(*std::move(wait));
      item.wait = static_cast<uint32_t>(found_.waits.size());
      return;
    }
    CallWait& all = found_.waits[item.wait - 1];
    if (wait->targets.empty()) return;
    if (all.targets.empty()) {
      all = *std::move(wait);
      return;
    }
    all.targets.insert(all.targets.end(), wait->targets.begin(), wait->targets.end());
  }

  void MergeFrom(size_t middle, std::span<const TraceTime> marks) {
    const auto begin_of = [&](const HostItem& item) {
      if (item.kind == NodeKind::kStep) return marks[item.index];
      return item.kind == NodeKind::kInput ? found_.inputs[item.index].interval.begin
                                           : trace_.api.begin[item.index];
    };
    const auto begin = found_.items.begin();
    std::inplace_merge(
        begin, begin + static_cast<ptrdiff_t>(middle), found_.items.end(),
        [&](const HostItem& a, const HostItem& b) { return begin_of(a) < begin_of(b); });
  }

  const Trace& trace_;
  const TrackId thread_;
  const CallWaits& waits_;
  std::vector<uint32_t>& outer_call_;
  CallWaits::Near near_;
  Found found_;
};

// Behind what the threads before it did.
void Append(TrackId thread, Found found, HostItems& items) {
  const auto inputs = static_cast<uint32_t>(items.inputs.size());
  const auto waits = static_cast<uint32_t>(items.waits.size() - 1);
  for (HostItem& item : found.items) {
    if (item.kind == NodeKind::kInput) item.index += inputs;
    if (item.wait != 0) item.wait += waits;
  }
  items.inputs.insert(items.inputs.end(), found.inputs.begin(), found.inputs.end());
  std::move(found.waits.begin(), found.waits.end(), std::back_inserter(items.waits));
  items.threads.push_back({thread, std::move(found.items), found.issues});
}

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
  HostItems items;
  items.marks = std::move(marks);
  items.waits.emplace_back();
  AssignLarge(items.outer_call, trace.api.size());
  std::vector<TrackId> threads;
  for (uint32_t id = 0; id < trace.tracks.size(); ++id) {
    const auto [first, last] = trace.api.rows_of(TrackId{id});
    if (first != last || TrackId{id} == stepping) threads.push_back(TrackId{id});
  }
  const CallWaits waits(trace, blocking_calls, streams);
  std::vector<Found> found(threads.size());
  std::vector<std::function<void()>> jobs;
  for (size_t i = 0; i < threads.size(); ++i) {
    jobs.emplace_back([&, i] {
      found[i] = ThreadFinder(trace, threads[i], waits, items.outer_call)
                     .Find(threads[i] == stepping ? &items.marks : nullptr);
    });
  }
  RunAll(jobs);
  for (size_t i = 0; i < threads.size(); ++i) Append(threads[i], std::move(found[i]), items);
  const auto issues = [](const HostThread& thread) { return thread.issues; };
  if (std::none_of(items.threads.begin(), items.threads.end(), issues)) {
    for (HostThread& thread : items.threads) thread.issues = true;
  }
  return items;
}

}  // namespace trainprof
