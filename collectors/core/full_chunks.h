// The chunks that a writer has filled. While the supervisor drains the segment (format.h,
// DrainedHeader) they are handed over and serve again: new pages of a file cost more than all else
// of recording, and a long run's raw file stays small. Where nobody drains, or comes behind, each is
// given back, and the next one is claimed.
#pragma once

#include <cstdint>

#include "collectors/core/segment_file.h"

namespace trainprof::collectors {

class FullChunks {
 public:
  // A chunk that is drained, made what the request asks for; nullptr: there is none.
  recording::ChunkHeader* Take(const ChunkRequest& request);
  // Nothing is written into it from here on.
  void Add(recording::ChunkHeader* chunk);
  // Those of a parent, or of a writer that writes no more.
  void Clear();

 private:
  // What a busy thread fills in some 3 ms. Of a thread that fills one in a second two are in use.
  static constexpr uint32_t kMost = 32;
  static constexpr uint32_t kMostBytes = 8 * 1024 * 1024;  // of rows, whose chunks are large

  recording::ChunkHeader* chunks_[kMost];
  uint32_t count_;
  uint32_t bytes_;
};

}  // namespace trainprof::collectors
