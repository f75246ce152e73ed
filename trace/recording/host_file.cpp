#include "trace/recording/host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

// Well above the bound that samplers keep (kMostHostBytes): a longer file is none of ours.
constexpr uint64_t kMostHostFileBytes = 2 * kMostHostBytes;
constexpr int kCompressionLevel = 3;  // of some MiB: ~0.1 s

bool IsHostFile(const fs::path& path) {
  const std::string extension = path.extension().string();
  return path.filename().string().starts_with(kHostPrefix) &&
         (extension == kHostSuffix || extension == kSealedHostSuffix);
}

std::string_view Bounded(const char* text, size_t size) { return {text, strnlen(text, size)}; }

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// What comes before damage is kept: frames carry checks of their own.
std::vector<char> Inflate(std::span<const char> packed, bool& whole) {
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  std::vector<char> frames;
  std::vector<char> piece(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
  size_t left = 1;
  while (context && frames.size() < kMostHostFileBytes) {
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
bool WriteSealed(const fs::path& path, const HostFile& file, std::span<const char> packed) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  HostHeader header = file.header;
  header.magic = kSealedHostMagic;
  header.check = CheckOf(&header, offsetof(HostHeader, check));
  const auto put = [fd](const void* data, size_t size) {
    return write(fd, data, size) == static_cast<ssize_t>(size);
  };
  const bool written =
      put(&header, sizeof header) && put(packed.data(), packed.size()) && fdatasync(fd) == 0;
  close(fd);
  return written;
}

}  // namespace

std::string_view HostFile::host() const { return Bounded(header.host, sizeof header.host); }
std::string_view HostFile::boot_id() const {
  return Bounded(header.boot_id, sizeof header.boot_id);
}

std::vector<fs::path> HostFilesIn(const fs::path& run_dir) {
  std::map<fs::path, fs::path> by_stem;
  std::error_code error;
  for (fs::directory_iterator it(run_dir, error), end; !error && it != end; it.increment(error)) {
    if (!IsHostFile(it->path())) continue;
    fs::path& kept = by_stem[it->path().stem()];
    if (kept.empty() || it->path().extension() == kSealedHostSuffix) kept = it->path();
  }
  std::vector<fs::path> files;
  for (const auto& [stem, path] : by_stem) files.push_back(path);
  return files;
}

Result<HostFile> ReadHostFile(const fs::path& path) {
  HostFile file;
  file.path = path;
  std::ifstream in(path, std::ios::binary);
  HostHeader& header = file.header;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) {
    return Error{path.string() + ": too short for a host file, or unreadable"};
  }
  const bool sealed = header.magic == kSealedHostMagic;
  if ((!sealed && header.magic != kHostMagic) ||
      header.check != CheckOf(&header, offsetof(HostHeader, check))) {
    return Error{path.string() + ": its header is damaged, or none of trainprof's"};
  }
  if (header.version > kHostVersion) {
    return Error{path.string() + ": host file version " + std::to_string(header.version) +
                 "; this trainprof reads up to " + std::to_string(kHostVersion)};
  }
  std::error_code error;
  const uint64_t size = std::min<uint64_t>(fs::file_size(path, error), kMostHostFileBytes);
  std::vector<char> rest(error || size < sizeof header ? 0 : size - sizeof header);
  in.read(rest.data(), static_cast<std::streamsize>(rest.size()));
  rest.resize(static_cast<size_t>(in.gcount()));
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
  fs::path sealed = fs::path(path).replace_extension(kSealedHostSuffix);
  fs::path fresh = sealed;
  fresh += ".tmp";
  std::error_code error;
  if (!WriteSealed(fresh, file.value(), {packed.data(), n})) {
    const std::string cause = strerror(errno);
    fs::remove(fresh, error);
    return Error{fresh.string() + ": cannot write: " + cause};
  }
  fs::rename(fresh, sealed, error);
  if (error) return Error{sealed.string() + ": cannot write: " + error.message()};
  fs::remove(path, error);
  return {};
}

}  // namespace trainprof::recording
