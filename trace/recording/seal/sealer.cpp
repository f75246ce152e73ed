#include "trace/recording/seal/sealer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "trace/io/write_all.h"
#include "trace/recording/files/clock_log.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/files/run_files.h"
#include "trace/recording/seal/chunk_packer.h"
#include "trace/recording/seal/manifest.h"
#include "trace/recording/seal/symbols_file.h"
#include "trace/recording/segments/segment_liveness.h"
#include "trace/recording/segments/segment_reader.h"
#include "trace/recording/segments/segment_scan.h"
#include "trace/recording/wire/access.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;
using Deadline = std::chrono::steady_clock::time_point;

bool IsOver(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

Error SystemError(const fs::path& path, const char* what) {
  return {path.string() + ": cannot " + what + ": " + strerror(errno)};
}

// A file that is removed again unless Keep() is called.
class TemporaryFile {
 public:
  TemporaryFile(const RecordedFolder& folder, std::string name)
      : folder_(folder), name_(std::move(name)), fd_(folder.Create(name_)) {}
  ~TemporaryFile() {
    if (fd_.is_open() && !name_.empty()) folder_.Remove(name_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_.get(); }
  bool RenameTo(const std::string& target) {
    if (!folder_.Rename(name_, target)) return false;
    name_.clear();
    return true;
  }

 private:
  const RecordedFolder& folder_;
  std::string name_;
  OwnedFd fd_;
};

std::string SealedInfoOf(const SegmentScan& scan) {
  nlohmann::json threads = nlohmann::json::array();
  for (const auto& [tid, name] : scan.threads) threads.push_back({{"tid", tid}, {"name", name}});
  std::string text = nlohmann::json{{"events", scan.events}, {"threads", std::move(threads)}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.append(8 - text.size() % 8, '\0');
  return text;
}

class SealedWriter {
 public:
  SealedWriter(const SegmentReader& segment, int fd) : segment_(segment), fd_(fd) {}

  // False: out of time, of disk, or of readable input; the file is then worth nothing.
  bool Write(Deadline deadline) {
    Quality quality;
    const std::string info = SealedInfoOf(ScanSegment(segment_, quality));
    if (!quality.items().empty()) return false;  // a damaged segment stays as evidence
    const uint64_t directory_bytes = segment_.chunks().size() * sizeof(SealedChunk) + info.size();
    offset_ = sizeof(SegmentHeader) + sizeof(SealedHeader) + directory_bytes;
    if (lseek(fd_, static_cast<off_t>(offset_), SEEK_SET) < 0) return false;
    for (const Chunk& chunk : segment_.chunks()) {
      if (IsOver(deadline) || !AddChunk(chunk)) return false;
    }
    return WriteDirectory(info);
  }

 private:
  bool AddChunk(const Chunk& chunk) {
    Quality quality;
    std::span<const char> packed;
    ChunkEncoding encoding = chunk.encoding;
    if (chunk.is_drained) {
      packed = segment_.LoadPacked(chunk, words_, scratch_);
    } else if (segment_.Load(chunk, words_, scratch_, quality)) {
      packed = packer_.Pack(chunk, words_, kSealLevel, &encoding);
    }
    if (packed.empty() || WriteAll(fd_, {packed.data(), packed.size()}) != 0) return false;
    table_.push_back({offset_, static_cast<uint32_t>(packed.size()), chunk.payload_bytes,
                      chunk.kind, chunk.row_bytes, chunk.writer, chunk.sequence,
                      static_cast<uint32_t>(encoding), chunk.opened});
    offset_ += packed.size();
    return true;
  }

  bool WriteDirectory(const std::string& info) {
    std::vector<char> directory(table_.size() * sizeof(SealedChunk) + info.size());
    if (!table_.empty()) {
      memcpy(directory.data(), table_.data(), table_.size() * sizeof(SealedChunk));
    }
    memcpy(directory.data() + table_.size() * sizeof(SealedChunk), info.data(), info.size());
    SegmentHeader header{};
    memcpy(static_cast<void*>(&header), segment_.raw_header().data(), sizeof header);
    header.magic = kSealedMagic;
    header.next_offset.store(segment_.file_bytes());
    // The chunks' own counters go with their headers: the segment's keep the sums.
    header.dropped_detail.store(segment_.info().dropped_detail);
    header.dropped_all.store(segment_.info().dropped_all);
    const SealedHeader sealed = {static_cast<uint32_t>(table_.size()),
                                 static_cast<uint32_t>(info.size()),
                                 CheckOf(directory.data(), directory.size())};
    return lseek(fd_, 0, SEEK_SET) == 0 && WriteAll(fd_, BytesOf(header)) == 0 &&
           WriteAll(fd_, BytesOf(sealed)) == 0 &&
           WriteAll(fd_, {directory.data(), directory.size()}) == 0;
  }

  const SegmentReader& segment_;
  const int fd_;
  ChunkPacker packer_;
  ChunkScratch scratch_;
  uint64_t offset_ = 0;
  std::vector<SealedChunk> table_;
  std::vector<uint64_t> words_;
};

// The drained file comes last: without it the raw segment is not whole.
void RemoveRaw(const RecordedFolder& folder, const fs::path& raw) {
  folder.Remove(raw.filename());
  folder.Remove(DrainedPath(raw).filename());
}

// The raw segment is left beside the sealed one when the sealer was stopped between its last two
// steps.
void RemoveLeftRaw(const RecordedFolder& folder, const fs::path& sealed_path) {
  const fs::path raw_path = fs::path(sealed_path).replace_extension(kSegmentSuffix);
  if (!folder.Has(raw_path.filename())) {
    folder.Remove(DrainedPath(raw_path).filename());
    return;
  }
  Quality ignored;
  const Result<SegmentReader> sealed = SegmentReader::Open(sealed_path, ignored);
  const Result<SegmentReader> raw = SegmentReader::Open(raw_path, ignored);
  const bool is_same =
      sealed.ok() && raw.ok() && sealed.value().info().identity == raw.value().info().identity;
  if (is_same && !MayBeAlive(raw_path)) RemoveRaw(folder, raw_path);
}

// Leaves the raw segment where anything stands in the way.
void SealSegment(const fs::path& path, Deadline deadline) {
  const Result<RecordedFolder> folder = OpenFolder(path.parent_path(), Links::kRefuse);
  if (!folder.ok()) return;
  if (path.extension() == kSealedSuffix) return RemoveLeftRaw(folder.value(), path);
  if (MayBeAlive(path)) return;
  Quality quality;
  Result<SegmentReader> segment = SegmentReader::Open(path, quality);
  if (!segment.ok() || !quality.items().empty()) return;
  const std::string sealed = fs::path(path.filename()).replace_extension(kSealedSuffix);
  TemporaryFile file(folder.value(), sealed + ".tmp");
  if (file.fd() < 0) return;
  if (!SealedWriter(segment.value(), file.fd()).Write(deadline)) return;
  // On disk before the raw one goes, whatever happens to the machine.
  if (IsOver(deadline) || fdatasync(file.fd()) != 0 || !file.RenameTo(sealed)) return;
  RemoveRaw(folder.value(), path);
}

// The program that was started, where its children are the ranks: torchrun, mpirun.
void NameLauncher(int64_t program_pid, RecordingSummary& summary) {
  bool has_ranks = false;
  for (const ProcessSummary& process : summary.processes) has_ranks |= process.rank >= 0;
  for (ProcessSummary& process : summary.processes) {
    if (has_ranks && process.rank < 0 && process.pid == program_pid) process.role = "launcher";
  }
}

}  // namespace

Result<void> CreateRun(const fs::path& run_dir, const RunDescription& run) {
  if (!MakeFolder(run_dir, run.shared ? kSharedFolderMode : kPrivateFolderMode)) {
    return SystemError(run_dir, "make the run directory");
  }
  const fs::path path = run_dir / kControlFile;
  const int fd = OpenInRun(path, O_WRONLY | O_CREAT | O_EXCL);
  if (fd < 0) return SystemError(path, "create");
  RunControl control{};
  control.magic = RunControl::kMagic;
  control.version = RunControl::kVersion;
  control.clock_kind = HostClockKind();
  control.max_bytes = run.max_bytes;
  control.created = SampleClocks(control.clock_kind);
  const bool written = WriteAll(fd, BytesOf(control)) == 0;
  const Error failure = SystemError(path, "write");
  close(fd);
  if (!written) return failure;
  return WriteManifest(run_dir, run, nullptr);
}

Result<RecordingSummary> SealRecording(const fs::path& run_dir, const RunDescription& run,
                                       Deadline deadline) {
  for (const RankFolder& folder : RankFoldersIn(run_dir)) {
    for (const fs::path& path : folder.segments) {
      if (!IsOver(deadline)) SealSegment(path, deadline);
    }
  }
  Result<RecordingSummary> summary = SummarizeRecording(run_dir);
  if (!summary.ok()) return summary;
  NameLauncher(run.program_pid, summary.value());
  if (Result<void> written = WriteManifest(run_dir, run, &summary.value()); !written.ok()) {
    return Error{written.error()};
  }
  // Comes last: readers on this machine can do without.
  if (Result<void> done = SymbolizeRecording(run_dir, deadline); !done.ok()) {
    return Error{done.error()};
  }
  return summary;
}

}  // namespace trainprof::recording
