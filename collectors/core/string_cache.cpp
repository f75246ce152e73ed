#include "collectors/core/string_cache.h"

#include "collectors/core/process_state.h"
#include "collectors/core/system.h"
#include "trace/base/names.h"

namespace trainprof::collectors {
namespace {

constexpr uint32_t kFirstSlots = 256;  // 2 KiB of the own memory
constexpr uint32_t kMostStrings = 16 * 1024;
constexpr size_t kMostBytes = 4 * 1024 * 1024;
constexpr size_t kBlockBytes = 64 * 1024;

uint64_t Mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t HashText(const char* data, uint32_t length) {
  constexpr uint64_t kFirst = 0xD6E8FEB86659FD93;
  constexpr uint64_t kSecond = 0xA0761D6478BD642F;
  uint64_t hash = length * kFirst;
  uint32_t i = 0;
  for (; i + 8 <= length; i += 8) {
    uint64_t word;
    memcpy(&word, data + i, 8);
    hash = Mix(hash ^ word, kFirst);
  }
  uint64_t tail = 0;
  for (; i < length; ++i) tail = tail << 8 | static_cast<unsigned char>(data[i]);
  return Mix(hash ^ tail ^ kSecond, kSecond);
}

Text MakeText(const char* data, uint32_t length, bool truncated) {
  return {data, length, HashText(data, length), truncated};
}

Text MakeText(const char* text) {
  if (text == nullptr) text = "";
  const size_t length = strnlen(text, recording::kMaxStringBytes + 1);
  if (length <= recording::kMaxStringBytes) {
    return MakeText(text, static_cast<uint32_t>(length), false);
  }
  return MakeText(text, recording::kMaxStringBytes, true);
}

void PutString(const CachedString& string, uint64_t* words) {
  const uint32_t count = string.RecordWords();
  words[count - 1] = 0;  // the padding
  words[0] = recording::PackHead(recording::RecordType::kString, count, 0, string.id);
  words[1] = string.length | (string.truncated ? recording::kStringTruncated : 0);
  memcpy(words + 2, string.text, string.length);
  if (string.truncated) {
    g_runtime.state->segment->truncated_strings.fetch_add(1, std::memory_order_relaxed);
  }
}

void StringCache::Init(void* memory) {
  own_ = static_cast<char*>(memory);
  last_id_ = 0;
  blocks_ = nullptr;
  Reset();
}

void StringCache::ReleaseBlocks() {
  while (blocks_ != nullptr) {
    Block* next = blocks_->next;
    ReleasePages(blocks_, blocks_->size);
    blocks_ = next;
  }
}

void StringCache::Reset() {
  ReleaseBlocks();
  memset(own_, 0, kFirstSlots * sizeof(CachedString*));
  for (Recent& recent : recent_) recent = {};
  slots_ = reinterpret_cast<CachedString**>(own_);
  slot_count_ = kFirstSlots;
  used_ = 0;
  free_ = own_ + kFirstSlots * sizeof(CachedString*);
  free_end_ = own_ + kOwnBytes;
  mapped_bytes_ = 0;
}

void* StringCache::Take(size_t bytes) {
  bytes = (bytes + 7) / 8 * 8;
  if (static_cast<size_t>(free_end_ - free_) < bytes) {
    const size_t size = bytes + sizeof(Block) > kBlockBytes ? bytes + sizeof(Block) : kBlockBytes;
    auto* block = static_cast<Block*>(AllocatePages(size));
    if (block == nullptr) return nullptr;
    *block = {blocks_, size};
    blocks_ = block;
    mapped_bytes_ += size;
    free_ = reinterpret_cast<char*>(block + 1);
    free_end_ = reinterpret_cast<char*>(block) + size;
  }
  void* result = free_;
  free_ += bytes;
  return result;
}

bool StringCache::Grow() {
  const uint32_t count = slot_count_ * 4;
  auto** slots = static_cast<CachedString**>(Take(count * sizeof(CachedString*)));
  if (slots == nullptr) return false;
  memset(static_cast<void*>(slots), 0, count * sizeof(CachedString*));
  for (uint32_t i = 0; i < slot_count_; ++i) {
    if (slots_[i] == nullptr) continue;
    uint32_t slot = static_cast<uint32_t>(slots_[i]->hash) & (count - 1);
    while (slots[slot] != nullptr) slot = (slot + 1) & (count - 1);
    slots[slot] = slots_[i];
  }
  slots_ = slots;
  slot_count_ = count;
  return true;
}

CachedString* StringCache::Add(const Text& text, uint32_t slot) {
  auto* entry = static_cast<CachedString*>(Take(offsetof(CachedString, text) + text.length + 1));
  if (entry == nullptr) return nullptr;
  entry->hash = text.hash;
  entry->id = 0;
  entry->plain_push = 0;
  entry->length = text.length;
  entry->truncated = text.truncated;
  memcpy(entry->text, text.data, text.length);
  entry->text[text.length] = 0;
  const std::string_view name(text.data, text.length);
  entry->is_step = IsStepName(name);
  entry->is_of_loop = entry->is_step || IsXlaProgram(name);
  entry->is_capture =
      g_runtime.options.capture[0] != 0 && strcmp(entry->text, g_runtime.options.capture) == 0;
  slots_[slot] = entry;
  ++used_;
  return entry;
}

CachedString* StringCache::Find(const Text& text) {
  if (used_ >= kMostStrings || mapped_bytes_ >= kMostBytes) Reset();
  if (used_ * 2 >= slot_count_ && !Grow()) return nullptr;
  uint32_t slot = static_cast<uint32_t>(text.hash) & (slot_count_ - 1);
  while (CachedString* entry = slots_[slot]) {
    if (entry->hash == text.hash && entry->length == text.length &&
        entry->truncated == text.truncated && memcmp(entry->text, text.data, text.length) == 0) {
      return entry;
    }
    slot = (slot + 1) & (slot_count_ - 1);
  }
  return Add(text, slot);
}

CachedString* StringCache::FindSlow(const char* text) {
  CachedString* entry = Find(MakeText(text));
  if (entry == nullptr || text == nullptr || entry->truncated) return entry;
  Recent& recent = RecentOf(text);
  recent = {};
  recent.address = text;
  recent.entry = entry;
  const uint32_t bytes = entry->length + 1;  // with the zero
  if (bytes <= kShort) {
    recent.bytes = static_cast<uint32_t>((uint64_t{1} << bytes) - 1);
    memcpy(recent.text, entry->text, bytes);
  }
  return entry;
}

}  // namespace trainprof::collectors
