#include "collectors/core/thread_writer.h"

#include <string.h>
#include <sys/prctl.h>

#include "collectors/core/segment_file.h"
#include "collectors/core/system.h"

namespace trainprof::collectors {

using recording::ChunkHeader;
using recording::PackHead;
using recording::RecordType;

namespace {

// Claiming a chunk costs some 5 us a page, all of it at once: no more than 0.1 ms.
constexpr uint32_t kMostChunkBytes = 64 * 1024;
constexpr uint32_t kPhaseDepth = 2;
constexpr uint32_t kShortIds = 1u << recording::kShortValueBits;
constexpr uint32_t kThreadWords = 5;
constexpr uint32_t kClockWords = 5;
// ~0.1 s: a clock record so often keeps the conversion of ticks exact to tens of ns, however the
// counter's rate drifts. TSCs run at 1 to 5 GHz.
constexpr uint64_t kClockIntervalTsc = uint64_t{1} << 28;
constexpr uint64_t kClockIntervalNs = 100'000'000;

// 0.2 to 1 ms: what it costs to ask is less than a thousandth of that.
constexpr uint64_t kUsageIntervalTsc = uint64_t{1} << 20;
constexpr uint64_t kUsageIntervalNs = 500'000;
constexpr uint32_t kUsageWords = 4;

uint64_t OfClock(uint64_t tsc, uint64_t ns) {
  return g_runtime.clock == recording::ClockKind::kTsc ? tsc : ns;
}

// A range's id: bit 0 recorded, bit 1 capture, then the count of the writer, the writer, and the
// process's generation, so that a forked child does not end its parent's ranges.
constexpr uint64_t kIdRecorded = 1;
constexpr uint64_t kIdCapture = 2;
constexpr int kIdCountShift = 2;
constexpr int kIdWriterShift = 36;
constexpr int kIdGenerationShift = 56;
constexpr uint64_t kIdCountMask = (uint64_t{1} << (kIdWriterShift - kIdCountShift)) - 1;
constexpr uint64_t kIdWriterMask = (uint64_t{1} << (kIdGenerationShift - kIdWriterShift)) - 1;

uint32_t WordsFor(const Attributes& attributes) {
  if (!attributes.Any()) return 0;
  return 1 + (attributes.color_type != 0) + (attributes.payload_type != 0);
}

void Put(uint64_t* words, const Attributes& attributes) {
  *words++ = recording::PackAttributes(attributes.payload_type, attributes.color_type,
                                       attributes.category);
  if (attributes.color_type != 0) *words++ = attributes.color;
  if (attributes.payload_type != 0) *words = attributes.payload;
}

// Tells who waits for this step (the GPU's window opens and closes with steps).
void CountStep() {
  ProcessState& state = *g_runtime.state;
  const uint64_t begun = state.steps_begun.fetch_add(1, std::memory_order_relaxed) + 1;
  if (begun == state.signal_at_step.load(std::memory_order_relaxed)) SignalFollowers();
}

}  // namespace

bool ThreadWriter::IsPhase(const CachedString* name) const {
  return name == nullptr || name->is_step || depth_ < kPhaseDepth ||
         (step_depth_ != 0 && depth_ == step_depth_);
}

void ThreadWriter::Drop(bool detail) { CountDrop(chunk_, detail); }

bool ThreadWriter::Admit(const CachedString* name, bool opens_range) {
  const uint32_t gate = g_runtime.state->gate.load(std::memory_order_relaxed);
  if ((gate & kGateWindow) != 0) {
    WindowVerdict verdict = CheckTime();
    WriteGap(verdict.change);
    if (opens_range && name != nullptr && name->is_step && step_depth_ == 0) {
      verdict = OnStep();
      WriteGap(verdict.change);
    }
    if (opens_range && name != nullptr && name->is_capture) {
      verdict = OnCaptureBegin();
      WriteGap(verdict.change);
    }
    if (!verdict.open) return false;
  }
  if ((gate & (kGateFull | kGateFailed)) != 0) {
    Drop(false);
    return false;
  }
  if ((gate & kGatePhasesOnly) != 0 && !IsPhase(name)) {
    Drop(true);
    return false;
  }
  return true;
}

void ThreadWriter::WriteGap(RecordType type, uint64_t ticks) {
  if (!Room(2, nullptr)) return;
  uint64_t* words = Words();
  words[0] = PackHead(type, 2, static_cast<uint32_t>(recording::GapReason::kWindow), 0);
  words[1] = ticks;
  Commit(2);
}

void ThreadWriter::WriteGap(WindowChange change) {
  if (change == WindowChange::kNone) return;
  WriteGap(change == WindowChange::kOpened ? RecordType::kGapEnd : RecordType::kGapBegin,
           recording::ReadTicks(g_runtime.clock));
  SignalFollowers();
}

void ThreadWriter::BeginInitialGap() {
  if (auto* segment = g_runtime.state->segment) {
    WriteGap(RecordType::kGapBegin, segment->opened.ticks);
  }
}

bool ThreadWriter::NewChunk(uint64_t bytes, const CachedString* used_by) {
  const ChunkRequest request = {static_cast<uint32_t>(bytes + sizeof(ChunkHeader)), chunk_bytes_,
                                IsPhase(used_by), number_, sequence_};
  ChunkHeader* chunk = full_.Take(request);
  if (chunk == nullptr) {
    const ClaimResult result = ClaimChunk(request, &chunk);
    lost_detail_ = result == ClaimResult::kThinned;
    if (result != ClaimResult::kClaimed) return false;
  }
  if (chunk_ != nullptr) full_.Add(chunk_);
  ++sequence_;
  chunk_bytes_ = NextChunkBytes(chunk_bytes_, kMostChunkBytes);
  chunk_ = chunk;
  payload_ = reinterpret_cast<char*>(chunk + 1);
  cursor_ = payload_;
  last_ticks_ = 0;
  end_ = reinterpret_cast<char*>(chunk) + chunk->size_bytes;
  return true;
}

bool ThreadWriter::MakeRoom(uint32_t words, const CachedString* used_by) {
  uint64_t bytes = words * 8 + reserve_bytes_;
  if (!announced_) bytes += kThreadWords * 8;
  if (chunk_ != nullptr) end_ = reinterpret_cast<char*>(chunk_) + chunk_->size_bytes;
  if (chunk_ == nullptr || cursor_ + bytes > end_) {
    if (!NewChunk(bytes, used_by)) {
      if (!announced_) end_ = cursor_;  // the next event must come here again
      return false;
    }
  }
  if (!announced_) Announce();
  return true;
}

void ThreadWriter::Announce() {
  uint64_t* words = Words();
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  words[0] = PackHead(RecordType::kThread, kThreadWords, 0, 0);
  words[1] = recording::ReadTicks(g_runtime.clock);
  words[2] = static_cast<uint64_t>(ThreadId());
  memcpy(words + 3, name, sizeof name);
  Commit(kThreadWords);
  announced_ = true;
}

void ThreadWriter::WriteClock(uint64_t ticks) {
  next_clock_ = ticks + OfClock(kClockIntervalTsc, kClockIntervalNs);
  if (cursor_ + kClockWords * 8 + reserve_bytes_ > end_) return;
  const recording::ClockSample sample = recording::SampleClockTriple(g_runtime.clock);
  uint64_t* words = Words();
  words[0] = PackHead(RecordType::kClock, kClockWords, 0, 0);
  memcpy(words + 1, &sample, sizeof sample);
  Commit(kClockWords);
}

void ThreadWriter::WriteUsage(uint64_t ticks) {
  next_usage_ = ticks + OfClock(kUsageIntervalTsc, kUsageIntervalNs);
  constexpr uint32_t kNoRoom = kGatePhasesOnly | kGateFull | kGateFailed;
  if ((g_runtime.state->gate.load(std::memory_order_relaxed) & kNoRoom) != 0) return;
  if (!WindowIsOpen() || !Room(kUsageWords, nullptr)) return;
  const ThreadUsage usage = UsageOfThread();
  const uint64_t values[] = {recording::ReadTicks(g_runtime.clock),
                             static_cast<uint64_t>(usage.cpu_ns),
                             usage.waits | uint64_t{usage.interruptions} << 32};
  WriteRecord(RecordType::kThreadTime, 0, 0, values, kUsageWords - 1);
}

bool ThreadWriter::Define(CachedString* entry, const CachedString* used_by) {
  if (entry->length == 0 && !entry->truncated) return true;  // id 0
  const uint32_t words = entry->RecordWords();
  if (!Room(words, used_by)) return false;
  entry->id = strings_.NextId();
  if (entry->id < kShortIds && !entry->is_of_loop && !entry->is_capture)
    entry->plain_push = recording::PackShort(RecordType::kShortPush, entry->id);
  PutString(*entry, Words());
  Commit(words);
  return true;
}

bool ThreadWriter::DefineDomain(const Domain* domain, const CachedString* used_by) {
  CachedString* name = strings_.Find(domain->name);
  if (name == nullptr || (name->id == 0 && !Define(name, used_by)) || !Room(2, used_by)) {
    return false;
  }
  uint64_t* words = Words();
  words[0] = PackHead(RecordType::kDomain, 2, domain->number, name->id);
  words[1] = 0;
  Commit(2);
  DepthStack::Assign(domain_defined_, domain->number, true);
  return true;
}

DepthStack* ThreadWriter::FindStack(uint32_t domain) {
  if (domain == 0) return &default_stack_;
  for (DepthStack* stack = other_stacks_; stack != nullptr; stack = stack->next) {
    if (stack->domain == domain) return stack;
  }
  return nullptr;
}

DepthStack* ThreadWriter::StackOf(uint32_t domain) {
  if (DepthStack* stack = FindStack(domain)) return stack;
  auto* stack = static_cast<DepthStack*>(AllocatePages(sizeof(DepthStack)));
  if (stack == nullptr) return nullptr;
  stack->domain = domain;
  stack->next = other_stacks_;
  other_stacks_ = stack;
  return stack;
}

template <class Name>
CachedString* ThreadWriter::TellOfName(const Domain* domain, const Name& name,
                                       CachedString* found) {
  const auto tell = g_runtime.on_new_name.load(std::memory_order_acquire);
  if (tell == nullptr || found->id == 0) return found;
  tell(*this, *domain, found->id);
  found = strings_.Find(name);  // what was written may have emptied the cache
  return found != nullptr && found->id == 0 && !Define(found, found) ? nullptr : found;
}

template <class Name>
bool ThreadWriter::WriteNamed(RecordType type, const Domain* domain, const Name& name,
                              const Attributes& attributes, uint64_t range_id,
                              CachedString** entry) {
  *entry = strings_.Find(name);
  if (g_runtime.state->gate.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (!Admit(*entry, type != RecordType::kMark)) return false;
  }
  if (!IsDefined(domain)) [[unlikely]] {
    if (!DefineDomain(domain, *entry)) {
      Drop(lost_detail_);
      return false;
    }
    *entry = strings_.Find(name);  // the domain's name may have emptied the cache
  }
  CachedString* found = *entry;
  const bool start = type == RecordType::kStart;
  const uint32_t words = 2 + start + WordsFor(attributes);
  const uint32_t structure = attributes.schema == 0 ? 0 : attributes.StructureWords();
  const uint32_t with_pop = words + structure + (type == RecordType::kPush ? kPopBytes / 8 : 0);
  if (found != nullptr && found->id == 0) [[unlikely]] {
    if (!Define(found, found)) {
      Drop(lost_detail_);
      return false;
    }
    if (type != RecordType::kMark) found = *entry = TellOfName(domain, name, found);
  }
  if (found == nullptr || !Room(with_pop, found)) [[unlikely]] {
    Drop(found != nullptr && lost_detail_);
    return false;
  }
  if (structure != 0) [[unlikely]] {
    WriteStructure(attributes);
  }
  uint64_t* out = Words();
  if (words > 2) {
    if (start) out[2] = range_id;
    if (attributes.Any()) Put(out + 2 + start, attributes);
  }
  const uint64_t ticks = recording::ReadTicks(g_runtime.clock);
  if (type == RecordType::kPush && words == 2 && domain->number == 0 && FitsShort(ticks) &&
      found->id < kShortIds) {
    out[0] = recording::WithTicks(recording::PackShort(RecordType::kShortPush, found->id),
                                  ticks - last_ticks_);
    Commit(1);
  } else {
    out[0] = PackHead(type, words, domain->number, found->id);
    out[1] = ticks;
    Commit(words);
  }
  last_ticks_ = ticks;
  if (type == RecordType::kPush) reserve_bytes_ += kPopBytes;  // before anything else takes room
  if (ticks >= next_clock_) [[unlikely]] {
    WriteClock(ticks);
  }
  return true;
}

void ThreadWriter::Settle() {
  while (default_stack_.depth < plain_level_) {
    DepthStack::Assign(default_stack_.recorded, default_stack_.depth, true);
    DepthStack::Assign(default_stack_.capture, default_stack_.depth, false);
    ++default_stack_.depth;
    ++depth_;
    reserve_bytes_ += kPopBytes;
  }
}

template <class Name>
int ThreadWriter::Push(const Domain* domain, const Name& name, const Attributes& attributes) {
  DepthStack* stack = StackOf(domain->number);
  if (stack == nullptr) {
    Drop(false);
    return 0;
  }
  const uint32_t level = stack->depth;
  CachedString* entry = nullptr;
  bool recorded = false;
  if (level < DepthStack::kMaxDepth) [[likely]] {
    recorded = WriteNamed(RecordType::kPush, domain, name, attributes, 0, &entry);
    DepthStack::Assign(stack->recorded, level, recorded);
    DepthStack::Assign(stack->capture, level, entry != nullptr && entry->is_capture);
  } else if (g_runtime.state->segment != nullptr) {
    g_runtime.state->segment->dropped_too_deep.fetch_add(1, std::memory_order_relaxed);
  }
  ++stack->depth;
  ++depth_;
  if (entry != nullptr && entry->is_of_loop) {
    steps_ = true;
    if (entry->is_step && step_depth_ == 0) {
      step_depth_ = depth_;
      g_runtime.state->steps_are_ranges.store(1, std::memory_order_relaxed);
      CountStep();
    }
  }
  if (recorded && UsageIsDue(last_ticks_)) [[unlikely]] {
    WriteUsage(last_ticks_);
  }
  return static_cast<int>(level);
}

int ThreadWriter::Pop(const Domain* domain) {
  const uint64_t ticks = recording::ReadTicks(g_runtime.clock);
  DepthStack* stack = FindStack(domain->number);
  auto* segment = g_runtime.state->segment;
  if (stack == nullptr || stack->depth == 0) {
    if (segment != nullptr) segment->unmatched_pops.fetch_add(1, std::memory_order_relaxed);
    return -1;
  }
  const uint32_t level = --stack->depth;
  --depth_;
  if (depth_ < step_depth_) step_depth_ = 0;
  if (level >= DepthStack::kMaxDepth) return static_cast<int>(level);
  const uint32_t gate = g_runtime.state->gate.load(std::memory_order_relaxed);
  if (DepthStack::Test(stack->recorded, level)) [[likely]] {
    uint64_t* words = Words();  // its room was kept when the range was pushed
    reserve_bytes_ -= kPopBytes;
    if (FitsShort(ticks)) [[likely]] {
      words[0] = recording::WithTicks(recording::PackShort(RecordType::kShortPop, domain->number),
                                      ticks - last_ticks_);
      Commit(1);
    } else {
      words[0] = PackHead(RecordType::kPop, 2, domain->number, 0);
      words[1] = ticks;
      Commit(2);
    }
    last_ticks_ = ticks;
    if (ticks >= next_clock_) [[unlikely]] {
      WriteClock(ticks);
    }
    if (UsageIsDue(ticks)) [[unlikely]] {
      WriteUsage(ticks);
    }
  } else if (gate == kGateWindow && WindowIsOpen() && segment != nullptr) {
    segment->cut_by_window.fetch_add(1, std::memory_order_relaxed);
  }
  if (gate != 0 && DepthStack::Test(stack->capture, level)) [[unlikely]] {
    WriteGap(OnCaptureEnd());
  }
  return static_cast<int>(level);
}

template <class Name>
void ThreadWriter::Mark(const Domain* domain, const Name& name, const Attributes& attributes) {
  CachedString* entry = nullptr;
  WriteNamed(RecordType::kMark, domain, name, attributes, 0, &entry);
}

template <class Name>
uint64_t ThreadWriter::Start(const Domain* domain, const Name& name, const Attributes& attributes) {
  const CachedString* seen = strings_.Find(name);
  uint64_t id = (++ranges_started_ & kIdCountMask) << kIdCountShift |
                (number_ & kIdWriterMask) << kIdWriterShift |
                static_cast<uint64_t>(generation_) << kIdGenerationShift;
  if (seen != nullptr && seen->is_capture) id |= kIdCapture;
  CachedString* entry = nullptr;
  const bool recorded =
      WriteNamed(RecordType::kStart, domain, name, attributes, id | kIdRecorded, &entry);
  return recorded ? id | kIdRecorded : id;
}

void ThreadWriter::End(uint64_t range_id) {
  // Inherited from before a fork: it is in the parent's recording.
  if (range_id >> kIdGenerationShift != (generation_ & 0xFF)) return;
  if ((range_id & kIdRecorded) != 0 && Room(3, nullptr)) {
    uint64_t* words = Words();
    words[0] = PackHead(RecordType::kEnd, 3, 0, 0);
    words[1] = last_ticks_ = recording::ReadTicks(g_runtime.clock);
    words[2] = range_id;
    Commit(3);
  }
  if ((range_id & kIdCapture) != 0) WriteGap(OnCaptureEnd());
}

bool ThreadWriter::StepBegins() {
  ProcessState& state = *g_runtime.state;
  if (state.steps_are_ranges.load(std::memory_order_relaxed) != 0) return false;
  WindowChange change = WindowChange::kNone;
  if ((state.gate.load(std::memory_order_relaxed) & kGateWindow) != 0) {
    change = OnStep().change;
    WriteGap(change);
  }
  steps_ = true;
  CountStep();
  return change == WindowChange::kOpened;
}

void ThreadWriter::Create(uint32_t number, uint32_t generation, void* string_memory) {
  strings_.Init(string_memory);
  number_ = number;
  generation_ = generation;
  ready_ = generation;
  chunk_bytes_ = kFirstChunkBytes;
}

void ThreadWriter::BecomeChilds(uint32_t number, uint32_t generation) {
  Settle();  // its ranges stay open here, too
  plain_most_ = 0;
  strings_.Reset();
  number_ = number;
  generation_ = generation;
  ready_ = generation;
  chunk_bytes_ = kFirstChunkBytes;
  sequence_ = 0;
  // The parent's chunk stays mapped: it is the parent's, and signal handlers may still point there.
  chunk_ = nullptr;
  full_.Clear();
  cursor_ = end_ = payload_ = nullptr;
  reserve_bytes_ = 0;
  last_ticks_ = 0;
  next_clock_ = 0;
  next_usage_ = 0;
  announced_ = false;
  set_next_free(nullptr);
  memset(domain_defined_, 0, sizeof domain_defined_);
  memset(known_stacks_, 0, sizeof known_stacks_);
  memset(known_scripts_, 0, sizeof known_scripts_);
  memset(hook_memory_, 0, sizeof hook_memory_);
  // Ranges that the parent opened here stay open, but not one of them is in our recording.
  memset(default_stack_.recorded, 0, sizeof default_stack_.recorded);
  memset(default_stack_.capture, 0, sizeof default_stack_.capture);
  for (DepthStack* stack = other_stacks_; stack != nullptr; stack = stack->next) {
    memset(stack->recorded, 0, sizeof stack->recorded);
    memset(stack->capture, 0, sizeof stack->capture);
  }
}

void ThreadWriter::ThreadEnds() {
  Settle();
  plain_most_ = 0;
  for (DepthStack* stack = &default_stack_; stack != nullptr;
       stack = stack == &default_stack_ ? other_stacks_ : stack->next) {
    const uint32_t levels =
        stack->depth < DepthStack::kMaxDepth ? stack->depth : DepthStack::kMaxDepth;
    for (uint32_t level = 0; level < levels; ++level) {
      if (DepthStack::Test(stack->capture, level)) WriteGap(OnCaptureEnd());
    }
    stack->depth = 0;
  }
  plain_level_ = 0;
  depth_ = 0;
  step_depth_ = 0;
  reserve_bytes_ = 0;
  announced_ = false;
  steps_ = false;
  next_usage_ = 0;
  end_ = cursor_;
  memset(hook_memory_, 0, sizeof hook_memory_);
}

template int ThreadWriter::Push(const Domain*, const Text&, const Attributes&);
template int ThreadWriter::Push(const Domain*, const char* const&, const Attributes&);
template void ThreadWriter::Mark(const Domain*, const Text&, const Attributes&);
template void ThreadWriter::Mark(const Domain*, const char* const&, const Attributes&);
template uint64_t ThreadWriter::Start(const Domain*, const Text&, const Attributes&);
template uint64_t ThreadWriter::Start(const Domain*, const char* const&, const Attributes&);

}  // namespace trainprof::collectors
