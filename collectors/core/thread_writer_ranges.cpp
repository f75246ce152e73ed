// The part of a thread's records that is known only when it has ended: whole ranges, and what was
// found out of the program.
#include "collectors/core/segment_file.h"
#include "collectors/core/thread_writer.h"

namespace trainprof::collectors {

using recording::RecordType;

namespace {
constexpr uint32_t kRangeWords = 5;
constexpr uint32_t kFactWords = 2;
}  // namespace

void ThreadWriter::Range(const Domain* domain, const Text& name, const Text* stack,
                         int64_t begin_ns, int64_t end_ns) {
  ProcessState& state = *g_runtime.state;
  const uint32_t gate = state.gate.load(std::memory_order_relaxed);
  if (gate != 0) [[unlikely]] {
    if (!Admit(strings_.Find(name), false)) return;
    if (begin_ns < state.window_opened_ns.load(std::memory_order_relaxed)) {
      if (state.segment != nullptr) {
        state.segment->cut_by_window.fetch_add(1, std::memory_order_relaxed);
      }
      return;
    }
  }
  uint32_t name_id = 0;
  uint32_t stack_id = 0;
  // What hooks name, they have looked up the stack of.
  const CachedString* known = domain->number == 0 ? strings_.Find(name) : nullptr;
  const bool is_new = known != nullptr && known->id == 0;
  const bool defined = (IsDefined(domain) || DefineDomain(domain, nullptr)) &&
                       IdOf(name, &name_id) && (stack == nullptr || IdOf(*stack, &stack_id));
  const auto tell = g_runtime.on_new_name.load(std::memory_order_acquire);
  if (is_new && name_id != 0 && tell != nullptr) tell(*this, *domain, name_id);
  if (!defined || !Room(kRangeWords, nullptr)) return Drop(lost_detail_);
  const uint64_t ticks = recording::ReadTicks(g_runtime.clock);
  const uint64_t words[] = {ticks, static_cast<uint64_t>(begin_ns), static_cast<uint64_t>(end_ns),
                            stack_id};
  WriteRecord(RecordType::kRange, domain->number, name_id, words, kRangeWords - 1);
  if (ticks >= next_clock_) WriteClock(ticks);
  if (UsageIsDue(ticks)) WriteUsage(ticks);
}

void ThreadWriter::Fact(const Text& key, const Text& value) {
  uint32_t key_id = 0;
  uint32_t value_id = 0;
  if (!IdOf(key, &key_id) || !IdOf(value, &value_id) || !Room(kFactWords, nullptr)) return;
  const uint64_t word = value_id;
  WriteRecord(RecordType::kFact, 0, key_id, &word, kFactWords - 1);
}

void ThreadWriter::NameCategory(const Domain* domain, uint32_t category, const Text& name) {
  if (!IsDefined(domain) && !DefineDomain(domain, nullptr)) return;
  CachedString* entry = strings_.Find(name);
  if (entry == nullptr || (entry->id == 0 && !Define(entry, nullptr)) || !Room(2, nullptr)) return;
  uint64_t* words = Words();
  words[0] = PackHead(RecordType::kCategory, 2, domain->number, entry->id);
  words[1] = category;
  Commit(2);
}

void ThreadWriter::NameThread(uint32_t tid, const Text& name) {
  CachedString* entry = strings_.Find(name);
  if (entry == nullptr || (entry->id == 0 && !Define(entry, nullptr)) || !Room(2, nullptr)) return;
  uint64_t* words = Words();
  words[0] = PackHead(RecordType::kThreadName, 2, 0, entry->id);
  words[1] = tid;
  Commit(2);
}

}  // namespace trainprof::collectors
