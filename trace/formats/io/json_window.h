// A sliding window over a byte source. What is being parsed always lies in one piece, and at least
// kPadding zero bytes follow the last valid byte: parsers may load whole vectors there, and stop at
// the zero, since no JSON token holds one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trace/formats/io/byte_source.h"

namespace trainprof {

class JsonWindow {
 public:
  static constexpr size_t kPadding = 64;
  static constexpr size_t kFirstBytes = 1 << 18;  // stays in a core's own cache
  // The longest single event or top-level member that is kept whole.
  static constexpr size_t kMaxBytes = 64 << 20;

  explicit JsonWindow(ByteSource& source);

  // The next byte to parse, and the first byte past the valid ones. Refill() moves both.
  const char* at() const { return at_; }
  const char* end() const { return end_; }
  void Consume(const char* up_to) { at_ = up_to; }
  // Offset of a byte of the window in the (inflated) input.
  uint64_t OffsetOf(const char* p) const {
    return base_offset_ + static_cast<uint64_t>(p - buffer_.get());
  }

  // Reads on, keeping all from at() on. False when nothing was added: the source has ended
  // (at_end()), or what is kept fills kMaxBytes (full()).
  bool Refill();
  // All from at() on that was read, for somebody who goes on reading the source himself, and then
  // gives back what he has no use for: `offset` is its first byte's.
  std::string TakeRest();
  void GiveBack(std::string bytes, uint64_t offset);
  bool at_end() const { return at_end_; }
  bool full() const { return static_cast<size_t>(end_ - at_) >= kMaxBytes; }

 private:
  size_t Read(char* out, size_t capacity);

  ByteSource& source_;
  std::string given_back_;  // before what the source still has
  size_t given_at_ = 0;
  size_t capacity_;                 // of the buffer, without the padding
  std::unique_ptr<char[]> buffer_;  // not initialised beyond the padding
  const char* at_;
  const char* end_;
  uint64_t base_offset_ = 0;
  bool at_end_ = false;
};

}  // namespace trainprof
