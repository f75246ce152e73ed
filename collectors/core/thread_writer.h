// Writes one thread's records into its chunks. Exactly one thread uses a writer at a time; writers
// of threads that have ended are handed to new ones, with their half-filled chunk and their
// strings.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/core/full_chunks.h"
#include "collectors/core/process_state.h"
#include "collectors/core/string_cache.h"
#include "collectors/core/window.h"
#include "trace/recording/wire/rows.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {

// Ranges that are open in one domain on one thread, and which of them are in the recording: only
// their pops may be recorded.
struct DepthStack {
  static constexpr uint32_t kMaxDepth = 1024;

  DepthStack* next;
  uint32_t domain;
  uint32_t depth;
  uint64_t recorded[kMaxDepth / 64];
  uint64_t capture[kMaxDepth / 64];

  static bool Test(const uint64_t* bits, uint32_t level) {
    return (bits[level / 64] >> (level % 64) & 1) != 0;
  }
  static void Assign(uint64_t* bits, uint32_t level, bool value) {
    const uint64_t bit = uint64_t{1} << (level % 64);
    bits[level / 64] = value ? bits[level / 64] | bit : bits[level / 64] & ~bit;
  }
};

// What an event carries besides its name; zero types mean "absent".
struct Attributes {
  uint32_t category = 0;
  uint32_t color = 0;
  uint8_t color_type = 0;
  uint8_t payload_type = 0;
  uint64_t payload = 0;
  // A structured payload (of a schema); not part of Any(). Not owned.
  uint64_t schema = 0;  // 0: none
  const void* structure = nullptr;
  uint32_t structure_bytes = 0;

  bool Any() const { return category != 0 || color_type != 0 || payload_type != 0; }
  // Of the record that holds the structured payload.
  uint32_t StructureWords() const { return 3 + (structure_bytes + 7) / 8; }
};

// A field of a payload schema, in NVTX's numbers.
struct SchemaField {
  uint64_t type;
  uint16_t flags;
  uint32_t offset;
  uint32_t detail;
  Text name;
};

// Numbers are unique in a domain (of that number).
struct SchemaInfo {
  uint64_t number;
  uint32_t domain;
  uint32_t static_bytes;  // 0: unknown
  uint16_t packing;       // 0: natural alignment
  uint16_t type;
  Text name;
};

// A name of one value of an enumeration.
struct EnumEntry {
  uint64_t value;
  bool is_flag;
  Text name;
};

// A domain of the program: its number in the records and its name. Never freed.
struct Domain {
  uint32_t number;
  Text name;
};

class ThreadWriter {
 public:
  // The calling thread's writer, ready for one event, or nullptr: the call comes from a signal
  // handler inside another one of ours, or there is no memory (counted). End with Leave().
  static ThreadWriter* Enter();
  void Leave() {
    ArmPlain();
    Exit(generation_);
  }
  // The same for a thread that has recorded before; nullptr for others.
  static ThreadWriter* EnterAgain();

  // A range in the default domain of which nothing is to be recorded but when it begins and ends, as nearly always:
  // its name has been met at that address, no window is configured, nothing else is due. *level is what Push and Pop
  // give. False: nothing was done, and is to be done by those.
  static bool PushPlain(const char* name, int* level);
  static bool PopPlain(int* level);

  // For what hooks remember of the thread: zeros at first, and in forked children.
  static constexpr size_t kHookBytes = 1280;
  void* hook_memory() { return hook_memory_; }

  // `name` is a Text or a zero-terminated string. The results are what NVTX returns: the level
  // (from 0) of the range that is pushed or popped, a range's id.
  template <class Name>
  int Push(const Domain* domain, const Name& name, const Attributes& attributes);
  int Pop(const Domain* domain);
  template <class Name>
  void Mark(const Domain* domain, const Name& name, const Attributes& attributes);
  template <class Name>
  uint64_t Start(const Domain* domain, const Name& name, const Attributes& attributes);
  void End(uint64_t range_id);

  // A range of this thread that ended just now, in ns of CLOCK_MONOTONIC. `stack` may be nullptr; its
  // text is a line a frame (FORMAT.md, record 24). What began before the window is left out.
  void Range(const Domain* domain, const Text& name, const Text* stack, int64_t begin_ns,
             int64_t end_ns);
  // A step begins, of a program that does not name its steps by ranges: opens and closes the window.
  // Whether it opened.
  bool StepBegins();
  void Fact(const Text& key, const Text& value);
  // What the thread has used of the CPU, if it steps: around a call that waits, to tell that apart from what it uses
  // before and behind it. `now`: else where the last look is some time ago.
  void LookAtUsage(bool now) {
    const uint64_t ticks = recording::ReadTicks(g_runtime.clock);
    if (UsageIsDue(ticks) || (now && steps_)) WriteUsage(ticks);
  }

  void NameCategory(const Domain* domain, uint32_t category, const Text& name);
  void NameThread(uint32_t tid, const Text& name);

  // thread_writer_payloads.cpp: the layout of structured payloads, at most kMostFields.
  static constexpr uint32_t kMostFields = 64;
  void Schema(const SchemaInfo& schema, const SchemaField* fields, uint32_t count);
  void Enum(uint64_t number, uint32_t domain, uint32_t value_bytes, const Text& name,
            const EnumEntry* entries, uint32_t count);

  // thread_writer_stacks.cpp: a call's stack (return addresses, innermost first, at most
  // kMostFrames), and a file with code that such addresses lie in. `script`: an interpreter's own
  // stack, by which the outer ones of these frames run it; 0: none.
  static constexpr uint32_t kMostFrames = 128;
  void CallStack(const uint64_t* frames, uint32_t count, uint32_t correlation,
                 recording::CallDomain domain, uint32_t script);
  // The id of a text that has that hash; 0: not known any more. And: defines it.
  uint32_t FindScript(uint64_t hash) const {
    const KnownStack& known = known_scripts_[hash % kKnownStacks];
    return known.hash == hash ? known.id : 0;
  }
  uint32_t AddScript(uint64_t hash, const Text& text);
  // Where a range of that name (its id) is opened, as CallStack; without frames, by the script alone.
  void NameStack(uint32_t name, const uint64_t* frames, uint32_t count, uint32_t script);
  void Module(const char* path, const recording::ModuleFacts& facts);

  // Life of a writer, see writer_pool.cpp.
  void Create(uint32_t number, uint32_t generation, void* string_memory);
  void BecomeChilds(uint32_t number, uint32_t generation);  // after fork, in the child
  void ThreadEnds();                                        // ready for another thread
  void BeginInitialGap();
  uint32_t generation() const { return generation_; }
  ThreadWriter* next_free() const { return next_free_.load(std::memory_order_relaxed); }
  void set_next_free(ThreadWriter* next) { next_free_.store(next, std::memory_order_relaxed); }
  // False when the writer is in use further down this thread's stack.
  bool TryEnter() {
    if (ready_ == kBusy) return false;
    ready_ = kBusy;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return true;
  }
  // Counts the plain ranges that are open among the others.
  void Settle();

 private:
  static constexpr uint32_t kBusy = UINT32_MAX;  // no generation
  static constexpr uint64_t kPopBytes = 16;
  static constexpr uint32_t kMostPlain = 32;  // open at a time

  // The writer of a thread that has recorded in this process, as it was left; nullptr: none, it is in use, or
  // events need a closer look (ProcessState::plain).
  static ThreadWriter* EnterPlain(uint32_t* generation);
  void Exit(uint32_t generation) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ready_ = generation;
  }
  // How many, up to where, and when, there may be plain ranges.
  void ArmPlain() {
    const uint32_t depth = default_stack_.depth;
    const bool may =
        chunk_ != nullptr && last_ticks_ != 0 && depth <= DepthStack::kMaxDepth - kMostPlain;
    plain_level_ = depth;
    plain_most_ = may ? depth + kMostPlain : 0;
    plain_end_ = reinterpret_cast<intptr_t>(end_) -
                 static_cast<intptr_t>(reserve_bytes_ + kMostPlain * kPopBytes + 8);
    plain_until_ = last_ticks_ + (uint64_t{1} << recording::kShortTicksBits);
    if (next_clock_ < plain_until_) plain_until_ = next_clock_;
    if (steps_ && next_usage_ < plain_until_) plain_until_ = next_usage_;
    if (plain_until_ < last_ticks_) plain_until_ = last_ticks_;
  }
  // Writes a plain record, without a look at the room; false: not one now.
  bool WritePlain(uint32_t record);

  // Whether the window and the size bound let an event be recorded; counts it when they do not.
  // `name` may be nullptr: memory ran out.
  bool Admit(const CachedString* name, bool opens_range);
  // Kept longest: ranges at the outer two levels of a thread, steps, and what stands directly in
  // them. nullptr: a definition, kept as long.
  bool IsPhase(const CachedString* name) const;
  void Drop(bool detail);
  void WriteGap(recording::RecordType type, uint64_t ticks);
  void WriteGap(WindowChange change);

  // Whether details may still be recorded; counts it when not.
  bool AdmitDetail();
  // The id of these frames, defined if need be, with room for `words` more. 0: no room.
  uint32_t DefineStack(const uint64_t* frames, uint32_t count, uint32_t words);
  void WriteRecord(recording::RecordType type, uint32_t domain, uint32_t id, const void* words,
                   uint32_t word_count);

  // The id of a text, defined if need be. 0: the empty text; false: no room.
  bool IdOf(const Text& text, uint32_t* id);
  // Its room must be there already.
  void WriteStructure(const Attributes& attributes);

  bool Define(CachedString* entry, const CachedString* used_by);
  // Tells who watches the names of ranges of one that is defined now, and gives its entry. nullptr: no room.
  template <class Name>
  CachedString* TellOfName(const Domain* domain, const Name& name, CachedString* found);
  bool DefineDomain(const Domain* domain, const CachedString* used_by);
  bool IsDefined(const Domain* domain) const {
    return domain->number == 0 || DepthStack::Test(domain_defined_, domain->number);
  }
  DepthStack* FindStack(uint32_t domain);
  DepthStack* StackOf(uint32_t domain);  // makes it; nullptr when memory ran out

  // Room for `words`, while the pops of all open recorded ranges keep theirs.
  bool Room(uint32_t words, const CachedString* used_by) {
    // Both are null before the first chunk.
    if (static_cast<int64_t>(words * 8 + reserve_bytes_) <= end_ - cursor_) [[likely]] {
      return true;
    }
    return MakeRoom(words, used_by);
  }
  bool MakeRoom(uint32_t words, const CachedString* used_by);
  bool NewChunk(uint64_t bytes, const CachedString* used_by);
  void Announce();
  void Commit(uint32_t words) {
    cursor_ += words * 8;
    chunk_->committed.store(static_cast<uint64_t>(cursor_ - payload_), std::memory_order_release);
  }
  uint64_t* Words() { return reinterpret_cast<uint64_t*>(cursor_); }
  // The ticks since the last timed record, when one short word can hold them.
  bool FitsShort(uint64_t ticks) const {
    return ticks - last_ticks_ < uint64_t{1} << recording::kShortTicksBits;
  }
  void WriteClock(uint64_t ticks);
  bool UsageIsDue(uint64_t ticks) const { return steps_ && ticks >= next_usage_; }
  void WriteUsage(uint64_t ticks);
  // Writes a push, a start or a mark; *entry is the name's, for the caller's bookkeeping.
  template <class Name>
  bool WriteNamed(recording::RecordType type, const Domain* domain, const Name& name,
                  const Attributes& attributes, uint64_t range_id, CachedString** entry);

  // What a plain range needs, in one line of the cache. plain_level_: ranges that are open in the default domain, those
  // that its stack counts and, inside them, plain ones, which it does not count (Settle). No more of them are opened at
  // plain_most_, behind plain_end_ of the chunk, nor written at or after plain_until_. Set when the writer is left.
  uint32_t plain_level_;
  uint32_t plain_most_;
  intptr_t plain_end_;
  uint64_t plain_until_;
  uint64_t last_ticks_;  // of the last timed record in this chunk; 0: none
  char* cursor_;
  char* payload_;  // first byte of the chunk's payload
  recording::ChunkHeader* chunk_;
  uint32_t generation_;
  uint32_t ready_;  // generation_; kBusy: it is in use

  char* end_;  // of the room that may be used now; == cursor_ before the thread is announced
  uint64_t reserve_bytes_;  // for pops of open recorded ranges
  uint64_t next_clock_;     // ticks at which a clock record is due
  uint64_t next_usage_;     // the same of what a thread that steps has used
  uint32_t depth_;          // open ranges in all domains
  uint32_t step_depth_;     // depth_ just inside the open step's range; 0: none is open
  uint32_t number_;
  uint32_t sequence_;
  uint32_t chunk_bytes_;  // preferred size of the next chunk
  uint64_t ranges_started_;
  std::atomic<ThreadWriter*> next_free_;
  bool announced_;    // the THREAD record of the present thread is written
  bool steps_;        // the present thread has begun a step
  bool lost_detail_;  // why the last MakeRoom failed: thinned, or nothing left
  FullChunks full_;
  uint64_t domain_defined_[(recording::kMaxDomains + 64) / 64];
  DepthStack default_stack_;
  DepthStack* other_stacks_;
  // Stacks that were written last, by hash: the next same one refers to its id.
  static constexpr uint32_t kKnownStacks = 256;
  struct KnownStack {
    uint64_t hash;
    uint32_t id;
  };
  KnownStack known_stacks_[kKnownStacks];
  KnownStack known_scripts_[kKnownStacks];
  alignas(8) char hook_memory_[kHookBytes];
  StringCache strings_;
};

extern TRAINPROF_TLS ThreadWriter* t_writer;  // this thread's; see writer_pool.cpp

inline ThreadWriter* ThreadWriter::EnterPlain(uint32_t* generation) {
  ThreadWriter* writer = t_writer;
  *generation = g_runtime.state->plain.load(std::memory_order_relaxed);
  if (writer == nullptr || writer->ready_ != *generation) [[unlikely]] {
    return nullptr;
  }
  writer->ready_ = kBusy;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return writer;
}

// Has the line of that address brought here to be written; any address will do.
inline void PrefetchToWrite(const char* address) {
#if defined(__x86_64__)
  // Not __builtin_prefetch: of the oldest machines' instructions that is one that has it brought to be read.
  asm volatile("prefetchw %0" : : "m"(*address));
#else
  __builtin_prefetch(address, 1);
#endif
}

inline bool ThreadWriter::WritePlain(uint32_t record) {
  const uint64_t ticks = recording::ReadTsc();
  uint64_t since;
  const bool went_back = __builtin_sub_overflow(ticks, last_ticks_, &since);
  if (went_back || ticks >= plain_until_) [[unlikely]] {
    return false;
  }
  // The lines that are written next have been read by the supervisor's core, and are to be had back in time.
  PrefetchToWrite(cursor_ + 512);
  *Words() = recording::WithTicks(record, since);
  last_ticks_ = ticks;
  Commit(1);
  return true;
}

inline bool ThreadWriter::PushPlain(const char* name, int* level) {
  uint32_t generation;
  ThreadWriter* writer = EnterPlain(&generation);
  if (writer == nullptr) [[unlikely]] {
    return false;
  }
  const uint32_t* record = writer->strings_.FindPlain(name);
  const uint32_t open = writer->plain_level_;
  const bool is_written = record != nullptr && open < writer->plain_most_ &&
                          reinterpret_cast<intptr_t>(writer->cursor_) <= writer->plain_end_ &&
                          writer->WritePlain(*record);
  if (is_written) [[likely]] {
    writer->plain_level_ = open + 1;
    *level = static_cast<int>(open);
  }
  writer->Exit(generation);
  return is_written;
}

inline bool ThreadWriter::PopPlain(int* level) {
  uint32_t generation;
  ThreadWriter* writer = EnterPlain(&generation);
  if (writer == nullptr) [[unlikely]] {
    return false;
  }
  // Its room was kept when it was pushed.
  const uint32_t open = writer->plain_level_;
  const bool is_written =
      open > writer->default_stack_.depth &&
      writer->WritePlain(recording::PackShort(recording::RecordType::kShortPop, 0));
  if (is_written) [[likely]] {
    writer->plain_level_ = open - 1;
    *level = static_cast<int>(open - 1);
  }
  writer->Exit(generation);
  return is_written;
}

}  // namespace trainprof::collectors
