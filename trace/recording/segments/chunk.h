// Where a chunk of a segment lies, and what is in it.
#pragma once

#include <cstdint>
#include <utility>

#include "trace/recording/segments/row_codec.h"
#include "trace/recording/wire/format.h"

namespace trainprof::recording {

struct Chunk {
  uint64_t file_offset = 0;    // of the payload
  uint32_t stored_bytes = 0;   // in the file: committed bytes, or their compressed size
  uint32_t payload_bytes = 0;  // committed
  bool compressed = false;
  ChunkEncoding encoding = ChunkEncoding::kPlain;
  ChunkKind kind = ChunkKind::kRecords;
  uint16_t row_bytes = 0;
  uint32_t writer = 0;
  uint32_t sequence = 0;
  ClockSample opened{};
  bool is_drained = false;  // its file is the one beside the segment
};

// By writer, and of each as it wrote them.
inline bool WrittenBefore(const Chunk& a, const Chunk& b) {
  return std::pair(a.writer, a.sequence) < std::pair(b.writer, b.sequence);
}

}  // namespace trainprof::recording
