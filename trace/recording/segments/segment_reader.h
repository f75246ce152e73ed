// Opens one segment file, raw or sealed, and finds its chunks. Reads with pread, never through a
// mapping: the file may grow, shrink or vanish meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trace/base/result.h"
#include "trace/recording/segments/chunk.h"
#include "trace/recording/segments/drained_file.h"
#include "trace/recording/segments/row_codec.h"
#include "trace/recording/wire/format.h"
#include "trace/tables/quality.h"

namespace trainprof::recording {

// SegmentHeader as plain values.
struct SegmentInfo {
  uint32_t version = 0;
  uint32_t header_bytes = 0;
  uint64_t identity = 0;
  ClockKind clock_kind = ClockKind::kNone;
  int32_t rank = -1;
  int32_t pid = 0;
  int32_t parent_pid = 0;
  uint64_t process_start = 0;
  ClockSample opened{};
  std::string host;
  std::string boot_id;
  std::string options;
  std::string command;

  uint64_t first_detail_drop_ticks = 0;
  uint64_t first_drop_ticks = 0;
  uint64_t dropped_detail = 0;  // with those of the chunks
  uint64_t dropped_all = 0;
  uint64_t dropped_reentrant = 0;
  uint64_t dropped_too_deep = 0;
  uint64_t truncated_strings = 0;
  uint64_t unmatched_pops = 0;
  uint64_t cut_by_window = 0;
  uint64_t overflowed_domains = 0;
  bool failed = false;
  bool clean_exit = false;
  ClockSample closed{};
  std::string failure;
};

// What loading needs beside the result: kept from chunk to chunk, by one thread.
class ChunkScratch {
 public:
  ChunkScratch();
  ChunkScratch(ChunkScratch&& other) noexcept;
  ~ChunkScratch();

 private:
  friend class SegmentReader;
  struct Decompressor;
  std::vector<char> stored_;
  std::vector<uint64_t> payload_;
  RowRuns runs_;
  std::unique_ptr<Decompressor> decompressor_;
};

class SegmentReader {
 public:
  // Reads the headers. Damaged chunks are left out and counted in `quality`. Fails when the file
  // cannot be read or its header is none of ours.
  static Result<SegmentReader> Open(const std::filesystem::path& path, Quality& quality);
  // The segment's header alone; `dropped_*` without those of the chunks.
  static Result<SegmentInfo> ReadInfo(const std::filesystem::path& path);
  SegmentReader(SegmentReader&& other) noexcept;
  SegmentReader& operator=(SegmentReader&& other) noexcept;
  ~SegmentReader();

  const std::filesystem::path& path() const { return path_; }
  const SegmentInfo& info() const { return info_; }
  bool sealed() const { return sealed_; }
  // By writer, then sequence.
  const std::vector<Chunk>& chunks() const { return chunks_; }
  const std::string& sealed_info() const { return sealed_info_; }  // JSON, "" in a raw segment
  // With the drained file's.
  uint64_t file_bytes() const { return file_bytes_ + drained_.bytes(); }
  // The header's bytes as they stand in the file.
  const std::vector<char>& raw_header() const { return raw_header_; }

  // Gives the descriptor back; Load() opens the file again. For runs of thousands of processes.
  void CloseFile();
  // Whether the file is open, maybe again. From then on several threads may Load().
  bool OpenFile() const;

  // The chunk's payload as words; false (and counted) when it is damaged.
  bool Load(const Chunk& chunk, std::vector<uint64_t>& words, ChunkScratch& scratch,
            Quality& quality) const;
  bool Load(const Chunk& chunk, std::vector<uint64_t>& words, Quality& quality) const;
  // The stored bytes of a compressed chunk, which decompress; empty where they do not. Valid as long as the
  // scratch is not used.
  std::span<const char> LoadPacked(const Chunk& chunk, std::vector<uint64_t>& payload,
                                   ChunkScratch& scratch) const;
  // The same for rows, HasColumns(chunk.row_bytes), in the form that is decoded fast.
  bool LoadRuns(const Chunk& chunk, RowRuns& runs, ChunkScratch& scratch, Quality& quality) const;

 private:
  SegmentReader(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  Result<void> ReadHeader();
  void ReadRawChunks(Quality& quality);
  uint64_t FindRawChunks(Quality& quality);  // bytes that they claim
  void AddDrainedChunks();
  void LeaveOutBehindGaps();
  uint32_t HandedOver() const;
  void CheckClaims(uint64_t found, Quality& quality) const;
  Result<void> ReadSealedDirectory(uint64_t stored_bytes);
  // Fails where so many bytes on disk cannot hold that much.
  Result<void> CheckPlausible(uint64_t claimed, uint64_t stored_bytes) const;
  bool ReadAt(uint64_t offset, void* out, size_t size) const;
  bool ReadStored(const Chunk& chunk, void* out) const;
  // `loaded`: where the payload was in the end, which decides on its encoding.
  const char* LoadPayload(const Chunk& chunk, std::vector<uint64_t>& payload, ChunkScratch& scratch,
                          Chunk& loaded) const;
  bool IsStillThere(const Chunk& chunk) const;
  const char* LoadDrained(const Chunk& chunk, std::vector<uint64_t>& payload, ChunkScratch& scratch,
                          Chunk& loaded) const;
  const char* Decompress(const Chunk& chunk, std::vector<uint64_t>& payload,
                         ChunkScratch& scratch) const;
  const char* Unpack(const Chunk& chunk, std::vector<uint64_t>& payload,
                     ChunkScratch& scratch) const;
  bool IsLoaded(const Chunk& chunk, const char* damage, Quality& quality) const;

  std::filesystem::path path_;
  mutable int fd_ = -1;
  uint64_t device_ = 0;  // of the file that was opened first
  uint64_t inode_ = 0;
  SegmentInfo info_;
  bool sealed_ = false;
  uint64_t file_bytes_ = 0;
  std::vector<Chunk> chunks_;
  DrainedFile drained_;
  std::string sealed_info_;
  std::vector<char> raw_header_;
};

}  // namespace trainprof::recording
