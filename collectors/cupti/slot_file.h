// The file SEGMENT.slots: the buffers that CUPTI writes its records into. It is mapped, so that
// what was delivered outlives a killed process; the supervisor then makes rows of it (salvage.h).
//
// Slot i lies at slot_bytes * (i + 1); the header has the first place.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/cupti/records.h"

namespace trainprof::collectors {

inline constexpr char kSlotFileSuffix[] = ".slots";
inline constexpr uint64_t kSlotFileMagic = 0x31544F4C53505254;  // "TRPSLOT1"
// Small buffers bound what a kill loses and are passed on sooner; some 1,000 launches each.
inline constexpr uint32_t kSlotBytes = 256 * 1024;
inline constexpr uint32_t kMostSlots = 1024;  // 256 MiB

enum class SlotState : uint32_t {
  kFree = 0,
  kHeld = 1,       // CUPTI writes into it
  kDelivered = 2,  // `valid_bytes` are whole, not all of them are rows yet
  kInWork = 3,     // the same, and our thread is at it
};

struct Slot {
  std::atomic<SlotState> state;
  std::atomic<uint32_t> valid_bytes;
  // Before it, records are rows already; the record at it may be one, too.
  std::atomic<uint32_t> done_bytes;
  uint32_t reserved;
  std::atomic<int64_t> held_ns;       // CLOCK_MONOTONIC
  std::atomic<int64_t> delivered_ns;  // CLOCK_MONOTONIC
};
static_assert(sizeof(Slot) == 32);

// Which string a pointer in a record meant: the process that could be asked is dead. Keys of calls
// are CallKey(). Open addressing; full: later ones are not kept.
struct KeptName {
  std::atomic<uint64_t> key;  // 0: none
  std::atomic<uint32_t> id;   // in the strings of the writer
  uint32_t reserved;
};
inline constexpr uint32_t kKeptNames = 8192;

constexpr uint64_t CallKey(uint32_t kind, uint32_t cbid) { return uint64_t{kind} << 16 | cbid; }

struct SlotFileHeader {
  std::atomic<uint64_t> magic;  // written last
  uint32_t slot_bytes;
  uint32_t writer;            // of the rows
  uint64_t segment_identity;  // the segment that the rows belong to
  int64_t time_offset_ns;     // added to CUPTI's times
  std::atomic<uint32_t> slots;
  uint32_t whole_kinds;  // 1: calls are to be sifted (calls.h)
  uint32_t record_bytes[kActivityKinds];
  KeptName names[kKeptNames];
  Slot slot[kMostSlots];
};
static_assert(sizeof(SlotFileHeader) <= kSlotBytes);

// Looks up and keeps names in the header of the file.
class KeptNames {
 public:
  explicit KeptNames(KeptName* table = nullptr) : table_(table) {}
  // 0: not kept.
  uint32_t Find(uint64_t key) const {
    const KeptName* name = SlotOf(key);
    return name == nullptr || name->key.load(std::memory_order_acquire) != key
               ? 0
               : name->id.load(std::memory_order_relaxed);
  }
  void Keep(uint64_t key, uint32_t id) {
    KeptName* name = SlotOf(key);
    if (name == nullptr) return;
    if (name->id.load(std::memory_order_relaxed) != id) name->id.store(id);
    if (name->key.load(std::memory_order_relaxed) != key) name->key.store(key);
  }

 private:
  // Where the key is or may be put; nullptr: the table is crowded there.
  KeptName* SlotOf(uint64_t key) const {
    constexpr uint32_t kMostProbes = 32;
    const uint64_t hash = key * 0x9E3779B97F4A7C15;
    for (uint32_t i = 0; i < kMostProbes; ++i) {
      KeptName* name = &table_[((hash >> 40) + i) & (kKeptNames - 1)];
      const uint64_t found = name->key.load(std::memory_order_relaxed);
      if (found == key || found == 0) return name;
    }
    return nullptr;
  }

  KeptName* table_;
};

}  // namespace trainprof::collectors
