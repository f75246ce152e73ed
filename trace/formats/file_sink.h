// A file that appears whole or not at all: written beside under a temporary name, plain or gzip by
// the final name's ending, renamed by Commit().
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/result.h"

namespace trainprof {

class FileSink {
 public:
  // An existing `path` is an error unless `overwrite`.
  static Result<std::unique_ptr<FileSink>> Open(const std::string& path, bool overwrite);
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  // Removes the temporary file when Commit() did not succeed.
  ~FileSink();

  // After a failed write the rest is ignored; Commit() reports it.
  void Write(std::string_view bytes);
  Result<void> Commit();

 private:
  FileSink(std::string path, std::string temporary, int fd, bool overwrite);
  void Compress(std::string_view bytes, int flush);
  void WriteOut(const char* data, size_t size);

  std::string path_;
  std::string temporary_;
  int fd_;
  bool overwrite_;
  bool gzip_;
  bool committed_ = false;
  std::string failure_;
  uint64_t written_ = 0;
  z_stream zlib_{};
  std::vector<char> compressed_;
};

}  // namespace trainprof
