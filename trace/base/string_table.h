// Interned strings: each distinct text is stored once and named by a StringId.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "trace/base/ids.h"

namespace trainprof {

// Whether two texts of one size are equal. Most texts here are short, and a call costs more.
[[gnu::always_inline]] inline bool SameBytes(const char* a, const char* b, size_t size) {
  const auto word_differs = [&]<class Word>(size_t at, Word x) {
    Word y;
    std::memcpy(&x, a + at, sizeof(Word));
    std::memcpy(&y, b + at, sizeof(Word));
    return x != y;
  };
  if (size >= 8) {  // the last words overlap
    for (size_t at = 0; at + 8 < size; at += 8) {
      if (word_differs(at, uint64_t{})) return false;
    }
    return !word_differs(size - 8, uint64_t{});
  }
  if (size >= 4) return !word_differs(0, uint32_t{}) && !word_differs(size - 4, uint32_t{});
  for (size_t at = 0; at < size; ++at) {
    if (a[at] != b[at]) return false;
  }
  return true;
}

class StringTable {
 public:
  StringTable();

  // O(length). The same text gives the same id; "" is kEmptyString.
  StringId Intern(std::string_view text);
  // The id of a text that was interned, or kEmptyString when it never was.
  StringId Find(std::string_view text) const;

  // Valid until the next Intern().
  std::string_view View(StringId id) const {
    return {pool_.data() + begin_[Index(id)], begin_[Index(id) + 1] - begin_[Index(id)]};
  }
  size_t size() const { return begin_.size() - 1; }
  size_t size_bytes() const {
    return pool_.capacity() + begin_.capacity() * sizeof(uint64_t) +
           slots_.capacity() * sizeof(Slot);
  }

 private:
  // Open addressing. The part of the hash that it keeps spares most comparisons of texts.
  struct Slot {
    uint32_t hash = 0;
    uint32_t id_plus_1 = 0;  // 0: free
  };
  size_t SlotOf(std::string_view text, uint32_t hash) const;
  void Grow();

  std::vector<char> pool_;
  std::vector<uint64_t> begin_;  // begin_[i]..begin_[i+1] of pool_ is string i
  std::vector<Slot> slots_;      // a power of two, at most half of them taken
};

}  // namespace trainprof
