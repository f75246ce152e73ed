// Open-addressing interner over one character pool; about 12 bytes a string beside its text.
#include "trace/string_table.h"

#include <cstring>

namespace trainprof {
namespace {

constexpr size_t kFirstSlots = 1 << 12;  // kineto traces hold some 1,000 to 30,000 distinct strings

uint64_t Fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Multiply-fold over 8-byte words (as wyhash does); the last word overlaps.
uint64_t Hash(std::string_view s) {
  constexpr uint64_t kMix = 0xD6E8FEB86659FD93ull;
  constexpr uint64_t kTail = 0xA0761D6478BD642Full;
  uint64_t h = s.size() * 0x9E3779B97F4A7C15ull;
  uint64_t word = 0;
  if (s.size() >= sizeof(word)) {
    for (size_t i = 0; i + sizeof(word) <= s.size(); i += sizeof(word)) {
      std::memcpy(&word, s.data() + i, sizeof(word));
      h = Fold(h ^ word, kMix);
    }
    std::memcpy(&word, s.data() + s.size() - sizeof(word), sizeof(word));
  } else {
    for (char c : s) word = word << 8 | static_cast<uint8_t>(c);
  }
  return Fold(h ^ word, kTail);
}

}  // namespace

StringTable::StringTable() : begin_{0}, slots_(kFirstSlots, 0) { Intern(""); }

size_t StringTable::Slot(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = (hash >> 20) & mask;
  while (slots_[slot] != 0) {
    const uint32_t id = slots_[slot] - 1;
    if (hashes_[id] == hash && View(StringId{id}) == text) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

StringId StringTable::Intern(std::string_view text) {
  const uint64_t hash = Hash(text);
  const size_t slot = Slot(text, hash);
  if (slots_[slot] != 0) return StringId{slots_[slot] - 1};
  const auto id = static_cast<uint32_t>(size());
  pool_.insert(pool_.end(), text.begin(), text.end());
  begin_.push_back(pool_.size());
  hashes_.push_back(hash);
  slots_[slot] = id + 1;
  if (size() * 2 > slots_.size()) Grow();
  return StringId{id};
}

StringId StringTable::Find(std::string_view text) const {
  const size_t slot = Slot(text, Hash(text));
  return slots_[slot] == 0 ? kEmptyString : StringId{slots_[slot] - 1};
}

void StringTable::Grow() {
  slots_.assign(slots_.size() * 2, 0);
  const size_t mask = slots_.size() - 1;
  for (uint32_t id = 0; id < hashes_.size(); ++id) {
    size_t slot = (hashes_[id] >> 20) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = id + 1;
  }
}

}  // namespace trainprof
