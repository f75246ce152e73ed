#include "trace/recording/files/host_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "trace/io/write_all.h"
#include "trace/recording/files/recorded_files.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

// Well above the bound that samplers keep (kMostHostBytes): a longer file is none of ours.
constexpr uint64_t kMostHostFileBytes = 2 * kMostHostBytes;
// Samples differ from each other; a file that grows more than this was made to fill our memory.
constexpr uint64_t kMostExpansion = 256;
constexpr uint64_t kAlwaysAllowedBytes = 4 * 1024 * 1024;
constexpr int kCompressionLevel = 3;  // of some MiB: ~0.1 s

bool IsHostFile(const fs::path& path, const char* prefix) {
  const std::string extension = path.extension().string();
  return path.filename().string().starts_with(prefix) &&
         (extension == kHostSuffix || extension == kSealedHostSuffix);
}

std::string_view Bounded(const char* text, size_t size) { return {text, strnlen(text, size)}; }

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// What comes before damage is kept: frames carry checks of their own.
std::vector<char> Inflate(std::span<const char> packed, bool& whole) {
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  const uint64_t most =
      std::min(kMostHostFileBytes, std::max(kAlwaysAllowedBytes, packed.size() * kMostExpansion));
  std::vector<char> frames;
  std::vector<char> piece(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
  size_t left = 1;
  while (context && frames.size() < most) {
    ZSTD_outBuffer out = {piece.data(), piece.size(), 0};
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left)) break;
    frames.insert(frames.end(), piece.data(), piece.data() + out.pos);
    if (left == 0 || (in.pos == in.size && out.pos < out.size)) break;
  }
  whole = left == 0;
  return frames;
}

// On disk before it returns true.
bool WriteSealed(const RecordedFolder& run, const std::string& name, const HostFile& file,
                 std::span<const char> packed) {
  const OwnedFd fd(run.Create(name));
  if (!fd.is_open()) return false;
  HostHeader header = file.header;
  header.magic = kSealedHostMagic;
  header.check = CheckOf(&header, offsetof(HostHeader, check));
  return WriteAll(fd.get(), BytesOf(header)) == 0 &&
         WriteAll(fd.get(), {packed.data(), packed.size()}) == 0 && fdatasync(fd.get()) == 0;
}

}  // namespace

std::string_view HostFile::host() const { return Bounded(header.host, sizeof header.host); }
std::string_view HostFile::boot_id() const {
  return Bounded(header.boot_id, sizeof header.boot_id);
}

std::vector<fs::path> HostFilesIn(const fs::path& run_dir, const char* prefix) {
  std::map<fs::path, fs::path> by_stem;
  const Result<RecordedFolder> run = OpenFolder(run_dir, Links::kFollow);
  if (!run.ok()) return {};
  for (const std::string& name : run.value().Names()) {
    const fs::path path = run_dir / name;
    if (!IsHostFile(path, prefix)) continue;
    fs::path& kept = by_stem[path.stem()];
    if (kept.empty() || path.extension() == kSealedHostSuffix) kept = path;
  }
  std::vector<fs::path> files;
  for (const auto& [stem, path] : by_stem) files.push_back(path);
  return files;
}

Result<HostFile> ReadHostFile(const fs::path& path) {
  HostFile file;
  file.path = path;
  const Result<RecordedFile> opened = OpenRecorded(path, Links::kFollow);
  if (!opened.ok()) return Error{opened.error()};
  const int fd = opened.value().fd.get();
  HostHeader& header = file.header;
  // The size is that of when it was opened: a sampler may have written the header since.
  if (opened.value().bytes < sizeof header || !ReadFully(fd, 0, &header, sizeof header)) {
    return Error{path.string() + ": too short for a host file, or unreadable"};
  }
  const bool sealed = header.magic == kSealedHostMagic;
  if ((!sealed && header.magic != kHostMagic) ||
      header.check != CheckOf(&header, offsetof(HostHeader, check))) {
    return Error{path.string() + ": its header is damaged, or not one of trainprof's"};
  }
  if (header.version > kHostVersion) {
    return Error{path.string() + ": host file version " + std::to_string(header.version) +
                 "; this trainprof reads up to " + std::to_string(kHostVersion)};
  }
  const uint64_t size = std::min(opened.value().bytes, kMostHostFileBytes);
  std::vector<char> rest(size - sizeof header);
  if (!ReadFully(fd, sizeof header, rest.data(), rest.size())) {
    return Error{path.string() + ": cannot be read"};
  }
  file.frames = sealed ? Inflate(rest, file.whole) : std::move(rest);
  return file;
}

Result<void> SealHostFile(const fs::path& path) {
  Result<HostFile> file = ReadHostFile(path);
  if (!file.ok()) return Error{file.error()};
  const std::vector<char>& frames = file.value().frames;
  std::vector<char> packed(ZSTD_compressBound(frames.size()));
  const size_t n =
      ZSTD_compress(packed.data(), packed.size(), frames.data(), frames.size(), kCompressionLevel);
  if (ZSTD_isError(n)) return Error{path.string() + ": cannot compress: " + ZSTD_getErrorName(n)};
  const Result<RecordedFolder> run = OpenFolder(path.parent_path(), Links::kFollow);
  if (!run.ok()) return Error{run.error()};
  const std::string sealed = fs::path(path.filename()).replace_extension(kSealedHostSuffix);
  const std::string fresh = sealed + ".tmp";
  if (!WriteSealed(run.value(), fresh, file.value(), {packed.data(), n}) ||
      !run.value().Rename(fresh, sealed)) {
    const std::string cause = strerror(errno);
    run.value().Remove(fresh);
    return Error{(run.value().path() / sealed).string() + ": cannot write: " + cause};
  }
  run.value().Remove(path.filename());
  return {};
}

}  // namespace trainprof::recording
