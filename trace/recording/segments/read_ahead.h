// Loads a segment's chunks on all cores, ahead of the one thread that decodes them in their order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "trace/base/parallel.h"
#include "trace/recording/segments/segment_reader.h"

namespace trainprof::recording {

// A chunk's payload: of records, and of rows of no known size, words; else runs.
struct LoadedChunk {
  std::vector<uint64_t> words;
  RowRuns runs;
};

// Bytes of payload that were passed on; about one call a megabyte.
using OnPayload = std::function<void(uint64_t bytes)>;

class ReadAhead {
 public:
  // `chunks` of `segment`, which outlives this, in the order in which Next() gives them. At most a
  // few are in memory at a time; small segments are loaded without another thread. `on_payload`
  // may be empty.
  ReadAhead(const SegmentReader& segment, std::vector<const Chunk*> chunks,
            OnPayload on_payload = {});
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  // The next chunk's payload, valid until the next call; nullptr (and counted) when it is damaged.
  // Not to be called more often than there are chunks. Where reading can be cancelled (cancel.h).
  const LoadedChunk* Next(Quality& quality);

 private:
  struct Slot {
    LoadedChunk chunk;
    Quality quality;
    bool loaded = false;  // neither damaged nor taken
    std::exception_ptr failure;
    bool ready = false;
  };
  void Work();
  bool Load(size_t chunk, LoadedChunk& loaded, ChunkScratch& scratch, Quality& quality) const;
  Slot& SlotOf(size_t chunk) { return slots_[chunk % slots_.size()]; }

  const SegmentReader& segment_;
  const std::vector<const Chunk*> chunks_;
  const OnPayload on_payload_;
  std::vector<Slot> slots_;
  ChunkScratch scratch_;  // of the decoding thread, where it is alone
  size_t given_ = 0;      // by Next(); the last one's slot is still in use

  std::mutex mutex_;
  std::condition_variable loaded_;  // the chunk that Next() waits for
  std::condition_variable freed_;   // a slot
  size_t claimed_ = 0;
  bool stop_ = false;
  Helpers threads_;
};

}  // namespace trainprof::recording
