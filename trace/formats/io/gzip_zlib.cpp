// Gzip by zlib.
#include <zlib.h>

#include "trace/formats/io/gzip_libraries.h"

namespace trainprof {
namespace {

constexpr int kGzipOnly = 15 + 16;  // the largest window, with a gzip header
// Level 1 is three times as fast as zlib's default and costs some 30 % in size on traces.
constexpr int kLevel = 1;
constexpr int kMemoryLevel = 9;

class ZlibEncoder : public GzipEncoder {
 public:
  ~ZlibEncoder() override {
    if (ready_) deflateEnd(&zlib_);
  }
  bool Start() {
    ready_ = deflateInit2(&zlib_, kLevel, Z_DEFLATED, kGzipOnly, kMemoryLevel,
                          Z_DEFAULT_STRATEGY) == Z_OK;
    return ready_;
  }

  size_t Encode(std::string_view& bytes, bool is_last, std::span<char> out) override {
    size_t written = 0;
    do {
      const std::span<char> room = out.subspan(written);
      Point(zlib_, bytes, room);
      const size_t given = zlib_.avail_in;
      const size_t free = zlib_.avail_out;
      const bool is_all = given == bytes.size();
      deflate(&zlib_, is_last && is_all ? Z_FINISH : Z_NO_FLUSH);
      bytes.remove_prefix(given - zlib_.avail_in);
      written += free - zlib_.avail_out;
    } while (!bytes.empty() && written < out.size());
    return written;
  }

 private:
  z_stream zlib_{};
  bool ready_ = false;
};

class ZlibDecoder : public GzipDecoder {
 public:
  ~ZlibDecoder() override {
    if (ready_) inflateEnd(&zlib_);
  }
  bool Start() {
    ready_ = inflateInit2(&zlib_, kGzipOnly) == Z_OK;
    return ready_;
  }

  State Decode(std::string_view& bytes, std::span<char> out, size_t& written) override {
    Point(zlib_, bytes, out);
    const size_t given = zlib_.avail_in;
    const size_t free = zlib_.avail_out;
    const int status = inflate(&zlib_, Z_NO_FLUSH);
    bytes.remove_prefix(given - zlib_.avail_in);
    written = free - zlib_.avail_out;
    if (status == Z_STREAM_END) return State::kMemberEnded;
    return status == Z_OK || status == Z_BUF_ERROR ? State::kGoesOn : State::kDamaged;
  }
  void Begin() override { inflateReset(&zlib_); }
  std::string_view damage() const override { return zlib_.msg != nullptr ? zlib_.msg : "unknown"; }

 private:
  z_stream zlib_{};
  bool ready_ = false;
};

}  // namespace

std::unique_ptr<GzipEncoder> MakeZlibEncoder() {
  auto encoder = std::make_unique<ZlibEncoder>();
  if (!encoder->Start()) return nullptr;
  return encoder;
}

std::unique_ptr<GzipDecoder> MakeZlibDecoder() {
  auto decoder = std::make_unique<ZlibDecoder>();
  if (!decoder->Start()) return nullptr;
  return decoder;
}

}  // namespace trainprof
