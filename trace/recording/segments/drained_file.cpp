#include "trace/recording/segments/drained_file.h"

#include <sys/stat.h>

#include <utility>

namespace trainprof::recording {

std::filesystem::path DrainedPath(const std::filesystem::path& segment) {
  return segment.string() + kDrainedSuffix;
}

void DrainedFile::Read(const std::filesystem::path& segment, uint64_t identity, Quality& quality) {
  if (!file_.is_open()) {
    path_ = DrainedPath(segment);
    Result<RecordedFile> file = OpenRecorded(path_, Links::kRefuse);
    if (!file.ok()) return;
    DrainedHeader header{};
    if (!ReadFully(file.value().fd.get(), 0, &header, sizeof header))
      return;  // about to be written
    if (header.magic != kDrainedMagic || header.identity != identity) {
      quality.Count("corrupt_chunk", QualitySeverity::kDataLoss, 1,
                    path_.filename().string() + ": not of this segment; left out");
      return;
    }
    device_ = file.value().device;
    inode_ = file.value().inode;
    file_ = std::move(file.value().fd);
    bytes_ = sizeof header;
  }
  struct stat now {};
  if (fstat(file_.get(), &now) != 0) return;
  file_bytes_ = static_cast<uint64_t>(now.st_size);
  while (ReadEntry(quality)) {
  }
}

bool DrainedFile::ReadEntry(Quality& quality) {
  DrainedChunk entry{};
  if (file_bytes_ - bytes_ < sizeof entry || !ReadAt(bytes_, &entry, sizeof entry)) return false;
  const SealedChunk& c = entry.chunk;
  const uint64_t payload = bytes_ + sizeof entry;
  const uint64_t stored = (uint64_t{c.compressed_bytes} + 7) & ~uint64_t{7};
  if (entry.magic != kDrainedChunkMagic ||
      entry.check != CheckOf(&entry, offsetof(DrainedChunk, check)) || c.file_offset != payload ||
      c.payload_bytes > kMaxChunkBytes || c.payload_bytes % 8 != 0) {
    quality.Count("corrupt_chunk", QualitySeverity::kDataLoss, 1,
                  path_.filename().string() + ": no valid chunk at byte " + std::to_string(bytes_) +
                      "; what follows is left out");
    file_bytes_ = bytes_;
    return false;
  }
  if (stored > file_bytes_ - payload) return false;
  entries_.push_back({{c.file_offset, c.compressed_bytes, c.payload_bytes, true,
                       static_cast<ChunkEncoding>(c.encoding), c.kind, c.row_bytes, c.writer,
                       c.sequence, c.opened, true},
                      entry.dropped_detail,
                      entry.dropped_all});
  bytes_ = payload + stored;
  return true;
}

bool DrainedFile::Open() const {
  if (file_.is_open()) return true;
  if (path_.empty()) return false;
  Result<RecordedFile> file = OpenRecorded(path_, Links::kRefuse);
  if (!file.ok() || file.value().device != device_ || file.value().inode != inode_) return false;
  file_ = std::move(file.value().fd);
  return true;
}

bool DrainedFile::ReadAt(uint64_t offset, void* out, size_t size) const {
  return ReadFully(file_.get(), offset, out, size);
}

}  // namespace trainprof::recording
