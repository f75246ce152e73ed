#include "trace/recording/files/frame_payload.h"

#include <string.h>

namespace trainprof::recording {

void FrameWriter::Varint(uint64_t value) {
  while (value >= 0x80) {
    frame_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  frame_.push_back(static_cast<char>(value));
}

void FrameWriter::Signed(int64_t value) {
  Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

void FrameWriter::Text(std::string_view text, size_t most_bytes) {
  text = text.substr(0, most_bytes);
  Varint(text.size());
  frame_.insert(frame_.end(), text.begin(), text.end());
}

std::span<const char> FrameWriter::Finish(bool is_key) {
  frame_.resize((frame_.size() + 7) / 8 * 8, 0);
  HostFrameHeader header{};
  header.magic = HostFrameHeader::kMagic;
  header.kind = is_key ? HostFrameHeader::kKey : HostFrameHeader::kDelta;
  header.stream = stream_;
  header.bytes = static_cast<uint32_t>(frame_.size() - sizeof header);
  header.check = FrameCheck(header, frame_.data() + sizeof header);
  memcpy(frame_.data(), &header, sizeof header);
  return frame_;
}

uint8_t PayloadReader::Byte() {
  if (at_ >= bytes_.size()) {
    ok_ = false;
    return 0;
  }
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t PayloadReader::Varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = Byte();
    value |= uint64_t{byte & 0x7Fu} << shift;
    if ((byte & 0x80) == 0) return value;
  }
  ok_ = false;
  return 0;
}

int64_t PayloadReader::Signed() {
  const uint64_t value = Varint();
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

std::string_view PayloadReader::Text() {
  const uint64_t length = Varint();
  if (length > bytes_.size() - at_) {
    ok_ = false;
    return {};
  }
  const std::string_view text(bytes_.data() + at_, length);
  at_ += length;
  return text;
}

bool FrameWalker::FrameAt(size_t at, HostFrameHeader& header) {
  if (frames_.size() - at < sizeof header) return false;
  memcpy(&header, frames_.data() + at, sizeof header);
  if (header.magic != HostFrameHeader::kMagic || header.stream >= kHostStreams ||
      header.bytes % 8 != 0 || header.bytes > kMostFrameBytes ||
      header.bytes > frames_.size() - at - sizeof header || header.bytes > budget_) {
    return false;
  }
  if (header.check == FrameCheck(header, frames_.data() + at + sizeof header)) return true;
  budget_ -= header.bytes;
  return false;
}

std::optional<HostFrame> FrameWalker::Next() {
  HostFrame frame;
  for (; at_ < frames_.size(); ++at_) {  // a torn frame need not be a multiple of anything
    HostFrameHeader header;
    if (!FrameAt(at_, header)) {
      frame.after_loss = true;
      continue;
    }
    frame.is_key = header.kind == HostFrameHeader::kKey;
    frame.stream = header.stream;
    frame.payload = frames_.subspan(at_ + sizeof header, header.bytes);
    at_ += sizeof header + header.bytes;
    return frame;
  }
  return std::nullopt;
}

}  // namespace trainprof::recording
