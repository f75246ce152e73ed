// The window grows only while one event or member does not fit it.
#include "trace/formats/json_window.h"

#include <algorithm>
#include <cstring>

namespace trainprof {

JsonWindow::JsonWindow(ByteSource& source)
    : source_(source), buffer_(kFirstBytes + kPadding), at_(buffer_.data()), end_(at_) {}

bool JsonWindow::Refill() {
  if (at_end_ || full()) return false;
  const auto kept = static_cast<size_t>(end_ - at_);
  base_offset_ = OffsetOf(at_);
  if (kept > 0) std::memmove(buffer_.data(), at_, kept);
  size_t capacity = buffer_.size() - kPadding;
  if (kept * 2 > capacity) {
    capacity = std::min(capacity * 2, kMaxBytes);
    buffer_.resize(capacity + kPadding);
  }
  size_t filled = kept;
  while (filled < capacity) {
    const size_t got = source_.Read(buffer_.data() + filled, capacity - filled);
    if (got == 0) {
      at_end_ = true;
      break;
    }
    filled += got;
  }
  std::memset(buffer_.data() + filled, 0, kPadding);
  at_ = buffer_.data();
  end_ = at_ + filled;
  return filled > kept;
}

}  // namespace trainprof
