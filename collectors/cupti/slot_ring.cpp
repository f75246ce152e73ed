#include "collectors/cupti/slot_ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "collectors/core/segment_file.h"
#include "collectors/core/system.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::MonotonicNs;

constexpr uint32_t kFirstSlots = 4;
constexpr uint32_t kFreeAhead = 4;
constexpr uint32_t kGrowth = 4;
constexpr uint32_t kGrowthInProgram = 1;  // by a thread of the program, which waits for it
// A thread of the program waits at most so long for a buffer, where otherwise records would be
// lost.
constexpr int64_t kMostWaitNs = 50'000'000;
constexpr int64_t kGrowthPollNs = 100'000;

}  // namespace

// The file at path_, with the header's place mapped; 0 or a negative errno, and then there is none.
int SlotRing::MakeFile(int mode) {
  const int fd = CreateFile(path_, mode);
  if (fd < 0) return fd;
  int error = AllocateBlocks(fd, 0, kSlotBytes);
  if (error == 0) error = MapSharedAt(header_, fd, 0, kSlotBytes);
  CloseFile(fd);
  if (error != 0) RemoveFile(path_);
  return error;
}

// The file first: one that is named and is not there has been lost.
bool SlotRing::MakeElsewhere(const char* folder, const char* beside_segment) {
  constexpr int kOwnersMode = 0600;
  const char* const name = strrchr(beside_segment, '/');
  if (name == nullptr) return false;
  snprintf(path_, sizeof path_, "%s/%s%s", folder, kElsewherePrefix, name + 1);
  if (MakeFile(kOwnersMode) != 0) return false;
  snprintf(header_->beside_segment, sizeof header_->beside_segment, "%s", beside_segment);
  SlotsElsewhere elsewhere{};
  elsewhere.magic = SlotsElsewhere::kMagic;
  snprintf(elsewhere.folder, sizeof elsewhere.folder, "%s", folder);
  const int fd = CreateFile(beside_segment, RunFileMode());
  const int error = fd < 0 ? fd : WriteFile(fd, &elsewhere, sizeof elsewhere);
  if (fd >= 0) CloseFile(fd);
  if (error == 0) return true;
  if (fd >= 0) RemoveFile(beside_segment);
  RemoveFile(path_);
  return false;
}

bool SlotRing::Open(const char* segment_path, const char* folder, int* file_error) {
  constexpr uint64_t kAddresses = uint64_t{kSlotBytes} * (kMostSlots + 1);
  void* place = ReserveAddresses(kAddresses);
  if (place == nullptr) return false;
  header_ = static_cast<SlotFileHeader*>(place);
  char beside_segment[kMostSlotPath];
  snprintf(beside_segment, sizeof beside_segment, "%s%s", segment_path, kSlotFileSuffix);
  *file_error = 0;
  is_file_ = folder[0] != 0 && MakeElsewhere(folder, beside_segment);
  if (!is_file_) {
    memcpy(path_, beside_segment, sizeof path_);
    *file_error = MakeFile(RunFileMode());
    is_file_ = *file_error == 0;
  }
  if (!is_file_ && MapPrivateAt(place, kSlotBytes) != 0) return false;
  header_->slot_bytes = kSlotBytes;
  most_slots_ = kMostSlots;
  return Grow(kFirstSlots);
}

bool SlotRing::Grow(uint32_t count) {
  if (growing_.exchange(1, std::memory_order_acquire) != 0) return false;  // another thread does
  const uint32_t first = slots();
  if (count > most_slots_ - first) count = most_slots_ - first;
  int error = count == 0 ? -1 : 0;
  const uint64_t size = uint64_t{count} * kSlotBytes;
  if (error == 0 && is_file_) {
    const int fd = OpenRecorded(path_, O_RDWR);
    error = fd < 0 ? fd : AllocateBlocks(fd, uint64_t{kSlotBytes} * (first + 1), size);
    if (error == 0)
      error = MapSharedAt(DataAt(first), fd, uint64_t{kSlotBytes} * (first + 1), size);
    if (fd >= 0) CloseFile(fd);
    // A full disk: the ring goes on in memory, which a kill takes along.
    if (error != 0) is_file_ = false;
  }
  if (count != 0 && !is_file_) error = MapPrivateAt(DataAt(first), size);
  if (error == 0) header_->slots.store(first + count, std::memory_order_release);
  growing_.store(0, std::memory_order_release);
  return error == 0;
}

char* SlotRing::TakeFree() {
  const uint32_t count = header_->slots.load(std::memory_order_acquire);
  const uint32_t start = next_take_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t index = (start + i) % count;
    Slot& slot = header_->slot[index];
    SlotState free = SlotState::kFree;
    if (slot.state.load(std::memory_order_relaxed) != SlotState::kFree ||
        !slot.state.compare_exchange_strong(free, SlotState::kHeld, std::memory_order_acq_rel)) {
      continue;
    }
    slot.held_ns.store(MonotonicNs(), std::memory_order_relaxed);
    held_.fetch_add(1, std::memory_order_relaxed);
    next_take_.store(index + 1, std::memory_order_relaxed);
    return DataAt(index);
  }
  return nullptr;
}

char* SlotRing::StealDelivered() {
  const uint32_t count = slots();
  for (uint32_t index = 0; index < count; ++index) {
    Slot& slot = header_->slot[index];
    SlotState delivered = SlotState::kDelivered;
    if (!slot.state.compare_exchange_strong(delivered, SlotState::kInWork)) continue;
    const uint32_t valid = slot.valid_bytes.load();
    lost_bytes_.fetch_add(valid, std::memory_order_relaxed);
    memset(DataAt(index), 0, valid);
    slot.done_bytes.store(0);
    slot.valid_bytes.store(0);
    held_.fetch_add(1, std::memory_order_relaxed);
    slot.state.store(SlotState::kHeld, std::memory_order_release);
    return DataAt(index);
  }
  return nullptr;
}

char* SlotRing::Take(bool may_refuse) {
  // Our thread may be making slots already, some 100 us away from done, or more on a busy machine.
  const int64_t deadline = MonotonicNs() + kMostWaitNs;
  for (;;) {
    if (char* data = TakeFree()) return data;
    if (slots() >= most_slots_) break;
    if (Grow(kGrowthInProgram)) continue;
    if (growing_.load() == 0) {
      if (char* data = TakeFree()) return data;  // another thread has just made some
      if (!Grow(kGrowthInProgram) && growing_.load() == 0) break;
    }
    SleepWhile(&growing_, 1, kGrowthPollNs);
    if (MonotonicNs() >= deadline) break;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (may_refuse) return nullptr;
  if (char* data = StealDelivered()) return data;
  return TakeBeyond();
}

// CUPTI holds all of them, and would crash without this one. Its records are lost.
char* SlotRing::TakeBeyond() {
  for (std::atomic<char*>& place : beyond_) {
    char* none = nullptr;
    if (place.load(std::memory_order_relaxed) != nullptr) continue;
    char* const pages = static_cast<char*>(AllocatePages(kSlotBytes));
    if (pages == nullptr || place.compare_exchange_strong(none, pages)) return pages;
    ReleasePages(pages, kSlotBytes);
  }
  return nullptr;
}

bool SlotRing::ReleaseBeyond(char* buffer) {
  for (std::atomic<char*>& place : beyond_) {
    char* ours = buffer;
    if (!place.compare_exchange_strong(ours, nullptr)) continue;
    ReleasePages(buffer, kSlotBytes);
    return true;
  }
  return false;
}

bool SlotRing::Deliver(char* buffer, uint32_t valid_bytes) {
  const auto distance = static_cast<uint64_t>(buffer - reinterpret_cast<char*>(header_));
  if (distance % kSlotBytes != 0 || distance / kSlotBytes - 1 >= slots()) {
    if (ReleaseBeyond(buffer)) lost_bytes_.fetch_add(valid_bytes, std::memory_order_relaxed);
    return false;
  }
  Slot& slot = header_->slot[distance / kSlotBytes - 1];
  if (slot.state.load(std::memory_order_acquire) != SlotState::kHeld) return false;
  slot.valid_bytes.store(valid_bytes < kSlotBytes ? valid_bytes : kSlotBytes);
  slot.delivered_ns.store(MonotonicNs());
  held_.fetch_sub(1, std::memory_order_relaxed);
  slot.state.store(SlotState::kDelivered, std::memory_order_release);
  return true;
}

Slot* SlotRing::NextDelivered() {
  const uint32_t count = header_->slots.load(std::memory_order_acquire);
  for (;;) {
    Slot* oldest = nullptr;
    for (uint32_t i = 0; i < count; ++i) {
      Slot& slot = header_->slot[i];
      if (slot.state.load(std::memory_order_acquire) != SlotState::kDelivered) continue;
      if (oldest == nullptr || slot.delivered_ns.load() < oldest->delivered_ns.load())
        oldest = &slot;
    }
    if (oldest == nullptr) return nullptr;
    SlotState delivered = SlotState::kDelivered;
    if (oldest->state.compare_exchange_strong(delivered, SlotState::kInWork)) return oldest;
  }
}

bool SlotRing::HasDelivered() const {
  const uint32_t count = header_->slots.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    const SlotState state = header_->slot[i].state.load(std::memory_order_acquire);
    if (state == SlotState::kDelivered || state == SlotState::kInWork) return true;
  }
  return false;
}

bool SlotRing::HoldsRecords() const {
  bool any = false;
  ForEachHeld([&](const Slot&, const char* data) {
    any = any || __atomic_load_n(reinterpret_cast<const uint32_t*>(data), __ATOMIC_RELAXED) != 0;
  });
  return any;
}

const char* SlotRing::DataOf(const Slot* slot) const {
  return DataAt(static_cast<uint32_t>(slot - header_->slot));
}

void SlotRing::Recycle(Slot* slot) {
  memset(DataAt(static_cast<uint32_t>(slot - header_->slot)), 0, slot->valid_bytes.load());
  slot->done_bytes.store(0);
  slot->valid_bytes.store(0);
  slot->state.store(SlotState::kFree, std::memory_order_release);
}

uint32_t SlotRing::CountFree() const {
  uint32_t free = 0;
  const uint32_t count = slots();
  for (uint32_t i = 0; i < count; ++i) {
    free += header_->slot[i].state.load(std::memory_order_relaxed) == SlotState::kFree ? 1 : 0;
  }
  return free;
}

bool SlotRing::KeepAhead() { return CountFree() >= kFreeAhead || Grow(kGrowth); }

}  // namespace trainprof::collectors
