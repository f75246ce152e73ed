#include "trace/base/spare_blocks.h"

#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define TRAINPROF_SANITIZER_HAS_NEW
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRAINPROF_SANITIZER_HAS_NEW
#endif

namespace trainprof {
namespace {

// Beside half of what is in use.
constexpr size_t kAlwaysKept = size_t{64} << 20;
constexpr size_t kMostBlocks = 256;

// Sizes are those of malloc_usable_size(): free() takes any block, whoever asked for it.
class SpareBlocks {
 public:
  // The smallest that is large enough, what it has too much given back; nullptr: there is none. It counts as in use from
  // now on.
  void* Take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    size_t best = count_;
    for (size_t i = 0; i < count_; ++i) {
      if (blocks_[i].bytes >= bytes && (best == count_ || blocks_[i].bytes < blocks_[best].bytes))
        best = i;
    }
    if (best == count_) {
      const size_t all = in_use_ + kept_ + bytes;
      if (all > most_in_use_) DropFirst(all - most_in_use_);
      return nullptr;
    }
    Block block = blocks_[best];
    Remove(best, 1);
    kept_ -= block.bytes;
    if (block.bytes > bytes + bytes / 4) {
      // It has mapped pages of its own, and is not moved.
      block.address = realloc(block.address, bytes);
      block.bytes = malloc_usable_size(block.address);
    }
    CountAsUsed(block.bytes);
    return block.address;
  }

  void CountNew(void* address) {
    const std::lock_guard lock(mutex_);
    CountAsUsed(malloc_usable_size(address));
  }

  void Keep(void* address, size_t bytes) {
    const std::lock_guard lock(mutex_);
    in_use_ -= std::min(in_use_, bytes);  // some were made before anybody counted
    if (count_ == kMostBlocks) DropFirst(1);
    blocks_[count_++] = {address, bytes};
    kept_ += bytes;
    const size_t most = in_use_ / 2 + kAlwaysKept;
    if (kept_ > most) DropFirst(kept_ - most);
  }

  void DropAll() {
    const std::lock_guard lock(mutex_);
    DropFirst(kept_);
  }

  size_t kept() {
    const std::lock_guard lock(mutex_);
    return kept_;
  }

  // Around fork(): no thread of the child would ever unlock it.
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }

 private:
  struct Block {
    void* address;
    size_t bytes;
  };

  void CountAsUsed(size_t bytes) {
    in_use_ += bytes;
    most_in_use_ = std::max(most_in_use_, in_use_);
  }
  // Of those kept longest so many bytes, at least.
  void DropFirst(size_t bytes) {
    size_t dropped = 0;
    size_t i = 0;
    for (; i < count_ && dropped < bytes; ++i) {
      dropped += blocks_[i].bytes;
      free(blocks_[i].address);
    }
    Remove(0, i);
    kept_ -= dropped;
  }
  void Remove(size_t first, size_t count) {
    const auto begin = blocks_.begin() + static_cast<ptrdiff_t>(first);
    std::move(begin + static_cast<ptrdiff_t>(count),
              blocks_.begin() + static_cast<ptrdiff_t>(count_), begin);
    count_ -= count;
  }

  std::mutex mutex_;
  std::array<Block, kMostBlocks> blocks_{};  // the one kept longest first
  size_t count_ = 0;
  size_t kept_ = 0;
  size_t in_use_ = 0;  // of large blocks
  size_t most_in_use_ = 0;
};

constinit SpareBlocks g_spare;
constinit std::atomic<bool> g_keeps{false};

}  // namespace

void KeepSpareBlocks() {
  const auto unlock = [] { g_spare.Unlock(); };
  if (!g_keeps.exchange(true)) pthread_atfork([] { g_spare.Lock(); }, unlock, unlock);
}
void ReturnSpareBlocks() { g_spare.DropAll(); }
size_t SpareBytes() { return g_spare.kept(); }

#if !defined(TRAINPROF_SANITIZER_HAS_NEW)
namespace {

// As large as those that malloc() maps by themselves (ShareOneHeap).
constexpr size_t kLargeBytes = size_t{128} << 10;

void* AllocateLarge(size_t bytes) {
  if (void* const spare = g_spare.Take(bytes)) return spare;
  void* address = malloc(bytes);
  if (address == nullptr) {
    g_spare.DropAll();
    address = malloc(bytes);
  }
  if (address != nullptr) g_spare.CountNew(address);
  return address;
}

void* Allocate(size_t bytes) {
  while (true) {
    const bool is_large = bytes >= kLargeBytes && g_keeps.load(std::memory_order_relaxed);
    void* const address = is_large ? AllocateLarge(bytes) : malloc(std::max<size_t>(bytes, 1));
    if (address != nullptr) return address;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void Free(void* address) {
  if (address == nullptr) return;
  const size_t bytes = malloc_usable_size(address);
  if (bytes >= kLargeBytes && g_keeps.load(std::memory_order_relaxed))
    return g_spare.Keep(address, bytes);
  free(address);
}

}  // namespace
#endif

}  // namespace trainprof

#if !defined(TRAINPROF_SANITIZER_HAS_NEW)
void* operator new(size_t bytes) { return trainprof::Allocate(bytes); }
void* operator new[](size_t bytes) { return trainprof::Allocate(bytes); }
void operator delete(void* address) noexcept { trainprof::Free(address); }
void operator delete[](void* address) noexcept { trainprof::Free(address); }
void operator delete(void* address, size_t bytes) noexcept {
  if (bytes < trainprof::kLargeBytes) return free(address);
  trainprof::Free(address);
}
void operator delete[](void* address, size_t bytes) noexcept {
  if (bytes < trainprof::kLargeBytes) return free(address);
  trainprof::Free(address);
}
#endif
