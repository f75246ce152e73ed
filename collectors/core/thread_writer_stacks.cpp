// The part of a thread's records that tells where its calls came from.
#include <string.h>

#include "collectors/core/segment_file.h"
#include "collectors/core/thread_writer.h"

namespace trainprof::collectors {

using recording::RecordType;

bool ThreadWriter::AdmitDetail() {
  const uint32_t gate = g_runtime.state->gate.load(std::memory_order_relaxed);
  if ((gate & kGateWindow) != 0 && !WindowIsOpen()) return false;
  if ((gate & (kGateFull | kGateFailed | kGatePhasesOnly)) == 0) return true;
  Drop((gate & (kGateFull | kGateFailed)) == 0);
  return false;
}

void ThreadWriter::WriteRecord(RecordType type, uint32_t domain, uint32_t id, const void* words,
                               uint32_t word_count) {
  uint64_t* out = Words();
  out[0] = recording::PackHead(type, word_count + 1, domain, id);
  memcpy(out + 1, words, word_count * 8);
  Commit(word_count + 1);
}

uint32_t ThreadWriter::DefineStack(const uint64_t* frames, uint32_t count, uint32_t words) {
  if (count > kMostFrames) count = kMostFrames;
  const uint64_t hash = HashText(reinterpret_cast<const char*>(frames), count * 8);
  KnownStack& known = known_stacks_[hash % kKnownStacks];
  const bool is_new = known.id == 0 || known.hash != hash;
  if (!Room((is_new ? count + 1 : 0) + words, nullptr)) return 0;
  if (is_new) {
    known = {hash, strings_.NextId()};
    WriteRecord(RecordType::kStack, 0, known.id, frames, count);
  }
  return known.id;
}

void ThreadWriter::CallStack(const uint64_t* frames, uint32_t count, uint32_t correlation,
                             recording::CallDomain domain, uint32_t script) {
  if (count == 0 || !AdmitDetail()) return;
  constexpr uint32_t kCallWords = 4;
  const uint32_t stack = DefineStack(frames, count, kCallWords);
  if (stack == 0) return Drop(lost_detail_);
  const uint64_t words[] = {recording::ReadTicks(g_runtime.clock),
                            correlation | static_cast<uint64_t>(domain) << 32, script};
  WriteRecord(RecordType::kCallStack, 0, stack, words, kCallWords - 1);
}

void ThreadWriter::NameStack(uint32_t name, const uint64_t* frames, uint32_t count,
                             uint32_t script) {
  constexpr uint32_t kNameWords = 2;
  constexpr uint32_t kNoRoom = kGateFull | kGateFailed | kGatePhasesOnly;
  // It is no event: where there is no room it is not counted, either.
  if (count == 0 && script == 0) return;
  if ((g_runtime.state->gate.load(std::memory_order_relaxed) & kNoRoom) != 0) return;
  const uint32_t stack = count == 0 ? 0 : DefineStack(frames, count, kNameWords);
  if (stack == 0 && (count != 0 || !Room(kNameWords, nullptr))) return;
  const uint64_t word = stack | static_cast<uint64_t>(script) << 32;
  WriteRecord(RecordType::kNameStack, 0, name, &word, kNameWords - 1);
}

uint32_t ThreadWriter::AddScript(uint64_t hash, const Text& text) {
  uint32_t id = 0;
  if (!IdOf(text, &id)) return 0;
  known_scripts_[hash % kKnownStacks] = {hash, id};
  return id;
}

void ThreadWriter::Module(const char* path, const recording::ModuleFacts& facts) {
  CachedString* name = strings_.Find(MakeText(path));
  if (name == nullptr || (name->id == 0 && !Define(name, nullptr))) return;
  constexpr uint32_t kWords = sizeof facts / 8;
  if (Room(kWords + 1, nullptr)) WriteRecord(RecordType::kModule, 0, name->id, &facts, kWords);
}

}  // namespace trainprof::collectors
