// Where an importer's bytes come from: a plain file or stream, or a gzip one of one or more members
// that is inflated as it is read, or ahead. Waiting for a stream is a cancel point (trace/base/cancel.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trace/base/result.h"

namespace trainprof {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills up to `capacity` bytes; 0 means the end. A damaged or cut-off source ends early: see
  // damage().
  virtual size_t Read(char* out, size_t capacity) = 0;
  // What went wrong, or empty: "the gzip data ends early (after byte 4711)".
  virtual std::string damage() const = 0;
  // Bytes of the file on disk that were consumed so far, for progress.
  virtual uint64_t file_bytes_read() const = 0;
};

// Opens `path` (trace/io/input_file.h); gzip is recognised by its magic bytes. `threads` that its reader may take, 0: one
// a core. Of more than two one inflates ahead; on two cores a third thread took more time than it gave.
Result<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path, size_t threads = 0);

// A source whose first bytes were looked at: what importers sniff.
class PeekedSource : public ByteSource {
 public:
  PeekedSource(std::unique_ptr<ByteSource> source, size_t count);

  // The first bytes after inflating, at most as many as asked for.
  std::string_view head() const { return head_; }
  // Begins with them.
  size_t Read(char* out, size_t capacity) override;
  std::string damage() const override { return source_->damage(); }
  uint64_t file_bytes_read() const override { return source_->file_bytes_read(); }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string head_;
  size_t at_ = 0;
};

}  // namespace trainprof
