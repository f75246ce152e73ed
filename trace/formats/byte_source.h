// Where an importer's bytes come from: a plain file, or a gzip file of one or more members that is
// inflated on a second thread while the first parses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trace/result.h"

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

// Opens `path`; gzip is recognised by its magic bytes.
Result<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path);

// The first bytes of the file after inflating, at most `count`; what importers sniff.
Result<std::string> ReadHead(const std::string& path, size_t count);

}  // namespace trainprof
