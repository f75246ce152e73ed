#include "analysis/graph/ended_last.h"

#include <algorithm>
#include <functional>

#include "trace/base/cancel.h"
#include "trace/base/large_columns.h"
#include "trace/base/near.h"
#include "trace/base/parallel.h"
#include "trace/base/sort_runs.h"

namespace trainprof {

EndedLast::EndedLast(const Trace& trace, const HostItems& items, size_t asked)
    : trace_(trace), items_(items) {
  size_t count = 0;
  for (const HostThread& thread : items.threads) count += thread.items.size();
  if (asked > count / std::max<size_t>(items.threads.size(), 1)) {
    ReserveLarge(all_, count);
    PutInOrder();
    return;
  }
  of_.resize(items.threads.size());
  std::vector<std::function<void()>> jobs;
  for (uint32_t thread = 0; thread < of_.size(); ++thread) {
    jobs.emplace_back([this, thread] { FindOrder(thread); });
  }
  RunAll(jobs);
}

void EndedLast::PutInOrder() {
  for (uint32_t thread = 0; thread < items_.threads.size(); ++thread) {
    const std::vector<HostItem>& of_thread = items_.threads[thread].items;
    for (uint32_t item = 0; item < of_thread.size(); ++item) {
      CancelPoint(item);
      if (!Counts(of_thread[item])) continue;
      all_.push_back({EndOf(thread, item), thread, item});
    }
  }
  SortRuns(all_, [](const End& end) { return end.at; });
}

void EndedLast::FindOrder(uint32_t thread) {
  const std::vector<HostItem>& of_thread = items_.threads[thread].items;
  OfThread& of = of_[thread];
  bool stands_so = true;
  TraceTime last{INT64_MIN};
  for (uint32_t item = 0; item < of_thread.size() && stands_so; ++item) {
    CancelPoint(item);
    const TraceTime end = EndOf(thread, item);
    stands_so = Counts(of_thread[item]) && end >= last;
    last = end;
  }
  of.count = static_cast<uint32_t>(of_thread.size());
  if (stands_so) return;
  for (uint32_t item = 0; item < of_thread.size(); ++item) {
    if (Counts(of_thread[item])) of.order.push_back(item);
  }
  SortRuns(of.order, [&](uint32_t item) { return EndOf(thread, item); });
  of.count = static_cast<uint32_t>(of.order.size());
}

uint32_t EndedLast::EndedAt(uint32_t thread, TraceTime at, Near& near) const {
  near[thread] =
      static_cast<uint32_t>(PlaceNear(0, of_[thread].count, near[thread], [&](size_t place) {
        return EndOf(thread, ItemAt(thread, static_cast<uint32_t>(place))) <= at;
      }));
  return near[thread];
}

std::optional<EndedLast::End> EndedLast::Within(uint32_t thread, const Interval& within,
                                                Near& near) const {
  if (!all_.empty()) {
    auto end = std::partition_point(all_.begin(), all_.end(),
                                    [&](const End& e) { return e.at <= within.end; });
    while (end != all_.begin() && (end - 1)->at > within.begin) {
      --end;
      if (end->thread != thread) return *end;
    }
    return std::nullopt;
  }
  near.resize(of_.size());
  std::optional<End> found;
  for (uint32_t other = 0; other < of_.size(); ++other) {
    if (other == thread) continue;
    const uint32_t ended = EndedAt(other, within.end, near);
    if (ended == 0) continue;
    const uint32_t item = ItemAt(other, ended - 1);
    const TraceTime at = EndOf(other, item);
    if (at > within.begin && (!found || at >= found->at)) found = {at, other, item};
  }
  return found;
}

}  // namespace trainprof
