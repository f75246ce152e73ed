// What a writer keeps of chunks that the supervisor has not drained yet, as one that was stopped never does.
#include "collectors/core/full_chunks.h"

#include <gtest/gtest.h>

#include <memory>

#include "collectors/core/process_state.h"
#include "collectors/core/system.h"

namespace trainprof::testing {
namespace {

using collectors::FullChunks;
using recording::ChunkHeader;
using recording::ChunkState;

// A process whose segment is drained.
class Process {
 public:
  Process() {
    state_->segment = segment_;
    segment_->is_drained = 1;
    collectors::g_runtime.state.Publish(state_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    collectors::g_runtime.state.Publish(nullptr);
    collectors::ReleasePages(state_, sizeof *state_);
    collectors::ReleasePages(segment_, sizeof *segment_);
  }
  uint32_t handed_over() const { return segment_->handed_over; }

 private:
  template <class T>
  static T* Pages() {
    return static_cast<T*>(collectors::AllocatePages(sizeof(T)));
  }
  collectors::ProcessState* const state_ = Pages<collectors::ProcessState>();
  recording::SegmentHeader* const segment_ = Pages<recording::SegmentHeader>();
};

ChunkHeader* NewChunk(uint32_t bytes) {
  auto* const chunk = static_cast<ChunkHeader*>(collectors::AllocatePages(bytes));
  chunk->size_bytes = bytes;
  return chunk;
}

uint32_t KeptOf(uint32_t chunk_bytes, uint32_t count) {
  const Process process;
  auto full = std::make_unique<FullChunks>();  // zeros
  for (uint32_t i = 0; i < count; ++i) full->Add(NewChunk(chunk_bytes));
  const uint32_t kept = process.handed_over();
  full->Clear();
  return kept;
}

TEST(FullChunks, AreBoundedInNumberAndBytes) {
  EXPECT_EQ(KeptOf(64 << 10, 10), 10u);
  EXPECT_EQ(KeptOf(64 << 10, 100), 32u);  // 2 MiB: some 3 ms of a busy thread
  EXPECT_EQ(KeptOf(1 << 20, 100), 8u);    // of rows
}

TEST(FullChunks, OneThatIsDrainedMakesRoomForAnother) {
  const Process process;
  auto full = std::make_unique<FullChunks>();
  ChunkHeader* const first = NewChunk(1 << 20);
  full->Add(first);
  for (int i = 0; i < 7; ++i) full->Add(NewChunk(1 << 20));
  full->Add(NewChunk(1 << 20));
  EXPECT_EQ(process.handed_over(), 8u);
  collectors::ChunkRequest request{};
  request.smallest_bytes = 4096;
  EXPECT_EQ(full->Take(request), nullptr);
  first->state = ChunkState::kDrained;
  EXPECT_EQ(full->Take(request), first);
  EXPECT_EQ(full->Take(request), nullptr);
  full->Add(first);
  EXPECT_EQ(process.handed_over(), 9u);
  full->Clear();
}

}  // namespace
}  // namespace trainprof::testing
