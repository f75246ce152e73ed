#include "trace/recording/segments/read_ahead.h"

#include <algorithm>

#include "trace/base/cancel.h"

namespace trainprof::recording {
namespace {

// Payload that takes longer to load than threads to start: some 0.3 ms.
constexpr uint64_t kWorthThreads = 1 << 20;
constexpr size_t kMostThreads = 4;
constexpr size_t kSlotsPerThread = 3;
// Of all slots together, payload. Chunks of the collector have up to 1 MiB, others may have 64.
constexpr uint64_t kMostBytes = 64 << 20;

}  // namespace

ReadAhead::ReadAhead(const SegmentReader& segment, std::vector<const Chunk*> chunks,
                     OnPayload on_payload)
    : segment_(segment), chunks_(std::move(chunks)), on_payload_(std::move(on_payload)), slots_(1) {
  uint64_t bytes = 0;
  uint64_t largest = 1;
  for (const Chunk* chunk : chunks_) {
    bytes += chunk->payload_bytes;
    largest = std::max<uint64_t>(largest, chunk->payload_bytes);
  }
  if (bytes < kWorthThreads || UsableCores() == 1 || !segment_.OpenFile()) return;
  const size_t threads = std::min({size_t{UsableCores()}, kMostThreads, chunks_.size()});
  // Two at least: one is in use while the next is loaded.
  slots_.resize(std::clamp<size_t>(kMostBytes / largest, 2, 1 + threads * kSlotsPerThread));
  threads_.Start(threads, [this] { Work(); });  // without any Next() does it
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  freed_.notify_all();
  threads_.Join();
}

void ReadAhead::Work() {
  ChunkScratch scratch;
  std::unique_lock lock(mutex_);
  while (true) {
    // The slot of the chunk that was given last is in use until the next one is asked for.
    freed_.wait(lock, [&] {
      return stop_ || claimed_ == chunks_.size() || claimed_ + 1 < given_ + slots_.size();
    });
    if (stop_ || claimed_ == chunks_.size()) return;
    const size_t chunk = claimed_++;
    lock.unlock();
    Slot& slot = SlotOf(chunk);
    slot.quality = Quality();
    try {
      slot.loaded = Load(chunk, slot.chunk, scratch, slot.quality);
    } catch (...) {  // no memory to say so either
      slot.failure = std::current_exception();
    }
    lock.lock();
    slot.ready = true;
    if (chunk == given_) loaded_.notify_one();
  }
}

bool ReadAhead::Load(size_t chunk, LoadedChunk& loaded, ChunkScratch& scratch,
                     Quality& quality) const {
  const Chunk& wanted = *chunks_[chunk];
  if (wanted.kind == ChunkKind::kRecords || !HasColumns(wanted.row_bytes)) {
    return segment_.Load(wanted, loaded.words, scratch, quality);
  }
  return segment_.LoadRuns(wanted, loaded.runs, scratch, quality);
}

const LoadedChunk* ReadAhead::Next(Quality& quality) {
  CancelPoint();
  if (on_payload_) on_payload_(chunks_[given_]->payload_bytes);
  if (threads_.empty()) {
    LoadedChunk& chunk = slots_[0].chunk;
    return Load(given_++, chunk, scratch_, quality) ? &chunk : nullptr;
  }
  std::unique_lock lock(mutex_);
  Slot& slot = SlotOf(given_);
  loaded_.wait(lock, [&] { return slot.ready; });
  slot.ready = false;
  ++given_;
  lock.unlock();
  freed_.notify_one();
  if (slot.failure) std::rethrow_exception(slot.failure);
  for (const QualityItem& item : slot.quality.items()) {
    quality.Count(item.kind, item.severity, item.count, item.detail);
  }
  return slot.loaded ? &slot.chunk : nullptr;
}

}  // namespace trainprof::recording
