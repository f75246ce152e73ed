// An output file, plain or gzip by its name's ending; see trace/io/output_file.h for how it is
// written.
#pragma once

#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/base/result.h"
#include "trace/io/output_file.h"

namespace trainprof {

class FileSink {
 public:
  static Result<std::unique_ptr<FileSink>> Open(const std::string& path, bool overwrite);
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  // Without a successful Commit() nothing stays.
  ~FileSink();

  // After a failed write the rest is ignored; Commit() reports it.
  void Write(std::string_view bytes);
  Result<void> Commit();

 private:
  FileSink(std::unique_ptr<OutputFile> file, bool gzip);
  void Compress(std::string_view bytes, int flush);

  std::unique_ptr<OutputFile> file_;
  bool gzip_;
  bool zlib_ready_ = false;
  z_stream zlib_{};
  std::vector<char> compressed_;
};

}  // namespace trainprof
