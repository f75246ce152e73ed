// Gzip on the way to an output file.
#include "trace/formats/io/file_sink.h"

namespace trainprof {
namespace {

constexpr size_t kCompressedBytes = 256 << 10;
// Level 1 is three times as fast as zlib's default and costs some 30 % in size on traces.
constexpr int kGzipLevel = 1;
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 9;

}  // namespace

Result<std::unique_ptr<FileSink>> FileSink::Open(const std::string& path, bool overwrite) {
  const auto existing = overwrite ? OutputFile::Existing::kReplace : OutputFile::Existing::kRefuse;
  Result<std::unique_ptr<OutputFile>> file = OutputFile::Open(path, existing);
  if (!file.ok()) return Error{file.error()};
  std::unique_ptr<FileSink> sink(new FileSink(std::move(file).value(), path.ends_with(".gz")));
  if (sink->gzip_ && !sink->zlib_ready_) {
    return Error{path + ": zlib could not start (out of memory?)"};
  }
  return sink;
}

FileSink::FileSink(std::unique_ptr<OutputFile> file, bool gzip)
    : file_(std::move(file)), gzip_(gzip) {
  if (!gzip_) return;
  compressed_.resize(kCompressedBytes);
  zlib_ready_ = deflateInit2(&zlib_, kGzipLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                             Z_DEFAULT_STRATEGY) == Z_OK;
}

FileSink::~FileSink() {
  if (zlib_ready_) deflateEnd(&zlib_);
}

void FileSink::Write(std::string_view bytes) {
  if (gzip_) {
    Compress(bytes, Z_NO_FLUSH);
  } else {
    file_->Write(bytes);
  }
}

void FileSink::Compress(std::string_view bytes, int flush) {
  constexpr size_t kMostAtOnce = 1u << 30;  // zlib counts in 32 bits
  do {
    const std::string_view part = bytes.substr(0, kMostAtOnce);
    bytes.remove_prefix(part.size());
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
    zlib_.avail_in = static_cast<uInt>(part.size());
    do {
      if (file_->failed()) return;
      zlib_.next_out = reinterpret_cast<Bytef*>(compressed_.data());
      zlib_.avail_out = static_cast<uInt>(compressed_.size());
      deflate(&zlib_, bytes.empty() ? flush : Z_NO_FLUSH);
      file_->Write({compressed_.data(), compressed_.size() - zlib_.avail_out});
    } while (zlib_.avail_out == 0);
  } while (!bytes.empty());
}

Result<void> FileSink::Commit() {
  if (gzip_) Compress({}, Z_FINISH);
  return file_->Commit();
}

}  // namespace trainprof
