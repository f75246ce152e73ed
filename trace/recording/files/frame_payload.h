// The frames that samplers' files are made of (FORMAT.md, "Host samples"): written one at a time,
// found again one at a time, whatever lies between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trace/recording/files/host_format.h"

namespace trainprof::recording {

// Makes one frame after another.
class FrameWriter {
 public:
  explicit FrameWriter(uint8_t stream) : stream_(stream) {}

  void Begin() { frame_.assign(sizeof(HostFrameHeader), 0); }
  void Byte(uint8_t value) { frame_.push_back(static_cast<char>(value)); }
  void Varint(uint64_t value);
  void Signed(int64_t value);
  void Text(std::string_view text, size_t most_bytes);  // what is longer is cut

  // Bytes since Begin(), with the header.
  size_t size() const { return frame_.size(); }
  // The frame, ready to be appended to the file. Valid until the next Begin().
  std::span<const char> Finish(bool is_key);

 private:
  uint8_t stream_;
  std::vector<char> frame_;
};

// Reads a payload; past its end, or past a number that is none, everything is 0 and ok() is false.
class PayloadReader {
 public:
  explicit PayloadReader(std::span<const char> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return !ok_ || at_ >= bytes_.size(); }
  uint8_t Byte();
  uint64_t Varint();
  int64_t Signed();
  std::string_view Text();  // lives as long as the bytes

 private:
  std::span<const char> bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

struct HostFrame {
  bool is_key = false;
  bool after_loss = false;  // the bytes before it were no frame
  uint8_t stream = 0;
  std::span<const char> payload;
};

// Walks over the whole frames among any bytes. O(bytes).
class FrameWalker {
 public:
  explicit FrameWalker(std::span<const char> frames)
      : frames_(frames), budget_(frames.size() * 4 + kMostFrameBytes) {}

  std::optional<HostFrame> Next();

 private:
  bool FrameAt(size_t at, HostFrameHeader& header);

  std::span<const char> frames_;
  size_t at_ = 0;
  // Bytes that may still be checked in vain: headers that claim much would cost their square.
  uint64_t budget_;
};

}  // namespace trainprof::recording
