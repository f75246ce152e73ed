// Plain and gzip byte sources. Where cores are left, inflating happens block by block on a thread of its own; at most
// kQueueBlocks wait between the two, so that memory stays bounded.
#include "trace/formats/io/byte_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/base/parallel.h"
#include "trace/formats/io/gzip.h"
#include "trace/io/input_file.h"

namespace trainprof {
namespace {

constexpr size_t kBlockBytes = 1 << 20;
constexpr size_t kQueueBlocks = 4;
constexpr size_t kFileReadBytes = 256 << 10;

// The whole file's first bytes decide what it is; a stream cannot go back to them.
class Bytes {
 public:
  explicit Bytes(std::unique_ptr<InputFile> file) : file_(std::move(file)) {}

  // Looks at the first two bytes. False on an error, with errno set.
  bool Begin(bool& is_gzip) {
    while (begin_.size() < 2) {
      char byte = 0;
      const ssize_t got = file_->Read(&byte, 1, [] {
        CancelPoint();
        return false;
      });
      if (got < 0) return false;
      if (got == 0) break;
      begin_ += byte;
    }
    is_gzip = begin_ == "\x1f\x8b";
    return true;
  }

  // 0 at the end; -1 on an error, with errno set.
  ssize_t Read(char* out, size_t capacity, const std::function<bool()>& stop) {
    if (begin_.empty()) return file_->Read(out, capacity, stop);
    const size_t count = begin_.copy(out, capacity);
    begin_.erase(0, count);
    return static_cast<ssize_t>(count);
  }

 private:
  std::unique_ptr<InputFile> file_;
  std::string begin_;  // read and not yet passed on
};

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(std::unique_ptr<Bytes> file) : file_(std::move(file)) {}

  size_t Read(char* out, size_t capacity) override {
    if (!damage_.empty()) return 0;
    const ssize_t got = file_->Read(out, capacity, [] {
      CancelPoint();
      return false;
    });
    if (got < 0) damage_ = fmt::format("reading failed: {}", std::strerror(errno));
    if (got <= 0) return 0;
    bytes_ += static_cast<uint64_t>(got);
    return static_cast<size_t>(got);
  }
  std::string damage() const override { return damage_; }
  uint64_t file_bytes_read() const override { return bytes_; }

 private:
  std::unique_ptr<Bytes> file_;
  std::string damage_;
  uint64_t bytes_ = 0;
};

// Inflates concatenated gzip members, on the caller's thread.
class Inflater {
 public:
  // `stop` is asked while a stream has nothing to read.
  Inflater(std::unique_ptr<Bytes> file, std::function<bool()> stop)
      : file_(std::move(file)),
        stop_(std::move(stop)),
        input_(kFileReadBytes),
        decoder_(MakeGzipDecoder()) {
    if (decoder_ == nullptr) damage_ = "zlib could not start (out of memory?)";
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  size_t Read(char* out, size_t capacity) {
    size_t filled = 0;
    while (filled < capacity && damage_.empty()) {
      if (unread_.empty() && !is_full_ && !FillInput()) break;
      if (between_members_ && !StartMember()) continue;
      size_t written = 0;
      const auto state = decoder_->Decode(unread_, {out + filled, capacity - filled}, written);
      filled += written;
      is_full_ = filled == capacity && state == GzipDecoder::State::kGoesOn;
      if (state == GzipDecoder::State::kMemberEnded) {
        between_members_ = true;
      } else if (state == GzipDecoder::State::kDamaged) {
        damage_ = fmt::format("the gzip data is damaged near byte {} of the file ({})",
                              bytes_read(), decoder_->damage());
      }
    }
    return filled;
  }
  const std::string& damage() const { return damage_; }
  uint64_t bytes_read() const { return file_bytes_ - unread_.size(); }

 private:
  bool FillInput() {
    const ssize_t got = file_->Read(input_.data(), input_.size(), stop_);
    if (got < 0) damage_ = fmt::format("reading failed: {}", std::strerror(errno));
    if (got == 0 && !between_members_) {
      damage_ = fmt::format("the gzip data ends early (after byte {} of the file)", file_bytes_);
    }
    if (got <= 0) return false;
    file_bytes_ += static_cast<uint64_t>(got);
    unread_ = {input_.data(), static_cast<size_t>(got)};
    return true;
  }

  // After a member: another one, zero padding (skipped), or bytes that are not gzip. False: none began.
  bool StartMember() {
    unread_.remove_prefix(std::min(unread_.find_first_not_of('\0'), unread_.size()));
    if (unread_.empty()) return false;
    if (unread_.front() != '\x1f') {
      damage_ = fmt::format("bytes that are not gzip follow at byte {} of the file", bytes_read());
      return false;
    }
    between_members_ = false;
    decoder_->Begin();
    return true;
  }

  std::unique_ptr<Bytes> file_;
  std::function<bool()> stop_;
  std::vector<char> input_;
  std::string_view unread_;  // of input_
  std::unique_ptr<GzipDecoder> decoder_;
  bool is_full_ = false;  // there was no room for all that came of what is read
  bool between_members_ = false;
  uint64_t file_bytes_ = 0;
  std::string damage_;
};

// Inflates as it is read, on the reader's thread.
class GzipSource : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<Bytes> file)
      : inflater_(std::move(file), [] {
          CancelPoint();
          return false;
        }) {}

  size_t Read(char* out, size_t capacity) override { return inflater_.Read(out, capacity); }
  std::string damage() const override { return inflater_.damage(); }
  uint64_t file_bytes_read() const override { return inflater_.bytes_read(); }

 private:
  Inflater inflater_;
};

// Inflates ahead of the reader on its own thread.
class GzipSourceAhead : public ByteSource {
 public:
  explicit GzipSourceAhead(std::unique_ptr<Bytes> file)
      : inflater_(std::move(file), [this] { return stop_.load(); }),
        producer_([this] { Produce(); }) {}
  ~GzipSourceAhead() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    producer_.join();
  }

  size_t Read(char* out, size_t capacity) override {
    if (at_ == current_.size() && !Next()) return 0;
    const size_t count = std::min(capacity, current_.size() - at_);
    std::memcpy(out, current_.data() + at_, count);
    at_ += count;
    return count;
  }
  std::string damage() const override {
    std::lock_guard lock(mutex_);
    return damage_;
  }
  uint64_t file_bytes_read() const override { return file_bytes_.load(); }

 private:
  bool Next() {
    std::unique_lock lock(mutex_);
    if (current_.capacity() > 0) spare_.push_back(std::move(current_));
    // A stream may have nothing to read for hours.
    constexpr std::chrono::milliseconds kBetweenCancelPoints(50);
    while (!changed_.wait_for(lock, kBetweenCancelPoints,
                              [this] { return !full_.empty() || finished_; })) {
      CancelPoint();
    }
    at_ = 0;
    current_.clear();
    if (full_.empty()) return false;
    current_ = std::move(full_.front());
    full_.pop_front();
    changed_.notify_all();
    return true;
  }

  void Produce() {
    try {
      ProduceBlocks();
    } catch (const std::bad_alloc&) {
      std::lock_guard lock(mutex_);
      damage_ = "no memory is left to inflate into";
      finished_ = true;
      changed_.notify_all();
    }
  }

  void ProduceBlocks() {
    while (true) {
      std::vector<char> block = EmptyBlock();
      if (block.empty()) return;  // told to stop
      const size_t got = inflater_.Read(block.data(), block.size());
      block.resize(got);
      file_bytes_ = inflater_.bytes_read();
      std::lock_guard lock(mutex_);
      damage_ = inflater_.damage();
      finished_ = got == 0;
      if (got > 0) full_.push_back(std::move(block));
      changed_.notify_all();
      if (finished_) return;
    }
  }

  std::vector<char> EmptyBlock() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return full_.size() < kQueueBlocks || stop_; });
    if (stop_) return {};
    std::vector<char> block;
    if (!spare_.empty()) {
      block = std::move(spare_.back());
      spare_.pop_back();
    }
    block.resize(kBlockBytes);
    return block;
  }

  std::atomic<bool> stop_ = false;
  Inflater inflater_;  // the producer's alone
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<char>> full_;
  std::vector<std::vector<char>> spare_;
  std::string damage_;
  bool finished_ = false;
  std::atomic<uint64_t> file_bytes_ = 0;
  std::vector<char> current_;  // the reader's alone
  size_t at_ = 0;
  std::thread producer_;  // last: starts when all else is ready
};

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path, size_t threads) {
  Result<std::unique_ptr<InputFile>> file = InputFile::Open(path);
  if (!file.ok()) return Error{file.error()};
  auto bytes = std::make_unique<Bytes>(std::move(file).value());
  bool is_gzip = false;
  if (!bytes->Begin(is_gzip)) {
    return Error{fmt::format("{}: cannot read: {}", path, std::strerror(errno))};
  }
  std::unique_ptr<ByteSource> source;
  // Two have enough to do with what is read.
  constexpr size_t kBusyThreads = 2;
  if (is_gzip && (threads == 0 ? UsableCores() : threads) > kBusyThreads) {
    source = std::make_unique<GzipSourceAhead>(std::move(bytes));
  } else if (is_gzip) {
    source = std::make_unique<GzipSource>(std::move(bytes));
  } else {
    source = std::make_unique<PlainSource>(std::move(bytes));
  }
  return source;
}

PeekedSource::PeekedSource(std::unique_ptr<ByteSource> source, size_t count)
    : source_(std::move(source)), head_(count, '\0') {
  size_t filled = 0;
  while (const size_t got = source_->Read(head_.data() + filled, count - filled)) filled += got;
  head_.resize(filled);
}

size_t PeekedSource::Read(char* out, size_t capacity) {
  if (at_ == head_.size()) return source_->Read(out, capacity);
  const size_t count = head_.copy(out, capacity, at_);
  at_ += count;
  return count;
}

}  // namespace trainprof
