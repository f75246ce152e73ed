// Walks the calling thread's own frames by .eh_frame; what stands above a frame of CUDA's that has none is looked
// for on the stack (stack_scan.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/core/thread_writer.h"

namespace trainprof::collectors {

// The frames nearest to the CUDA libraries that together tell one call site from another.
inline constexpr uint32_t kSiteFrames = 3;

struct Frames {
  uint32_t count;
  // Return addresses, innermost first, without CUDA's own.
  uint64_t address[ThreadWriter::kMostFrames];
  bool scanned;  // a frame of CUDA's could not be unwound
};

// Where code lies: a loaded object. `file_start` is its ELF header in memory.
struct LoadedObject {
  const char* path;  // "" for the program itself
  uint64_t file_start;
  uint64_t end;
  uint64_t load_bias;
};
bool FindObject(uint64_t address, LoadedObject* object);

// Whether it lies in a library of CUDA's, or in ours.
bool IsCuda(uint64_t address);

// Fills `frames`. Asks go_on(site) once, when it is sure of the nearest kSiteFrames frames (or the
// stack ends): false ends the walk, and Walk then gives false.
bool Walk(Frames* frames, bool (*go_on)(uint64_t site, void* context), void* context);

}  // namespace trainprof::collectors
