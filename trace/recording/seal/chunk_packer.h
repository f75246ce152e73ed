// Compresses the payload of a chunk, as sealed segments and drained files hold it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trace/recording/segments/chunk.h"

namespace trainprof::recording {

// Of zstd. 1 keeps up with a disk: ~500 MB/s; 3 saves some 10 % more at a third of the speed.
inline constexpr int kSealLevel = 1;

class ChunkPacker {
 public:
  ChunkPacker();
  ~ChunkPacker();

  // The stored bytes of a chunk with this payload, valid until the next call, and its encoding in *encoding;
  // empty: there is no memory. `words` is consumed.
  std::span<const char> Pack(const Chunk& chunk, std::vector<uint64_t>& words, int level,
                             ChunkEncoding* encoding);

 private:
  struct Compressor;
  std::unique_ptr<Compressor> compressor_;
  std::vector<char> packed_;
};

}  // namespace trainprof::recording
