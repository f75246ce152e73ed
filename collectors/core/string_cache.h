// Which texts a writer has met, and under which id it has defined them in its records. By content:
// a program may put another text at the same address. Bounded: a program that never repeats a name
// makes the cache start over (ids go on, definitions are written again).
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "collectors/core/system.h"
#include "trace/recording/wire/format.h"

namespace trainprof::collectors {

// A text of the program, cut to kMaxStringBytes. Not owned.
struct Text {
  const char* data;
  uint32_t length;
  uint64_t hash;
  bool truncated;
};

uint64_t HashText(const char* data, uint32_t length);
// nullptr is the empty text.
Text MakeText(const char* zero_terminated);
Text MakeText(const char* data, uint32_t length, bool truncated);

struct CachedString {
  uint64_t hash;
  uint32_t id;          // 0: not defined in the records yet
  uint32_t plain_push;  // 0: none; see FindPlain
  uint32_t length;
  bool truncated;
  bool is_step;     // IsStepName
  bool is_of_loop;  // or IsXlaProgram: the thread that opens it runs the training's loop
  bool is_capture;  // the window's capture=NAME
  char text[1];     // zero-terminated

  uint32_t RecordWords() const { return 2 + (length + 7) / 8; }
};
// Writes its definition, RecordWords() words, and counts it where it is cut. Of the empty text
// there is none.
void PutString(const CachedString& string, uint64_t* words);

class StringCache {
 public:
  // `memory` (kOwnBytes) holds the first table; more is mapped as needed.
  static constexpr size_t kOwnBytes = 8 * 1024;
  void Init(void* memory);
  // Forgets everything, as if no text had been defined. Ids go on.
  void Reset();

  // nullptr when memory ran out. The result is valid until the next Find.
  CachedString* Find(const Text& text);
  // The same for a zero-terminated text; a hit costs one comparison.
  CachedString* Find(const char* text) {
    Recent& recent = RecentOf(text);
    if (recent.address == text && text != nullptr && IsSame(text, *recent.entry)) [[likely]] {
      recent.LearnPlain();
      return recent.entry;
    }
    return FindSlow(text);
  }
  // The short record, its ticks left out, that opens a range whose name is a text of at most kShort - 1 bytes that Find()
  // has met at that address, where nothing else is asked for; else nullptr, and Find() knows more.
  const uint32_t* FindPlain(const char* text) const {
    const Recent& recent = RecentOf(text);
    return recent.plain_address == text && StartsAs(text, recent) ? &recent.plain_push : nullptr;
  }
  // The next id is last_id + 1.
  void StartAfter(uint32_t last_id) { last_id_ = last_id; }
  uint32_t NextId() { return ++last_id_ == 0 ? ++last_id_ : last_id_; }

 private:
  static constexpr uint32_t kRecentSlots = 64;
  static constexpr uint32_t kShort = 32;
  struct alignas(64) Recent {
    char text[kShort] = {};
    const char* plain_address = NoAddress();  // there is no plain id
    const char* address = nullptr;
    CachedString* entry = nullptr;
    uint32_t plain_push = 0;
    uint32_t bytes = 0;  // a bit for each byte of the text, its zero included; 0: more than kShort

    void LearnPlain() {
      if (bytes == 0 || entry->plain_push == 0 || IsNearPageEnd(address)) return;
      plain_push = entry->plain_push;
      plain_address = address;
    }
  };
  // Where no text is.
  static const char* NoAddress() { return reinterpret_cast<const char*>(uintptr_t{1}); }
  struct Block {
    Block* next;
    size_t size;
  };

  // By its bytes' place in the table: so the compiler works it out once.
  const Recent& RecentOf(const char* text) const {
    static_assert((kRecentSlots & (kRecentSlots - 1)) == 0 && sizeof(Recent) == 64);
    const uintptr_t at = reinterpret_cast<uintptr_t>(text) * 8 % (kRecentSlots * sizeof(Recent));
    return *reinterpret_cast<const Recent*>(reinterpret_cast<const char*>(recent_) + at / 64 * 64);
  }
  Recent& RecentOf(const char* text) {
    return const_cast<Recent&>(static_cast<const StringCache*>(this)->RecentOf(text));
  }
  // kShort bytes from there on may lie on two pages.
  static bool IsNearPageEnd(const char* text) {
    constexpr uintptr_t kPage = 4096;
    return reinterpret_cast<uintptr_t>(text) % kPage > kPage - kShort;
  }
#if defined(__SSE2__)
  // A bit for each byte of 16 that differs.
  __attribute__((no_sanitize("address"))) static uint32_t Others(const char* text,
                                                                 const char* aligned) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
    const __m128i b = _mm_load_si128(reinterpret_cast<const __m128i*>(aligned));
    return ~static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)));
  }
#endif
  // Whether the zero-terminated text is the one of a slot with a plain id. As IsSame() reads what is behind its end.
  __attribute__((no_sanitize("address"))) static bool StartsAs(const char* text,
                                                               const Recent& recent) {
#if defined(__SSE2__)
    // All that lie behind the first 16 are among them.
    const uint32_t left = recent.bytes & Others(text, recent.text);
    if (left == 0) [[likely]] {
      return true;
    }
    return (left & 0xFFFF) == 0 && (left >> 16 & Others(text + 16, recent.text + 16)) == 0;
#else
    return IsSame(text, *recent.entry);
#endif
  }
  // Whether the zero-terminated text is the entry's. Short ones by words: what a text that has become
  // shorter has behind its end is read, too, but on its own page alone, and decides nothing.
  __attribute__((no_sanitize("address"))) static bool IsSame(const char* text,
                                                             const CachedString& entry) {
    const uint32_t bytes = entry.length + 1;  // with the zero
    if (bytes > kShort || IsNearPageEnd(text)) [[unlikely]] {
      return strcmp(text, entry.text) == 0;
    }
    if (bytes < 4) {
      return text[0] == entry.text[0] && text[bytes / 2] == entry.text[bytes / 2] &&
             text[bytes - 1] == entry.text[bytes - 1];
    }
    if (bytes < 8) {
      return SameWord<uint32_t>(text, entry.text) &&
             SameWord<uint32_t>(text + bytes - 4, entry.text + bytes - 4);
    }
    for (uint32_t at = 0; at + 8 < bytes; at += 8) {
      if (!SameWord<uint64_t>(text + at, entry.text + at)) return false;
    }
    return SameWord<uint64_t>(text + bytes - 8, entry.text + bytes - 8);
  }
  template <class Word>
  __attribute__((no_sanitize("address"))) static bool SameWord(const char* a, const char* b) {
    Word words[2];
    __builtin_memcpy(&words[0], a, sizeof(Word));
    __builtin_memcpy(&words[1], b, sizeof(Word));
    return words[0] == words[1];
  }
  CachedString* FindSlow(const char* text);
  CachedString* Add(const Text& text, uint32_t slot);
  bool Grow();
  void* Take(size_t bytes);
  void ReleaseBlocks();

  char* own_;
  CachedString** slots_;
  uint32_t slot_count_;  // a power of two
  uint32_t used_;
  uint32_t last_id_;
  char* free_;
  char* free_end_;
  size_t mapped_bytes_;
  Block* blocks_;
  Recent recent_[kRecentSlots];
};

// A zeroed writer, and behind it the memory of its strings; or nullptr. Never freed.
template <class Writer>
Writer* AllocateWriter(void** string_memory) {
  constexpr size_t kStringsAt = (sizeof(Writer) + 63) / 64 * 64;
  auto* memory = static_cast<char*>(AllocatePages(kStringsAt + StringCache::kOwnBytes));
  if (memory == nullptr) return nullptr;
  *string_memory = memory + kStringsAt;
  return reinterpret_cast<Writer*>(memory);  // zero is its empty state
}

}  // namespace trainprof::collectors
