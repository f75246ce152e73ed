// Which writer a thread uses: its own while it lives, then the next thread's.
#include <string.h>

#include "collectors/core/system.h"
#include "collectors/core/thread_writer.h"

// glibc's registration of a function that runs when the calling thread ends; unlike a pthread key
// it takes none of the program's 1,024 keys, and its symbol has kept one version since 2.18.
extern "C" int __cxa_thread_atexit_impl(void (*function)(void*), void* argument, void* dso);
extern "C" void* __dso_handle;

namespace trainprof::collectors {

TRAINPROF_TLS ThreadWriter* t_writer;

namespace {

TRAINPROF_TLS bool t_attaching;
TRAINPROF_TLS bool t_hooked;

// The stack's top: a pointer in the low 48 bits (all user addresses) and a count against ABA.
constexpr int kTagShift = 48;
constexpr uint64_t kPointerMask = (uint64_t{1} << kTagShift) - 1;

ThreadWriter* PointerOf(uint64_t top) {
  return reinterpret_cast<ThreadWriter*>(top & kPointerMask);
}
uint64_t NextTop(uint64_t top, ThreadWriter* writer) {
  return ((top >> kTagShift) + 1) << kTagShift | reinterpret_cast<uint64_t>(writer);
}

ThreadWriter* TakeFreeWriter() {
  auto& free = g_runtime.state->free_writers;
  uint64_t top = free.load(std::memory_order_acquire);
  // Writers are never unmapped, so that reading a taken one's next pointer is harmless.
  while (ThreadWriter* writer = PointerOf(top)) {
    if (free.compare_exchange_weak(top, NextTop(top, writer->next_free()),
                                   std::memory_order_acq_rel)) {
      return writer;
    }
  }
  return nullptr;
}

void GiveBack(ThreadWriter* writer) {
  auto& free = g_runtime.state->free_writers;
  uint64_t top = free.load(std::memory_order_relaxed);
  do {
    writer->set_next_free(PointerOf(top));
  } while (!free.compare_exchange_weak(top, NextTop(top, writer), std::memory_order_acq_rel));
}

ThreadWriter* MakeWriter(uint32_t generation) {
  void* string_memory = nullptr;
  auto* writer = AllocateWriter<ThreadWriter>(&string_memory);
  if (writer == nullptr) return nullptr;
  writer->Create(g_runtime.state->next_writer.fetch_add(1), generation, string_memory);
  return writer;
}

void ThreadExit(void*) {
  ThreadWriter* writer = t_writer;
  t_writer = nullptr;
  t_hooked = false;  // later destructors of this thread may call NVTX again
  if (writer == nullptr ||
      writer->generation() != g_runtime.state->generation.load(std::memory_order_acquire)) {
    return;
  }
  writer->ThreadEnds();
  GiveBack(writer);
}

ThreadWriter* PrepareWriter() {
  ProcessState& state = *g_runtime.state;
  if (state.generation.load(std::memory_order_acquire) == 0 && !StartProcess()) return nullptr;
  const uint32_t generation = state.generation.load(std::memory_order_acquire);
  ThreadWriter* writer = t_writer;
  if (writer != nullptr) {  // it was the parent's: this is a forked child
    writer->BecomeChilds(state.next_writer.fetch_add(1), generation);
    return writer;
  }
  writer = TakeFreeWriter();
  if (writer == nullptr) writer = MakeWriter(generation);
  if (writer != nullptr && !t_hooked) {
    t_hooked = __cxa_thread_atexit_impl(ThreadExit, nullptr, &__dso_handle) == 0;
  }
  return writer;
}

[[gnu::noinline]] ThreadWriter* Attach() {
  if (t_attaching) {
    CountLost(false);
    return nullptr;
  }
  t_attaching = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ThreadWriter* writer = PrepareWriter();
  if (writer == nullptr) {
    CountLost(false);
  } else {
    t_writer = writer;
    writer->TryEnter();
    if (g_runtime.state->initial_gap.exchange(0) != 0) writer->BeginInitialGap();
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_attaching = false;
  return writer;
}

}  // namespace

ThreadWriter* ThreadWriter::Enter() {
  ThreadWriter* writer = t_writer;
  const uint32_t generation = g_runtime.state->generation.load(std::memory_order_relaxed);
  if (writer == nullptr || writer->generation_ != generation) [[unlikely]] {
    return Attach();
  }
  if (!writer->TryEnter()) [[unlikely]] {
    if (auto* segment = g_runtime.state->segment) {
      segment->dropped_reentrant.fetch_add(1, std::memory_order_relaxed);
    }
    return nullptr;
  }
  writer->Settle();
  return writer;
}

ThreadWriter* ThreadWriter::EnterAgain() {
  const bool has_recorded =
      t_writer != nullptr &&
      t_writer->generation_ == g_runtime.state->generation.load(std::memory_order_relaxed);
  if (!has_recorded || !t_writer->TryEnter()) return nullptr;
  t_writer->Settle();
  return t_writer;
}

}  // namespace trainprof::collectors
