// The file SEGMENT.slots: the buffers that CUPTI writes its records into. It is mapped, so that
// what was delivered outlives a killed process; the supervisor then makes rows of it (salvage.h).
//
// Slot i lies at slot_bytes * (i + 1); the header has the first place. Where the buffers must not lie
// beside the segment (slot_place.h) this file holds SlotsElsewhere alone, and they are the file
// "trainprof-SEGMENT.slots" of the folder that it names.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/cupti/open_calls.h"
#include "collectors/cupti/records.h"

namespace trainprof::collectors {

inline constexpr char kSlotFileSuffix[] = ".slots";
inline constexpr uint64_t kSlotFileMagic = 0x31544F4C53505254;  // "TRPSLOT1"
// The least that CUPTI's manual advises, some 3,500 launches: a launch that needs a buffer takes long
// (kineto#685, kineto#1020), and smaller buffers make it more often.
inline constexpr uint32_t kSlotBytes = 1 << 20;
inline constexpr uint32_t kMostSlots = 256;  // 256 MiB

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
inline constexpr uint32_t kMostWaitingCalls = 64;  // one a thread

inline constexpr uint32_t kMostSlotPath = 3520;
inline constexpr uint32_t kMostFolderPath = 128;

struct SlotsElsewhere {
  static constexpr uint64_t kMagic = 0x3145524557505254;  // "TRPWERE1"
  uint64_t magic;
  char folder[kMostFolderPath];  // absolute, ended by a zero
};
inline constexpr char kElsewherePrefix[] = "trainprof-";

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
  // Where this file lies elsewhere: the path of SEGMENT.slots. When that is gone nobody wants this one.
  char beside_segment[kMostSlotPath];
  OpenCalls open_calls;
  std::atomic<uint32_t> open_calls_told;  // 1: those that were under way at the end are rows
  uint32_t reserved;
  // Driver's calls whose records ended a buffer, kind 0: none. The call of the runtime that one may be
  // nested in, and is no row of its own then, begins the next buffer of its thread.
  ApiRecord waiting_calls[kMostWaitingCalls];
  std::atomic<int64_t> alive_ns;  // CLOCK_MONOTONIC, some second before the process's end at most
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
