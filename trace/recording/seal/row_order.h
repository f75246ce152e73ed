// The order in which a chunk's rows are stored once they are packed.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/recording/segments/chunk.h"

namespace trainprof::recording {

// Puts a chunk's rows together by the track that they will stand on, a stream's or a thread's; within a track they
// stay as they were. CUPTI delivers what streams did side by side: apart it packs better, and readers need not
// put it in order again. The last row stays the last one: it tells who salvages a killed process's rows where to go on.
// Of chunks of more than 64 tracks all stay where they are. O(rows * tracks).
void GroupByTrack(const Chunk& chunk, std::vector<uint64_t>& words);

}  // namespace trainprof::recording
