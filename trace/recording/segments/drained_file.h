// Reads SEGMENT.drained: chunks that were taken out of a raw segment while its process lived (format.h,
// DrainedHeader).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trace/recording/files/recorded_files.h"
#include "trace/recording/segments/chunk.h"
#include "trace/tables/quality.h"

namespace trainprof::recording {

std::filesystem::path DrainedPath(const std::filesystem::path& segment);

struct DrainedEntry {
  Chunk chunk;  // is_drained
  uint64_t dropped_detail = 0;
  uint64_t dropped_all = 0;
};

class DrainedFile {
 public:
  // Reads what has been added since, from the file beside the segment of that identity, which may not be there.
  // What ends within a chunk is still in the segment.
  void Read(const std::filesystem::path& segment, uint64_t identity, Quality& quality);

  const std::vector<DrainedEntry>& entries() const { return entries_; }
  uint64_t bytes() const { return bytes_; }  // of the chunks that are whole, and the header

  // As the segment's own file.
  void Close() { file_ = OwnedFd(); }
  bool Open() const;
  bool ReadAt(uint64_t offset, void* out, size_t size) const;

 private:
  bool ReadEntry(Quality& quality);

  std::filesystem::path path_;
  mutable OwnedFd file_;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  uint64_t bytes_ = 0;
  uint64_t file_bytes_ = 0;
  std::vector<DrainedEntry> entries_;
};

}  // namespace trainprof::recording
