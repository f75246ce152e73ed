// Interned strings: each distinct text is stored once and named by a StringId.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/ids.h"

namespace trainprof {

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
           hashes_.capacity() * sizeof(uint64_t) + slots_.capacity() * sizeof(uint32_t);
  }

 private:
  size_t Slot(std::string_view text, uint64_t hash) const;
  void Grow();

  std::vector<char> pool_;
  std::vector<uint64_t> begin_;   // begin_[i]..begin_[i+1] of pool_ is string i
  std::vector<uint64_t> hashes_;  // one a string
  std::vector<uint32_t> slots_;   // open addressing: id + 1, 0 is free
};

}  // namespace trainprof
