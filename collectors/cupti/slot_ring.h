// The buffers that CUPTI is given: slots of one mapped file (slot_file.h), taken and delivered on
// any thread without a lock, emptied and cleaned by one thread of ours, which also keeps free ones
// ahead so that no thread of the program waits for the disk.
#pragma once

#include "collectors/cupti/slot_file.h"

namespace trainprof::collectors {

class SlotRing {
 public:
  // Makes the file in `folder`, or beside the segment where that is "" or has no room. Where it cannot
  // be made or mapped there either (*file_error, a negative errno) the slots are private memory: a kill
  // then loses what is in them. False: no memory.
  bool Open(const char* segment_path, const char* folder, int* file_error);
  SlotFileHeader* header() { return header_; }
  bool is_file() const { return is_file_; }
  const char* path() const { return path_; }  // of the file

  // CUPTI asks for a buffer of kSlotBytes zeros. Out of slots it gets nullptr where it `may_refuse`
  // that; else a delivered one whose records are not rows yet (they are lost, and counted), or
  // memory beyond the bound.
  char* Take(bool may_refuse);
  // False when the buffer lies beyond the bound: it is released, its records are lost and counted; or
  // when it is another client's, which is left alone.
  bool Deliver(char* buffer, uint32_t valid_bytes);

  // Our thread: a delivered slot to be emptied, oldest first, or nullptr; then Recycle it.
  Slot* NextDelivered();
  const char* DataOf(const Slot* slot) const;
  // Whether something was delivered that is not rows yet.
  bool HasDelivered() const;
  // visit(slot, data) of each that CUPTI holds; it may be delivered, and cleaned, meanwhile.
  template <class Visit>
  void ForEachHeld(Visit visit) const {
    const uint32_t count = header_->slots.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) {
      const Slot& slot = header_->slot[i];
      if (slot.state.load(std::memory_order_acquire) == SlotState::kHeld) visit(slot, DataAt(i));
    }
  }
  // Whether a buffer that CUPTI has begins with a record. Any thread may ask.
  bool HoldsRecords() const;
  void Recycle(Slot* slot);
  // Makes new slots where few are free. False when that failed or the file is at its bound.
  bool KeepAhead();

  // Whether CUPTI holds so many that it may soon ask in vain: a flush would bring them back.
  bool RunsLow() const { return held_.load(std::memory_order_relaxed) >= kMostSlots / 4 * 3; }

  uint64_t lost_bytes() const { return lost_bytes_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  uint32_t slots() const { return header_->slots.load(std::memory_order_relaxed); }

 private:
  int MakeFile(int mode);
  bool MakeElsewhere(const char* folder, const char* beside_segment);
  char* TakeFree();
  char* StealDelivered();
  char* TakeBeyond();
  bool ReleaseBeyond(char* buffer);
  bool Grow(uint32_t count);
  uint32_t CountFree() const;
  char* DataAt(uint32_t index) const {
    return reinterpret_cast<char*>(header_) + uint64_t{kSlotBytes} * (index + 1);
  }

  SlotFileHeader* header_;
  bool is_file_;
  uint32_t most_slots_;
  std::atomic<uint32_t> growing_;
  std::atomic<uint32_t> held_;       // slots that CUPTI has
  std::atomic<uint32_t> next_take_;  // where the search for a free one begins
  static constexpr uint32_t kMostBeyond = 1024;
  std::atomic<char*> beyond_[kMostBeyond];  // what CUPTI has beyond the bound
  std::atomic<uint64_t> lost_bytes_;
  std::atomic<uint64_t> refused_;
  char path_[kMostSlotPath];
};

}  // namespace trainprof::collectors
