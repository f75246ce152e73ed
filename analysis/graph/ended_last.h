// Which of several host threads did something last, before a moment.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/graph/host_items.h"

namespace trainprof {

class EndedLast {
 public:
  // The end of an item of HostItems::threads.
  struct End {
    TraceTime at;
    uint32_t thread = 0;
    uint32_t item = 0;
  };

  // Where the last answers were found, by thread: of questions that follow in time the next one's are near.
  using Near = std::vector<uint32_t>;

  // `asked`: how often Within() will be called, roughly. Few questions look into each thread by itself; for many all
  // ends are put into one order first. Keeps references. O(items), for many questions times log(threads).
  EndedLast(const Trace& trace, const HostItems& items, size_t asked);

  // Of all threads but that one the item that ended last in (within.begin, within.end], but for begins of steps, and
  // for queries: who asks whether something is done wakes nobody. Of equal ends the last thread's, and its last item's.
  // `near`: empty before the first question, and of one thread of ours alone, as this may be called on several.
  std::optional<End> Within(uint32_t thread, const Interval& within, Near& near) const;

 private:
  struct OfThread {
    // Items in the order of their ends; empty: as they stand.
    std::vector<uint32_t> order;
    uint32_t count = 0;
  };

  TraceTime EndOf(uint32_t thread, uint32_t item) const {
    return items_.Times(trace_, items_.threads[thread].items[item]).end;
  }
  uint32_t ItemAt(uint32_t thread, uint32_t place) const {
    const std::vector<uint32_t>& order = of_[thread].order;
    return order.empty() ? place : order[place];
  }
  bool Counts(const HostItem& item) const {
    return item.kind == NodeKind::kInput ||
           (item.kind == NodeKind::kCall && trace_.api.kind[item.index] != ApiKind::kQuery);
  }
  void PutInOrder();
  void FindOrder(uint32_t thread);
  // How many items of the thread had ended.
  uint32_t EndedAt(uint32_t thread, TraceTime at, Near& near) const;

  const Trace& trace_;
  const HostItems& items_;
  std::vector<OfThread> of_;
  std::vector<End> all_;  // by time; empty: each thread is looked into
};

}  // namespace trainprof
