// Gzip by isa-l, Intel's library for storage.
#include <isa-l/igzip_lib.h>

#include <vector>

#include "trace/formats/io/gzip_libraries.h"

namespace trainprof {
namespace {

class IsalEncoder : public GzipEncoder {
 public:
  // Level 1 makes smaller files than zlib's, five times as fast; 0 is no faster on traces.
  IsalEncoder() : room_(ISAL_DEF_LVL1_DEFAULT) {
    isal_deflate_init(&stream_);
    stream_.gzip_flag = IGZIP_GZIP;
    stream_.level = 1;
    stream_.level_buf = room_.data();
    stream_.level_buf_size = static_cast<uint32_t>(room_.size());
  }

  size_t Encode(std::string_view& bytes, bool is_last, std::span<char> out) override {
    size_t written = 0;
    do {
      Point(stream_, bytes, out.subspan(written));
      const size_t given = stream_.avail_in;
      const size_t free = stream_.avail_out;
      stream_.end_of_stream = is_last && given == bytes.size() ? 1 : 0;
      isal_deflate(&stream_);
      bytes.remove_prefix(given - stream_.avail_in);
      written += free - stream_.avail_out;
    } while (!bytes.empty() && written < out.size());
    return written;
  }

 private:
  isal_zstream stream_{};
  std::vector<uint8_t> room_;
};

class IsalDecoder : public GzipDecoder {
 public:
  IsalDecoder() { Begin(); }

  State Decode(std::string_view& bytes, std::span<char> out, size_t& written) override {
    Point(state_, bytes, out);
    const size_t given = state_.avail_in;
    const size_t free = state_.avail_out;
    status_ = isal_inflate(&state_);
    // Damaged input may make it go back by more than it was given.
    if (state_.avail_in > given) {
      if (status_ >= 0) status_ = ISAL_INVALID_BLOCK;
      state_.avail_in = 0;
    }
    bytes.remove_prefix(given - state_.avail_in);
    written = free - state_.avail_out;
    if (status_ < 0) return State::kDamaged;
    return state_.block_state == ISAL_BLOCK_FINISH ? State::kMemberEnded : State::kGoesOn;
  }
  void Begin() override {
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
  }
  std::string_view damage() const override {
    switch (status_) {
      case ISAL_INVALID_BLOCK:
        return "invalid block type";
      case ISAL_INVALID_SYMBOL:
        return "invalid code";
      case ISAL_INVALID_LOOKBACK:
        return "invalid distance too far back";
      case ISAL_INVALID_WRAPPER:
        return "incorrect header check";
      case ISAL_UNSUPPORTED_METHOD:
        return "unknown compression method";
      case ISAL_INCORRECT_CHECKSUM:
        return "incorrect data check";
      default:
        return "unknown";
    }
  }

 private:
  inflate_state state_;
  int status_ = 0;
};

}  // namespace

std::unique_ptr<GzipEncoder> MakeIsalEncoder() { return std::make_unique<IsalEncoder>(); }
std::unique_ptr<GzipDecoder> MakeIsalDecoder() { return std::make_unique<IsalDecoder>(); }

}  // namespace trainprof
