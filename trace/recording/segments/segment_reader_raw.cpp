// The chunks of a raw segment, which its process may still write, and those that were drained from it.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "trace/recording/segments/segment_reader.h"

namespace trainprof::recording {
namespace {

bool IsOurs(const ChunkHeader& h, const SegmentInfo& info, uint64_t offset) {
  return h.magic == kChunkMagic && h.identity == info.identity && h.file_offset == offset &&
         h.static_check == CheckOf(&h, offsetof(ChunkHeader, static_check)) &&
         h.size_bytes >= info.header_bytes && h.size_bytes <= kMaxChunkBytes &&
         h.size_bytes % info.header_bytes == 0;
}

// A process killed while it claimed the chunk: the check is written after the fields that it
// covers, and records are committed after both. Nothing was handed over here.
bool IsUnfinishedClaim(const ChunkHeader& header) {
  return (header.magic == kChunkMagic || header.magic == 0) && header.static_check == 0 &&
         header.committed.load(std::memory_order_acquire) == 0;
}

// Bytes that the file of a raw segment must have. A process counts a chunk when its header is
// whole, so that one that was killed amid a claim misses nothing. Earlier recorders did not count:
// there every claim is taken for a chunk, but where the process gave up over one.
uint64_t WholeBytes(const SegmentHeader& header) {
  const uint64_t whole = header.whole_bytes.load(std::memory_order_relaxed);
  if (whole != 0) return whole;
  return header.failed.load(std::memory_order_relaxed) != 0
             ? 0
             : header.next_offset.load(std::memory_order_relaxed);
}

ChunkState StateOf(const ChunkHeader& header) {
  return header.state.load(std::memory_order_relaxed);
}

bool IsZero(const ChunkHeader& h) {
  static const char kZeros[sizeof(ChunkHeader)] = {};
  return memcmp(&h, kZeros, sizeof h) == 0;
}

}  // namespace

// While chunks are handed over, one may become the next one behind our back, and one that was drained may
// be written anew.
void SegmentReader::ReadRawChunks(Quality& quality) {
  constexpr int kMostTries = 10;
  const uint64_t dropped_detail = info_.dropped_detail;
  const uint64_t dropped_all = info_.dropped_all;
  for (int tries = 1;; ++tries) {
    Quality damage;
    chunks_.clear();
    info_.dropped_detail = dropped_detail;
    info_.dropped_all = dropped_all;
    const uint32_t before = HandedOver();
    const uint64_t found = FindRawChunks(damage);
    drained_.Read(path_, info_.identity, damage);
    AddDrainedChunks();
    const bool is_still = HandedOver() == before;
    if (!is_still && tries < kMostTries) continue;
    if (!is_still) LeaveOutBehindGaps();
    if (damage.items().empty()) CheckClaims(found, damage);
    for (const QualityItem& item : damage.items()) {
      quality.Count(item.kind, item.severity, item.count, item.detail);
    }
    return;
  }
}

uint32_t SegmentReader::HandedOver() const {
  uint32_t count = 0;
  return ReadAt(offsetof(SegmentHeader, handed_over), &count, sizeof count) ? count : 0;
}

// Those that are in both are in the segment.
void SegmentReader::AddDrainedChunks() {
  std::stable_sort(chunks_.begin(), chunks_.end(), WrittenBefore);
  std::vector<Chunk> drained;
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (const DrainedEntry& entry : drained_.entries()) {
    const Chunk& chunk = entry.chunk;
    if (std::binary_search(chunks_.begin(), chunks_.end(), chunk, WrittenBefore) ||
        !seen.emplace(chunk.writer, chunk.sequence).second) {
      continue;
    }
    drained.push_back(chunk);
    info_.dropped_detail += entry.dropped_detail;
    info_.dropped_all += entry.dropped_all;
  }
  chunks_.insert(chunks_.end(), drained.begin(), drained.end());
}

// What a writer wrote while the others were looked at comes behind what was not seen.
void SegmentReader::LeaveOutBehindGaps() {
  std::stable_sort(chunks_.begin(), chunks_.end(), WrittenBefore);
  std::vector<Chunk> kept;
  for (const Chunk& chunk : chunks_) {
    const bool is_first = kept.empty() || kept.back().writer != chunk.writer;
    if (chunk.sequence == (is_first ? 0 : kept.back().sequence + 1)) kept.push_back(chunk);
  }
  chunks_ = std::move(kept);
}

uint64_t SegmentReader::FindRawChunks(Quality& quality) {
  bool in_damage = false;
  uint64_t found = 0;
  for (uint64_t offset = info_.header_bytes; offset + sizeof(ChunkHeader) <= file_bytes_;) {
    // Claims that were never written are holes: skip them at once.
    const off_t data = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return found;
    if (data > static_cast<off_t>(offset)) {
      offset = static_cast<uint64_t>(data) / info_.header_bytes * info_.header_bytes;
    }
    ChunkHeader header{};
    if (!ReadAt(offset, static_cast<void*>(&header), sizeof header)) return found;
    if (StateOf(header) == ChunkState::kTaken && header.magic == kChunkMagic &&
        header.file_offset == offset && header.size_bytes >= info_.header_bytes) {
      offset += header.size_bytes;
      found += header.size_bytes;
      continue;
    }
    if (!IsOurs(header, info_, offset)) {
      if (!IsZero(header) && !IsUnfinishedClaim(header) && !in_damage) {
        in_damage = true;
        quality.Count("corrupt_chunk", QualitySeverity::kDataLoss, 1,
                      path_.filename().string() + ": no valid chunk at byte " +
                          std::to_string(offset) + "; skipped");
      }
      offset += info_.header_bytes;
      continue;
    }
    in_damage = false;
    if (StateOf(header) == ChunkState::kDrained) {
      offset += header.size_bytes;
      found += header.size_bytes;
      continue;
    }
    uint64_t committed = header.committed.load(std::memory_order_acquire);
    const uint64_t end = std::min<uint64_t>(offset + header.size_bytes, file_bytes_);
    const uint64_t room = end - offset - sizeof header;
    if (committed > room) {
      quality.Count("truncated_chunk", QualitySeverity::kDataLoss, 1,
                    path_.filename().string() + ": the chunk at byte " + std::to_string(offset) +
                        " holds less than it claims");
      committed = room;
    }
    committed &= ~uint64_t{7};
    info_.dropped_detail += header.dropped_detail.load(std::memory_order_relaxed);
    info_.dropped_all += header.dropped_all.load(std::memory_order_relaxed);
    const auto bytes = static_cast<uint32_t>(committed);
    chunks_.push_back({offset + sizeof header, bytes, bytes, false, ChunkEncoding::kPlain,
                       header.kind, header.row_bytes, header.writer, header.sequence,
                       header.opened});
    offset += header.size_bytes;
    found += header.size_bytes;
  }
  return found;
}

// Files grow by whole chunks, whose sizes are multiples of the header's: another size is that of a
// file that was cut. What was counted and is not here was cut off or wiped.
void SegmentReader::CheckClaims(uint64_t found, Quality& quality) const {
  SegmentHeader header{};
  memcpy(static_cast<void*>(&header), raw_header_.data(), sizeof header);
  const uint64_t whole = WholeBytes(header);
  const std::string file = path_.filename().string();
  if (file_bytes_ % info_.header_bytes != 0 || file_bytes_ < whole) {
    quality.Count("truncated_segment", QualitySeverity::kDataLoss, 1,
                  file + ": " + std::to_string(file_bytes_) +
                      " bytes end within a chunk, or before one: the file was cut");
  } else if (info_.header_bytes + found < whole) {
    quality.Count("corrupt_chunk", QualitySeverity::kDataLoss, 1,
                  file + ": " + std::to_string(whole - info_.header_bytes - found) +
                      " bytes of its chunks are empty");
  }
}

}  // namespace trainprof::recording
