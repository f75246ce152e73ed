// An output file, plain or gzip by its name's ending; see trace/io/output_file.h for how it is
// written.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trace/base/result.h"
#include "trace/io/output_file.h"

namespace trainprof {

class FileSink {
 public:
  // Who compresses and writes what comes of a large file: a thread beside the one that makes it; or whoever hands it
  // over, where several threads make it (MakeTextsInOrder): one more than cores takes their time.
  enum class WrittenBy { kOtherThread, kCaller };

  static Result<std::unique_ptr<FileSink>> Open(const std::string& path, bool overwrite,
                                                WrittenBy written_by = WrittenBy::kOtherThread);
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  ~FileSink();

  // After a failed write the rest is ignored; Commit() reports it. Without a successful Commit()
  // nothing stays.
  void Write(std::string_view bytes);
  // The same without a copy where they are many: what is left in `bytes` means nothing, and has room.
  void Take(std::string& bytes);
  Result<void> Commit();

 private:
  class Blocks;

  explicit FileSink(std::unique_ptr<OutputFile> file);

  std::unique_ptr<OutputFile> file_;
  std::unique_ptr<Blocks> blocks_;
};

}  // namespace trainprof
