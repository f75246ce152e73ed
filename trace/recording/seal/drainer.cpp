#include "trace/recording/seal/drainer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "trace/io/write_all.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/seal/chunk_packer.h"
#include "trace/recording/segments/drained_file.h"
#include "trace/recording/segments/segment_liveness.h"
#include "trace/recording/segments/segment_reader.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// A process that records less is not worth a file of its own.
constexpr uint64_t kLeastBytes = 320 * 1024;
// Where chunks come faster than they are packed well; ~1 GB/s, files a third larger.
constexpr int kHurriedLevel = -5;
constexpr size_t kManyChunks = 2;

constexpr uint64_t Padded(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

}  // namespace

// The size bound of the run, which its processes share.
class DrainBound {
 public:
  explicit DrainBound(const fs::path& run_dir) {
    const Result<RecordedFolder> folder = OpenFolder(run_dir, Links::kFollow);
    if (!folder.ok()) return;
    const Result<RecordedFile> file = folder.value().Change(kControlFile);
    if (!file.ok() || file.value().bytes < sizeof(RunControl)) return;
    void* map = mmap(nullptr, sizeof(RunControl), PROT_READ | PROT_WRITE, MAP_SHARED,
                     file.value().fd.get(), 0);
    if (map != MAP_FAILED) control_ = static_cast<RunControl*>(map);
  }
  DrainBound(const DrainBound&) = delete;
  DrainBound& operator=(const DrainBound&) = delete;
  ~DrainBound() {
    if (control_ != nullptr) munmap(control_, sizeof(RunControl));
  }

  bool Reserve(uint64_t bytes) const {
    if (control_ == nullptr) return false;
    uint64_t used = control_->used_bytes.load(std::memory_order_relaxed);
    while (used <= control_->max_bytes && bytes <= control_->max_bytes - used) {
      if (control_->used_bytes.compare_exchange_weak(used, used + bytes)) return true;
    }
    return false;
  }
  void Unreserve(uint64_t bytes) const { control_->used_bytes.fetch_sub(bytes); }

 private:
  RunControl* control_ = nullptr;
};

class SegmentDrain {
 public:
  // Of the segment of a living process of this machine, which has recorded enough.
  static std::unique_ptr<SegmentDrain> Open(const fs::path& path, const DrainBound& bound) {
    Result<SegmentInfo> info = SegmentReader::ReadInfo(path);
    if (!info.ok() || info.value().version < kFormatVersion) return nullptr;
    Result<RecordedFolder> folder = OpenFolder(path.parent_path(), Links::kRefuse);
    if (!folder.ok()) return nullptr;
    Result<RecordedFile> file = folder.value().Read(path.filename());
    if (!file.ok()) return nullptr;
    std::unique_ptr<SegmentDrain> drain(new SegmentDrain(
        path, std::move(folder).value(), std::move(info).value(), std::move(file.value().fd)));
    return drain->Begin(bound) ? std::move(drain) : nullptr;
  }

  size_t Drain(const DrainBound& bound) {
    if (is_over_) return 0;
    const uint32_t handed_over = ReadWord(offsetof(SegmentHeader, handed_over));
    if (handed_over == seen_) return 0;
    const bool found_all = FindChunks();
    std::vector<Known> full;
    for (Known& known : known_) {
      ChunkHeader header{};
      if (!ReadHeader(known.offset, header)) continue;
      const ChunkState state = header.state.load(std::memory_order_relaxed);
      if (state == ChunkState::kHandedOver) full.push_back(known);
      known.is_current = IsCurrent(header, state);
      known.idle_looks = known.is_current ? 0 : known.idle_looks + 1;
    }
    // Oldest first, so that what is torn at the end is the end.
    std::sort(full.begin(), full.end(),
              [](const Known& a, const Known& b) { return a.offset < b.offset; });
    const int level = full.size() > kManyChunks ? kHurriedLevel : kSealLevel;
    size_t taken = 0;
    for (const Known& known : full) {
      if (!Take(known.offset, level, bound)) break;
      ++taken;
    }
    ForgetIdleChunks();
    // What was handed over after the count was read is looked at next time.
    if (found_all && taken == full.size()) seen_ = handed_over;
    return taken;
  }

 private:
  struct Known {
    uint64_t offset = 0;
    uint32_t idle_looks = 0;
    bool is_current = true;
  };

  SegmentDrain(fs::path path, RecordedFolder folder, SegmentInfo info, OwnedFd segment)
      : path_(std::move(path)),
        folder_(std::move(folder)),
        info_(std::move(info)),
        segment_(std::move(segment)),
        next_(info_.header_bytes) {}

  uint64_t ReadLong(uint64_t offset) const {
    uint64_t value = 0;
    return ReadFully(segment_.get(), offset, &value, sizeof value) ? value : 0;
  }
  uint32_t ReadWord(uint64_t offset) const {
    uint32_t value = 0;
    return ReadFully(segment_.get(), offset, &value, sizeof value) ? value : 0;
  }
  // Into the segment, which is open for writing for so long only: others ask by that whether it is written.
  bool WriteWord(uint64_t offset, uint32_t value) const {
    const Result<RecordedFile> file = folder_.Change(path_.filename());
    return file.ok() && pwrite(file.value().fd.get(), &value, sizeof value,
                               static_cast<off_t>(offset)) == sizeof value;
  }

  // Makes the other file, or goes on with the one that an earlier supervisor left.
  bool Begin(const DrainBound& bound) {
    const std::string name = DrainedPath(path_).filename();
    OwnedFd fd;
    if (folder_.Has(name)) {
      Result<RecordedFile> file = folder_.Change(name);
      if (file.ok()) fd = std::move(file.value().fd);
    } else {
      fd = OwnedFd(folder_.Create(name));
    }
    // One that another supervisor drains.
    if (!fd.is_open() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
    DrainedFile before;
    Quality damage;
    before.Read(path_, info_.identity, damage);
    if (!damage.items().empty()) return false;
    for (const DrainedEntry& entry : before.entries()) {
      taken_.emplace(entry.chunk.writer, entry.chunk.sequence);
    }
    end_ = before.bytes();
    if (end_ == 0) {
      const DrainedHeader header = {kDrainedMagic, info_.identity};
      if (!bound.Reserve(sizeof header) || WriteAll(fd.get(), BytesOf(header)) != 0) return false;
      end_ = sizeof header;
    }
    if (ftruncate(fd.get(), static_cast<off_t>(end_)) != 0 ||
        lseek(fd.get(), static_cast<off_t>(end_), SEEK_SET) < 0 ||
        !WriteWord(offsetof(SegmentHeader, is_drained), 1)) {
      return false;
    }
    drained_ = std::move(fd);
    return true;
  }

  // Until something stands in the way: writers then claim new chunks.
  bool End() {
    is_over_ = true;
    WriteWord(offsetof(SegmentHeader, is_drained), 0);
    return false;
  }

  bool ReadHeader(uint64_t offset, ChunkHeader& header) const {
    return ReadFully(segment_.get(), offset, static_cast<void*>(&header), sizeof header) &&
           header.magic == kChunkMagic && header.identity == info_.identity &&
           header.file_offset == offset && header.size_bytes >= info_.header_bytes &&
           header.size_bytes <= kMaxChunkBytes && header.size_bytes % info_.header_bytes == 0;
  }

  // False: up to one that is still being claimed.
  bool FindChunks() {
    const uint64_t end = ReadLong(offsetof(SegmentHeader, next_offset));
    while (next_ < end) {
      ChunkHeader header{};
      if (!ReadHeader(next_, header) || header.static_check == 0) return false;
      known_.push_back({next_});
      next_ += header.size_bytes;
    }
    return true;
  }

  // Whether the chunk may still be handed over, or is on its way.
  bool IsCurrent(const ChunkHeader& header, ChunkState state) {
    uint32_t& newest = newest_[{header.writer, header.kind}];
    newest = std::max(newest, header.sequence);
    return state != ChunkState::kWritten || header.sequence == newest;
  }

  // Those that their writers gave up, as they filled them faster than they were drained.
  void ForgetIdleChunks() {
    constexpr uint32_t kLooks = 3;  // its writer takes the next one before it hands it over
    std::erase_if(known_, [](const Known& known) { return known.idle_looks >= kLooks; });
  }

  bool Take(uint64_t offset, int level, const DrainBound& bound) {
    ChunkHeader header{};
    if (!ReadHeader(offset, header)) return End();
    const uint64_t committed = header.committed.load(std::memory_order_acquire);
    const auto key = std::pair(header.writer, header.sequence);
    if (committed % 8 != 0 || committed > header.size_bytes - sizeof header) return End();
    if (!taken_.contains(key)) {
      Chunk chunk;
      chunk.file_offset = offset + sizeof header;
      chunk.payload_bytes = static_cast<uint32_t>(committed);
      chunk.kind = header.kind;
      chunk.row_bytes = header.row_bytes;
      words_.resize(committed / 8);
      if (!ReadFully(segment_.get(), chunk.file_offset, words_.data(), committed)) return End();
      ChunkEncoding encoding{};
      const std::span<const char> packed = packer_.Pack(chunk, words_, level, &encoding);
      if (packed.empty() || !Append(header, packed, encoding, bound)) return End();
    }
    return WriteWord(offset + offsetof(ChunkHeader, state),
                     static_cast<uint32_t>(ChunkState::kDrained)) ||
           End();
  }

  bool Append(const ChunkHeader& header, std::span<const char> packed, ChunkEncoding encoding,
              const DrainBound& bound) {
    DrainedChunk entry{};
    const uint64_t bytes = sizeof entry + Padded(packed.size());
    if (!bound.Reserve(bytes)) return false;
    entry.magic = kDrainedChunkMagic;
    entry.chunk = {end_ + sizeof entry,
                   static_cast<uint32_t>(packed.size()),
                   static_cast<uint32_t>(header.committed.load(std::memory_order_relaxed)),
                   header.kind,
                   header.row_bytes,
                   header.writer,
                   header.sequence,
                   static_cast<uint32_t>(encoding),
                   header.opened};
    entry.dropped_detail = header.dropped_detail.load(std::memory_order_relaxed);
    entry.dropped_all = header.dropped_all.load(std::memory_order_relaxed);
    entry.check = CheckOf(&entry, offsetof(DrainedChunk, check));
    text_.assign(reinterpret_cast<const char*>(&entry), sizeof entry);
    text_.append(packed.data(), packed.size());
    text_.resize(bytes, '\0');
    if (WriteAll(drained_.get(), text_) != 0) {
      bound.Unreserve(bytes);
      // What came through and stays is torn, and not looked at.
      [[maybe_unused]] const int cut = ftruncate(drained_.get(), static_cast<off_t>(end_));
      return false;
    }
    end_ += bytes;
    return true;
  }

  const fs::path path_;
  const RecordedFolder folder_;
  const SegmentInfo info_;
  const OwnedFd segment_;
  OwnedFd drained_;
  bool is_over_ = false;
  uint32_t seen_ = 0;  // chunks that had been handed over
  uint64_t next_;      // behind the last known chunk
  uint64_t end_ = 0;   // of the drained file
  std::vector<Known> known_;
  std::map<std::pair<uint32_t, ChunkKind>, uint32_t> newest_;  // sequence
  std::set<std::pair<uint32_t, uint32_t>> taken_;  // by an earlier supervisor: writer, sequence
  ChunkPacker packer_;
  std::vector<uint64_t> words_;
  std::string text_;
};

Drainer::Drainer(fs::path run_dir)
    : run_dir_(std::move(run_dir)), bound_(std::make_unique<DrainBound>(run_dir_)) {}

Drainer::~Drainer() = default;

void Drainer::FindSegments() {
  for (const RankFolder& folder : RankFoldersIn(run_dir_)) {
    for (const fs::path& path : folder.segments) {
      std::error_code error;
      if (path.extension() != kSegmentSuffix || segments_.contains(path) ||
          fs::file_size(path, error) < kLeastBytes || error) {
        continue;
      }
      // /proc tells of processes of this place alone.
      const bool is_ours = IsNamedHere(path) && IsStillRecorded(path);
      segments_.emplace(path, is_ours ? SegmentDrain::Open(path, *bound_) : nullptr);
    }
  }
}

void Drainer::LeaveTheDead() {
  for (auto& [path, segment] : segments_) {
    if (segment != nullptr && !IsStillRecorded(path)) segment = nullptr;
  }
}

size_t Drainer::Drain() {
  size_t taken = 0;
  for (auto& [path, segment] : segments_) {
    if (segment != nullptr) taken += segment->Drain(*bound_);
  }
  return taken;
}

int DrainUntilStopped(const fs::path& run_dir, int stop_fd) {
  using Clock = std::chrono::steady_clock;
  // Where the program needs all processors it has them: what is not drained is sealed at the end.
  constexpr int kNiceness = 10;
  setpriority(PRIO_PROCESS, 0, kNiceness);
  constexpr milliseconds kLongest{64};
  constexpr milliseconds kLooksForNew{250};
  constexpr milliseconds kLooksForDead{2000};
  Drainer drainer(run_dir);
  milliseconds wait = kLongest;
  Clock::time_point next_look{};
  Clock::time_point next_dead{};
  for (;;) {
    pollfd stop = {stop_fd, POLLIN, 0};
    if (poll(&stop, 1, static_cast<int>(wait.count())) > 0) return 0;
    if (Clock::now() >= next_look) {
      drainer.FindSegments();
      next_look = Clock::now() + kLooksForNew;
    }
    if (Clock::now() >= next_dead) {
      drainer.LeaveTheDead();
      next_dead = Clock::now() + kLooksForDead;
    }
    const size_t taken = drainer.Drain();
    // A busy thread fills a chunk in a tenth of a millisecond, a usual program one in a second.
    wait = taken > 0 ? milliseconds(taken > 1 ? 0 : 1)
                     : std::clamp(wait * 2, milliseconds(1), kLongest);
  }
}

}  // namespace trainprof::recording
