// The window grows only while one event or member does not fit it.
#include "trace/formats/io/json_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace trainprof {

JsonWindow::JsonWindow(ByteSource& source)
    : source_(source),
      capacity_(kFirstBytes),
      buffer_(std::make_unique_for_overwrite<char[]>(kFirstBytes + kPadding)),
      at_(buffer_.get()),
      end_(at_) {
  std::memset(buffer_.get(), 0, kPadding);
}

std::string JsonWindow::TakeRest() {
  std::string rest(at_, end_);
  rest.append(given_back_, given_at_);
  const uint64_t offset = OffsetOf(at_);
  GiveBack({}, offset);
  return rest;
}

void JsonWindow::GiveBack(std::string bytes, uint64_t offset) {
  given_back_ = std::move(bytes);
  given_at_ = 0;
  at_ = end_ = buffer_.get();
  std::memset(buffer_.get(), 0, kPadding);
  base_offset_ = offset;
  at_end_ = false;
}

size_t JsonWindow::Read(char* out, size_t capacity) {
  if (given_at_ == given_back_.size()) return source_.Read(out, capacity);
  const size_t count = given_back_.copy(out, capacity, given_at_);
  given_at_ += count;
  if (given_at_ == given_back_.size()) {
    given_back_ = {};
    given_at_ = 0;
  }
  return count;
}

bool JsonWindow::Refill() {
  if (at_end_ || full()) return false;
  const auto kept = static_cast<size_t>(end_ - at_);
  base_offset_ = OffsetOf(at_);
  if (kept * 2 > capacity_) {
    capacity_ = std::min(capacity_ * 2, kMaxBytes);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_ + kPadding);
    std::memcpy(larger.get(), at_, kept);
    buffer_ = std::move(larger);
  } else if (kept > 0) {
    std::memmove(buffer_.get(), at_, kept);
  }
  size_t filled = kept;
  while (filled < capacity_) {
    const size_t got = Read(buffer_.get() + filled, capacity_ - filled);
    if (got == 0) {
      at_end_ = true;
      break;
    }
    filled += got;
  }
  std::memset(buffer_.get() + filled, 0, kPadding);
  at_ = buffer_.get();
  end_ = at_ + filled;
  return filled > kept;
}

}  // namespace trainprof
