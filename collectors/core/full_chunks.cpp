#include "collectors/core/full_chunks.h"

#include "collectors/core/process_state.h"

namespace trainprof::collectors {

using recording::ChunkHeader;
using recording::ChunkState;

ChunkHeader* FullChunks::Take(const ChunkRequest& request) {
  uint32_t best = kMost;
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t bytes = chunks_[i]->size_bytes;
    if (bytes >= request.smallest_bytes && (best == kMost || bytes > chunks_[best]->size_bytes) &&
        chunks_[i]->state.load(std::memory_order_acquire) == ChunkState::kDrained) {
      best = i;
    }
  }
  if (best == kMost) return nullptr;
  ChunkHeader* chunk = chunks_[best];
  chunks_[best] = chunks_[--count_];
  bytes_ -= chunk->size_bytes;
  // A process that is killed from here on leaves a chunk with nothing in it.
  chunk->state.store(ChunkState::kTaken, std::memory_order_release);
  chunk->committed.store(0, std::memory_order_relaxed);
  chunk->dropped_detail.store(0, std::memory_order_relaxed);
  chunk->dropped_all.store(0, std::memory_order_relaxed);
  FillChunkHeader(request, chunk);
  chunk->state.store(ChunkState::kWritten, std::memory_order_release);
  return chunk;
}

void FullChunks::Add(ChunkHeader* chunk) {
  recording::SegmentHeader* segment = g_runtime.state->segment;
  if (count_ == kMost || chunk->size_bytes > kMostBytes - bytes_ || segment == nullptr ||
      segment->is_drained.load(std::memory_order_relaxed) == 0) {
    return UnmapChunk(chunk);
  }
  chunks_[count_++] = chunk;
  bytes_ += chunk->size_bytes;
  chunk->state.store(ChunkState::kHandedOver, std::memory_order_release);
  segment->handed_over.fetch_add(1, std::memory_order_release);
}

void FullChunks::Clear() {
  while (count_ > 0) UnmapChunk(chunks_[--count_]);
  bytes_ = 0;
}

}  // namespace trainprof::collectors
