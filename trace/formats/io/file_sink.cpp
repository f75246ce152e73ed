// What is written on the way to an output file: blocks that one thread at a time compresses and writes.
#include "trace/formats/io/file_sink.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "trace/base/parallel.h"
#include "trace/formats/io/gzip.h"

namespace trainprof {

// Who writes fills blocks; the helper, where there is one, compresses them in order, where the file is compressed, and
// writes what comes of it: as long as there are blocks on their way, the file is the helper's.
class FileSink::Blocks {
 public:
  // `encoder` is null where bytes are written as they are.
  Blocks(OutputFile& file, std::unique_ptr<GzipEncoder> encoder, WrittenBy written_by)
      : file_(file),
        encoder_(std::move(encoder)),
        may_have_helper_(written_by == WrittenBy::kOtherThread),
        compressed_(encoder_ == nullptr ? 0 : kCompressedBytes) {}
  ~Blocks() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    helper_.Join();
  }

  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::string_view part = bytes.substr(0, kBlockBytes - block_.size());
      block_ += part;
      bytes.remove_prefix(part.size());
      if (block_.size() < kBlockBytes) return;
      HandOver();
      block_.clear();
    }
  }

  void Take(std::string& bytes) {
    if (bytes.size() < kTakenBytes) return Write(bytes);
    if (!block_.empty()) {
      HandOver();
      block_.clear();
    }
    std::swap(block_, bytes);
    HandOver();
    std::swap(block_, bytes);
  }

  void Finish() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return full_.empty() && !is_busy_; });
    }
    WriteOut(block_, true);
    block_.clear();
  }

 private:
  static constexpr size_t kBlockBytes = 1 << 20;
  static constexpr size_t kTakenBytes = 64 << 10;  // fewer are copied
  static constexpr size_t kMostBlocks = 4;         // on their way
  static constexpr size_t kCompressedBytes = 256 << 10;

  // Of block_ room is left, with whatever it holds. A small file needs no thread, and there may be none to have.
  void HandOver() {
    if (!is_started_) {
      is_started_ = true;
      if (may_have_helper_) helper_.Start(1, [this] { Work(); });
    }
    if (helper_.empty()) {
      WriteOut(block_, false);
      return;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return full_.size() < kMostBlocks; });
    full_.push_back(std::move(block_));
    block_ = {};
    if (!spare_.empty()) {
      block_ = std::move(spare_.back());
      spare_.pop_back();
    }
    changed_.notify_all();
  }

  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !full_.empty(); });
      if (stop_) return;
      std::string block = std::move(full_.front());
      full_.pop_front();
      is_busy_ = true;
      lock.unlock();
      WriteOut(block, false);
      lock.lock();
      is_busy_ = false;
      spare_.push_back(std::move(block));
      changed_.notify_all();
    }
  }

  void WriteOut(std::string_view bytes, bool is_last) {
    if (encoder_ == nullptr) return file_.Write(bytes);
    size_t written = 0;
    do {
      if (file_.failed()) return;
      written = encoder_->Encode(bytes, is_last, compressed_);
      file_.Write({compressed_.data(), written});
    } while (written == compressed_.size());
  }

  OutputFile& file_;
  std::unique_ptr<GzipEncoder> encoder_;
  const bool may_have_helper_;
  std::vector<char> compressed_;
  std::string block_;  // the caller's alone
  bool is_started_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> full_;
  std::vector<std::string> spare_;  // at most as many as are on their way
  bool is_busy_ = false;
  bool stop_ = false;
  Helpers helper_;
};

Result<std::unique_ptr<FileSink>> FileSink::Open(const std::string& path, bool overwrite,
                                                 WrittenBy written_by) {
  const auto existing = overwrite ? OutputFile::Existing::kReplace : OutputFile::Existing::kRefuse;
  Result<std::unique_ptr<OutputFile>> file = OutputFile::Open(path, existing);
  if (!file.ok()) return Error{file.error()};
  std::unique_ptr<FileSink> sink(new FileSink(std::move(file).value()));
  std::unique_ptr<GzipEncoder> encoder;
  if (path.ends_with(".gz")) {
    encoder = MakeGzipEncoder();
    if (encoder == nullptr) return Error{path + ": zlib could not start (out of memory?)"};
  }
  sink->blocks_ = std::make_unique<Blocks>(*sink->file_, std::move(encoder), written_by);
  return sink;
}

FileSink::FileSink(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}
FileSink::~FileSink() = default;

void FileSink::Write(std::string_view bytes) { blocks_->Write(bytes); }
void FileSink::Take(std::string& bytes) { blocks_->Take(bytes); }

Result<void> FileSink::Commit() {
  blocks_->Finish();
  return file_->Commit();
}

}  // namespace trainprof
