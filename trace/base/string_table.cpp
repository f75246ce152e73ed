// Open-addressing interner over one character pool; 24 to 40 bytes a string beside its text.
#include "trace/base/string_table.h"

namespace trainprof {
namespace {

constexpr size_t kFirstSlots = 1 << 12;  // kineto traces hold some 1,000 to 30,000 distinct strings

uint64_t Fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

template <class Word>
uint64_t Load(const char* p) {
  Word word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// Multiply-fold over 16 bytes a step (as wyhash does); the last words overlap.
uint32_t Hash(std::string_view s) {
  constexpr uint64_t kMix = 0xD6E8FEB86659FD93ull;
  constexpr uint64_t kTail = 0xA0761D6478BD642Full;
  const char* p = s.data();
  const char* const end = p + s.size();
  uint64_t h = s.size() * 0x9E3779B97F4A7C15ull;
  uint64_t first = 0;
  uint64_t last = 0;
  if (s.size() >= 8) {
    for (; end - p > 16; p += 16) h = Fold(Load<uint64_t>(p) ^ kMix, Load<uint64_t>(p + 8) ^ h);
    first = Load<uint64_t>(s.size() >= 16 ? end - 16 : p);
    last = Load<uint64_t>(end - 8);
  } else if (s.size() >= 4) {
    first = Load<uint32_t>(p);
    last = Load<uint32_t>(end - 4);
  } else if (!s.empty()) {
    first = Load<uint8_t>(p) | Load<uint8_t>(p + s.size() / 2) << 8;
    last = Load<uint8_t>(end - 1);
  }
  return static_cast<uint32_t>(Fold(Fold(first ^ kMix, last ^ h), kTail));
}

}  // namespace

StringTable::StringTable() : begin_{0}, slots_(kFirstSlots) { Intern(""); }

// Where the text is, or the free slot where it belongs.
size_t StringTable::SlotOf(std::string_view text, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at].id_plus_1 != 0; at = (at + 1) & mask) {
    if (slots_[at].hash != hash) continue;
    const std::string_view other = View(StringId{slots_[at].id_plus_1 - 1});
    if (other.size() == text.size() && SameBytes(other.data(), text.data(), text.size())) break;
  }
  return at;
}

StringId StringTable::Intern(std::string_view text) {
  const uint32_t hash = Hash(text);
  Slot& slot = slots_[SlotOf(text, hash)];
  if (slot.id_plus_1 != 0) return StringId{slot.id_plus_1 - 1};
  const auto id = static_cast<uint32_t>(size());
  pool_.insert(pool_.end(), text.begin(), text.end());
  begin_.push_back(pool_.size());
  slot = {hash, id + 1};
  if (size() * 2 > slots_.size()) Grow();
  return StringId{id};
}

StringId StringTable::Find(std::string_view text) const {
  const Slot& slot = slots_[SlotOf(text, Hash(text))];
  return slot.id_plus_1 == 0 ? kEmptyString : StringId{slot.id_plus_1 - 1};
}

void StringTable::Grow() {
  std::vector<Slot> larger(slots_.size() * 2);
  const size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.id_plus_1 == 0) continue;
    size_t at = slot.hash & mask;
    while (larger[at].id_plus_1 != 0) at = (at + 1) & mask;
    larger[at] = slot;
  }
  slots_ = std::move(larger);
}

}  // namespace trainprof
