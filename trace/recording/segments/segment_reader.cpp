#include "trace/recording/segments/segment_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <utility>

#include "trace/recording/files/recorded_files.h"

namespace trainprof::recording {
namespace {

constexpr uint32_t kLeastHeaderBytes = 4096;
constexpr uint32_t kMostHeaderBytes = 1024 * 1024;
constexpr uint32_t kMostInfoBytes = 64 * 1024 * 1024;
// Sealed segments shrink to 1/2 to 1/40, since times differ. What claims to hold far more than its
// file has room for was made to fill our memory.
constexpr uint64_t kMostExpansion = 1024;
constexpr uint64_t kAlwaysAllowedBytes = 256 * 1024 * 1024;
constexpr uint64_t kBlockBytes = 512;  // of st_blocks, on all file systems

constexpr const char* kNoSuchRows = "holds no rows of the size that it claims";

template <size_t N>
std::string Text(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}

uint64_t Value(const std::atomic<uint64_t>& value) { return value.load(std::memory_order_relaxed); }

SegmentInfo Describe(const SegmentHeader& h) {
  SegmentInfo info;
  info.version = h.version;
  info.header_bytes = h.header_bytes;
  info.identity = h.identity;
  info.clock_kind = h.clock_kind;
  info.rank = h.rank;
  info.pid = h.pid;
  info.parent_pid = h.parent_pid;
  info.process_start = h.process_start;
  info.opened = h.opened;
  info.host = Text(h.host);
  info.boot_id = Text(h.boot_id);
  info.options = Text(h.options);
  info.command = Text(h.command);
  info.first_detail_drop_ticks = Value(h.first_detail_drop_ticks);
  info.first_drop_ticks = Value(h.first_drop_ticks);
  info.dropped_detail = Value(h.dropped_detail);
  info.dropped_all = Value(h.dropped_all);
  info.dropped_reentrant = Value(h.dropped_reentrant);
  info.dropped_too_deep = Value(h.dropped_too_deep);
  info.truncated_strings = Value(h.truncated_strings);
  info.unmatched_pops = Value(h.unmatched_pops);
  info.cut_by_window = Value(h.cut_by_window);
  info.overflowed_domains = Value(h.overflowed_domains);
  info.failed = h.failed.load(std::memory_order_relaxed) != 0;
  info.clean_exit = h.clean_exit.load(std::memory_order_relaxed) != 0;
  info.closed = h.closed;
  info.failure = Text(h.failure);
  return info;
}

// False where chunks share bytes, or lie in the directory: the sealer writes one behind the other.
// Those beyond the file's end are left out when they are loaded.
bool AreApart(const std::vector<Chunk>& chunks, uint64_t begin) {
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (const Chunk& chunk : chunks) places.emplace_back(chunk.file_offset, chunk.stored_bytes);
  std::sort(places.begin(), places.end());
  for (const auto& [offset, bytes] : places) {
    if (offset < begin || bytes > UINT64_MAX - offset) return false;
    begin = offset + bytes;
  }
  return true;
}

}  // namespace

// One context for all chunks: to make it costs more than to decompress a small one.
struct ChunkScratch::Decompressor {
  Decompressor() : context(ZSTD_createDCtx()) {}
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { ZSTD_freeDCtx(context); }

  // The bytes that came out; anything else than the room for them is an error.
  size_t Run(const std::vector<char>& stored, std::vector<uint64_t>& payload) const {
    if (context == nullptr) return SIZE_MAX;
    return ZSTD_decompressDCtx(context, payload.data(), payload.size() * 8, stored.data(),
                               stored.size());
  }

  ZSTD_DCtx* const context;
};

ChunkScratch::ChunkScratch() = default;
ChunkScratch::ChunkScratch(ChunkScratch&& other) noexcept = default;
ChunkScratch::~ChunkScratch() = default;

Result<SegmentInfo> SegmentReader::ReadInfo(const std::filesystem::path& path) {
  Result<RecordedFile> file = OpenRecorded(path, Links::kRefuse);
  if (!file.ok()) return Error{file.error()};
  SegmentReader reader(path, file.value().fd.Release());
  if (Result<void> header = reader.ReadHeader(); !header.ok()) return Error{header.error()};
  return std::move(reader.info_);
}

Result<SegmentReader> SegmentReader::Open(const std::filesystem::path& path, Quality& quality) {
  Result<RecordedFile> file = OpenRecorded(path, Links::kRefuse);
  if (!file.ok()) return Error{file.error()};
  SegmentReader reader(path, file.value().fd.Release());
  reader.device_ = file.value().device;
  reader.inode_ = file.value().inode;
  if (Result<void> header = reader.ReadHeader(); !header.ok()) return Error{header.error()};
  // After the header: the file of a living process must not seem shorter than what that counts.
  struct stat now {};
  if (fstat(reader.fd_, &now) != 0) return Error{path.string() + ": cannot be read"};
  reader.file_bytes_ = static_cast<uint64_t>(now.st_size);
  // A file system that does not count blocks says 0.
  const uint64_t on_disk = static_cast<uint64_t>(now.st_blocks) * kBlockBytes;
  uint64_t stored = on_disk == 0 ? reader.file_bytes_ : std::min(on_disk, reader.file_bytes_);
  if (reader.sealed_) {
    if (Result<void> read = reader.ReadSealedDirectory(stored); !read.ok())
      return Error{read.error()};
  } else {
    reader.ReadRawChunks(quality);
    stored += reader.drained_.bytes();
  }
  uint64_t claimed = 0;
  for (const Chunk& chunk : reader.chunks_) claimed += chunk.payload_bytes;
  if (Result<void> plausible = reader.CheckPlausible(claimed, stored); !plausible.ok()) {
    return Error{plausible.error()};
  }
  std::stable_sort(reader.chunks_.begin(), reader.chunks_.end(), WrittenBefore);
  return reader;
}

SegmentReader::SegmentReader(SegmentReader&& other) noexcept : fd_(-1) { *this = std::move(other); }

SegmentReader& SegmentReader::operator=(SegmentReader&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  std::swap(info_, other.info_);
  std::swap(sealed_, other.sealed_);
  std::swap(file_bytes_, other.file_bytes_);
  std::swap(chunks_, other.chunks_);
  std::swap(drained_, other.drained_);
  std::swap(sealed_info_, other.sealed_info_);
  std::swap(raw_header_, other.raw_header_);
  return *this;
}

SegmentReader::~SegmentReader() { CloseFile(); }

void SegmentReader::CloseFile() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  drained_.Close();
}

bool SegmentReader::ReadAt(uint64_t offset, void* out, size_t size) const {
  return ReadFully(fd_, offset, out, size);
}

Result<void> SegmentReader::ReadHeader() {
  raw_header_.resize(sizeof(SegmentHeader));
  if (!ReadAt(0, raw_header_.data(), raw_header_.size())) {
    return Error{path_.string() +
                 ": shorter than a segment's header; the process was killed while "
                 "it began, or the file was cut"};
  }
  SegmentHeader header{};
  memcpy(static_cast<void*>(&header), raw_header_.data(), sizeof header);
  if (header.magic != kSegmentMagic && header.magic != kSealedMagic) {
    return Error{path_.string() + ": not a segment of a recording"};
  }
  sealed_ = header.magic == kSealedMagic;
  if (header.version > kFormatVersion) {
    return Error{path_.string() + ": format version " + std::to_string(header.version) +
                 ", this trainprof reads up to " + std::to_string(kFormatVersion) +
                 ": read it with the trainprof that recorded it, or a newer one"};
  }
  header.magic = kSegmentMagic;  // the check is that of the raw segment
  if (header.static_check != CheckOf(&header, offsetof(SegmentHeader, static_check)) ||
      header.header_bytes < kLeastHeaderBytes || header.header_bytes > kMostHeaderBytes ||
      (header.header_bytes & (header.header_bytes - 1)) != 0) {
    return Error{path_.string() + ": the segment's header is damaged"};
  }
  info_ = Describe(header);
  return {};
}

Result<void> SegmentReader::ReadSealedDirectory(uint64_t stored_bytes) {
  const auto damaged = [&] {
    return Error{path_.string() + ": the sealed segment's directory is damaged"};
  };
  SealedHeader sealed{};
  uint64_t offset = sizeof(SegmentHeader);
  if (!ReadAt(offset, &sealed, sizeof sealed)) return damaged();
  offset += sizeof sealed;
  const uint64_t table_bytes = uint64_t{sealed.chunks} * sizeof(SealedChunk);
  const uint64_t payloads = offset + table_bytes + sealed.info_bytes;
  if (sealed.info_bytes > kMostInfoBytes || sealed.info_bytes % 8 != 0 || payloads > file_bytes_) {
    return damaged();
  }
  if (auto plausible = CheckPlausible(payloads, stored_bytes); !plausible.ok()) return plausible;
  std::vector<char> directory(table_bytes + sealed.info_bytes);
  if (!ReadAt(offset, directory.data(), directory.size()) ||
      CheckOf(directory.data(), directory.size()) != sealed.check) {
    return damaged();
  }
  for (uint32_t i = 0; i < sealed.chunks; ++i) {
    SealedChunk c{};
    memcpy(&c, directory.data() + i * sizeof c, sizeof c);
    if (c.payload_bytes > kMaxChunkBytes || c.payload_bytes % 8 != 0) return damaged();
    chunks_.push_back({c.file_offset, c.compressed_bytes, c.payload_bytes, true,
                       static_cast<ChunkEncoding>(c.encoding), c.kind, c.row_bytes, c.writer,
                       c.sequence, c.opened});
  }
  if (!AreApart(chunks_, payloads)) {
    return Error{path_.string() + ": the sealed segment's directory is damaged: chunks overlap"};
  }
  const char* text = directory.data() + table_bytes;
  sealed_info_.assign(text, strnlen(text, sealed.info_bytes));
  return {};
}

Result<void> SegmentReader::CheckPlausible(uint64_t claimed, uint64_t stored_bytes) const {
  if (claimed <= std::max(kAlwaysAllowedBytes, stored_bytes * kMostExpansion)) return {};
  return Error{path_.string() + ": damaged: claims to hold " + std::to_string(claimed >> 20) +
               " MiB in a file of " + std::to_string(stored_bytes >> 10) + " KiB"};
}

bool SegmentReader::OpenFile() const {
  if (!drained_.entries().empty() && !drained_.Open()) return false;
  if (fd_ >= 0) return true;
  Result<RecordedFile> file = OpenRecorded(path_, Links::kRefuse);
  // What has taken its place is another file, of which nothing is known.
  if (!file.ok() || file.value().device != device_ || file.value().inode != inode_) return false;
  fd_ = file.value().fd.Release();
  return true;
}

// The payload in its encoding. What is wrong with it, or nullptr.
const char* SegmentReader::LoadPayload(const Chunk& chunk, std::vector<uint64_t>& payload,
                                       ChunkScratch& scratch, Chunk& loaded) const {
  loaded = chunk;
  const uint64_t bytes = chunk.is_drained ? drained_.bytes() : file_bytes_;
  if (chunk.file_offset > bytes || chunk.stored_bytes > bytes - chunk.file_offset) {
    return "lies beyond the file's end";
  }
  if (!OpenFile()) return "cannot be read: the file is gone";
  if (chunk.compressed) return Decompress(chunk, payload, scratch);
  payload.resize(chunk.payload_bytes / 8);
  if (!ReadStored(chunk, payload.data())) return "cannot be read";
  return IsStillThere(chunk) ? nullptr : LoadDrained(chunk, payload, scratch, loaded);
}

// Whether what was read of a raw chunk was its own: it may have been drained and taken meanwhile.
bool SegmentReader::IsStillThere(const Chunk& chunk) const {
  ChunkHeader header{};
  return ReadAt(chunk.file_offset - sizeof header, static_cast<void*>(&header), sizeof header) &&
         header.state.load(std::memory_order_relaxed) != ChunkState::kTaken &&
         header.writer == chunk.writer && header.sequence == chunk.sequence;
}

const char* SegmentReader::LoadDrained(const Chunk& chunk, std::vector<uint64_t>& payload,
                                       ChunkScratch& scratch, Chunk& loaded) const {
  DrainedFile drained;
  Quality ignored;
  drained.Read(path_, info_.identity, ignored);
  for (const DrainedEntry& entry : drained.entries()) {
    if (entry.chunk.writer != chunk.writer || entry.chunk.sequence != chunk.sequence) continue;
    loaded = entry.chunk;
    scratch.stored_.resize(loaded.stored_bytes);
    if (!drained.ReadAt(loaded.file_offset, scratch.stored_.data(), loaded.stored_bytes)) {
      return "cannot be read";
    }
    return Unpack(loaded, payload, scratch);
  }
  return "was written over";
}

bool SegmentReader::ReadStored(const Chunk& chunk, void* out) const {
  return chunk.is_drained ? drained_.ReadAt(chunk.file_offset, out, chunk.stored_bytes)
                          : ReadAt(chunk.file_offset, out, chunk.stored_bytes);
}

const char* SegmentReader::Decompress(const Chunk& chunk, std::vector<uint64_t>& payload,
                                      ChunkScratch& scratch) const {
  scratch.stored_.resize(chunk.stored_bytes);
  if (!ReadStored(chunk, scratch.stored_.data())) return "cannot be read";
  return Unpack(chunk, payload, scratch);
}

// Out of scratch.stored_.
const char* SegmentReader::Unpack(const Chunk& chunk, std::vector<uint64_t>& payload,
                                  ChunkScratch& scratch) const {
  if (chunk.encoding > ChunkEncoding::kPlanes ||
      (chunk.encoding != ChunkEncoding::kPlain && !HasColumns(chunk.row_bytes))) {
    return "has an encoding that this version does not know";
  }
  uint64_t bytes = chunk.payload_bytes;
  if (chunk.encoding == ChunkEncoding::kPlanes) {
    bytes = ZSTD_getFrameContentSize(scratch.stored_.data(), scratch.stored_.size());
    if (bytes > 8 * MostPackedWords(chunk.payload_bytes / 8, chunk.row_bytes)) {
      return "does not decompress";
    }
  }
  payload.resize(bytes / 8);
  if (!scratch.decompressor_) {
    scratch.decompressor_ = std::make_unique<ChunkScratch::Decompressor>();
  }
  const size_t n = scratch.decompressor_->Run(scratch.stored_, payload);
  return n == payload.size() * 8 ? nullptr : "does not decompress";
}

bool SegmentReader::IsLoaded(const Chunk& chunk, const char* damage, Quality& quality) const {
  if (damage == nullptr) return true;
  quality.Count("corrupt_chunk", QualitySeverity::kDataLoss, 1,
                path_.filename().string() + ": the chunk at byte " +
                    std::to_string(chunk.file_offset) + " " + damage + "; skipped");
  return false;
}

bool SegmentReader::LoadRuns(const Chunk& chunk, RowRuns& runs, ChunkScratch& scratch,
                             Quality& quality) const {
  std::vector<uint64_t>& payload = scratch.payload_;
  Chunk loaded;
  const char* damage = LoadPayload(chunk, payload, scratch, loaded);
  if (damage == nullptr) {
    if (loaded.encoding == ChunkEncoding::kPlain) {
      RunsOf(payload, chunk.row_bytes, runs);
    } else if (!UnpackRuns(payload, loaded.encoding, loaded.payload_bytes / 8, chunk.row_bytes,
                           runs)) {
      damage = kNoSuchRows;
    }
  }
  return IsLoaded(chunk, damage, quality);
}

bool SegmentReader::Load(const Chunk& chunk, std::vector<uint64_t>& words, ChunkScratch& scratch,
                         Quality& quality) const {
  if (chunk.encoding == ChunkEncoding::kPlain) {
    Chunk loaded;
    const char* damage = LoadPayload(chunk, words, scratch, loaded);
    if (damage == nullptr && loaded.encoding != ChunkEncoding::kPlain) {
      if (UnpackRuns(words, loaded.encoding, loaded.payload_bytes / 8, chunk.row_bytes,
                     scratch.runs_)) {
        RowsOf(scratch.runs_, chunk.row_bytes, words);
      } else {
        damage = kNoSuchRows;
      }
    }
    return IsLoaded(chunk, damage, quality);
  }
  if (!LoadRuns(chunk, scratch.runs_, scratch, quality)) return false;
  RowsOf(scratch.runs_, chunk.row_bytes, words);
  return true;
}

std::span<const char> SegmentReader::LoadPacked(const Chunk& chunk, std::vector<uint64_t>& payload,
                                                ChunkScratch& scratch) const {
  Chunk loaded;
  if (LoadPayload(chunk, payload, scratch, loaded) != nullptr) return {};
  return scratch.stored_;
}

bool SegmentReader::Load(const Chunk& chunk, std::vector<uint64_t>& words, Quality& quality) const {
  ChunkScratch scratch;
  return Load(chunk, words, scratch, quality);
}

}  // namespace trainprof::recording
