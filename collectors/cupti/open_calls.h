// Calls that have begun and not returned, as callbacks tell of all but launches:
// CUPTI has a record of a call only once it returns. They stand in the file of the buffers, so that they
// outlive a killed process: a thread that hangs is the one to be seen then.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/recording/wire/rows.h"

namespace trainprof::collectors {

struct BegunCall {
  uint32_t correlation;
  uint16_t cbid;
  recording::CallDomain domain;
  int64_t begin_ns;  // CLOCK_MONOTONIC
};

struct OpenCall {
  std::atomic<uint32_t> taken;   // 1: by a thread, which alone writes what follows
  std::atomic<uint32_t> thread;  // its id; 0: no call is under way. Written last
  std::atomic<uint32_t> correlation;
  std::atomic<uint16_t> cbid;
  std::atomic<recording::CallDomain> domain;
  uint8_t reserved;
  std::atomic<int64_t> begin_ns;

  BegunCall Begun() const {
    constexpr auto kAnyOrder = std::memory_order_relaxed;
    return {correlation.load(kAnyOrder), cbid.load(kAnyOrder), domain.load(kAnyOrder),
            begin_ns.load(kAnyOrder)};
  }
};
static_assert(sizeof(OpenCall) == 24);

// Of zeros. More calls at once than there is room for are not told of.
struct OpenCalls {
  static constexpr uint32_t kMost = 256;
  OpenCall call[kMost];

  // `entry`: what the thread has still, or nullptr. The entry to be given to End; nullptr: none is free.
  OpenCall* Begin(OpenCall* entry, uint32_t thread, const BegunCall& begun) {
    constexpr auto kAnyOrder = std::memory_order_relaxed;
    if (entry == nullptr) entry = Take(thread);
    if (entry == nullptr) return nullptr;
    entry->thread.exchange(0, std::memory_order_acq_rel);
    entry->correlation.store(begun.correlation, kAnyOrder);
    entry->cbid.store(begun.cbid, kAnyOrder);
    entry->domain.store(begun.domain, kAnyOrder);
    entry->begin_ns.store(begun.begin_ns, kAnyOrder);
    entry->thread.store(thread, std::memory_order_release);
    return entry;
  }
  static void End(OpenCall* entry) {
    entry->thread.store(0, std::memory_order_release);
    entry->taken.store(0, std::memory_order_release);
  }
  // Of all that are under way their ends will not be told.
  void Forget() {
    for (OpenCall& entry : call) entry.thread.store(0, std::memory_order_relaxed);
  }
  bool IsEmpty() const {
    for (const OpenCall& entry : call) {
      if (entry.thread.load(std::memory_order_relaxed) != 0) return false;
    }
    return true;
  }

 private:
  OpenCall* Take(uint32_t thread) {
    for (uint32_t i = 0; i < kMost; ++i) {
      OpenCall& entry = call[(thread + i) % kMost];
      uint32_t no = 0;
      if (entry.taken.load(std::memory_order_relaxed) == 0 &&
          entry.taken.compare_exchange_strong(no, 1, std::memory_order_acquire)) {
        return &entry;
      }
    }
    return nullptr;
  }
};

}  // namespace trainprof::collectors
