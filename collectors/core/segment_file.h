// This process's segment: the file, its header, and the claiming of chunks within the run's size
// bound. No file descriptor stays open: a program that closes all descriptors and gets the number
// again for a file of its own must not find our bytes in it.
#pragma once

#include <cstdint>

#include "trace/recording/wire/format.h"

namespace trainprof::collectors {

// Makes the folder and the segment, and maps its header into ProcessState::segment. On failure
// Fail() has been told and the segment stays nullptr. Once a process.
void OpenSegment();

// Of files in this run's folders (trace/recording/wire/access.h).
int RunFileMode();

// Marks the end of a process that goes through exit(). Called by the library's destructor.
void CloseSegment();

enum class ClaimResult { kClaimed, kThinned, kFull, kFailed };

// What a writer prefers: a small chunk first, then larger ones up to its own most.
inline constexpr uint32_t kFirstChunkBytes = 16 * 1024;
constexpr uint32_t NextChunkBytes(uint32_t bytes, uint32_t most) {
  constexpr uint32_t kGrowth = 4;
  return bytes < most ? bytes * kGrowth : bytes;
}

struct ChunkRequest {
  uint32_t smallest_bytes;   // with the header; rounded up to the chunk alignment
  uint32_t preferred_bytes;  // taken when the size bound leaves room, and is not small itself
  bool phase;                // false: detail, refused once 3/4 of the bound are used
  uint32_t writer;
  uint32_t sequence;
  recording::ChunkKind kind = recording::ChunkKind::kRecords;
  uint16_t row_bytes = 0;  // of kinds that hold rows
};

// Claims, allocates and maps a chunk and writes its header; *chunk is valid on kClaimed alone.
// Updates the gate when a level of the size bound is reached.
ClaimResult ClaimChunk(const ChunkRequest& request, recording::ChunkHeader** chunk);
void UnmapChunk(recording::ChunkHeader* chunk);
// What a chunk of this request says of itself, and that this is whole; its place and size stay.
void FillChunkHeader(const ChunkRequest& request, recording::ChunkHeader* chunk);

// Counts an event that is not recorded: in the writer's chunk, or without one (nullptr) in the
// segment. `detail`: thinned out, not lost.
void CountDrop(recording::ChunkHeader* chunk, bool detail);

}  // namespace trainprof::collectors
