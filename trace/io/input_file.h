// What a path names, read once from its begin to its end: a file, or a stream, such as a FIFO or
// the pipe behind /dev/stdin and <(zcat x.json.gz). Waiting for a stream can be called off.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "trace/base/result.h"

namespace trainprof {

class InputFile {
 public:
  // A FIFO need not be open for writing yet. Errors say what is no trace: a folder, a terminal, a
  // socket, a disk.
  static Result<std::unique_ptr<InputFile>> Open(const std::string& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  // Some bytes, 0 at the end, -1 on an error with errno set. While it waits for a stream it asks
  // `stop` some twenty times a second; true ends it with ECANCELED. `stop` may throw.
  ssize_t Read(char* out, size_t capacity, const std::function<bool()>& stop);

 private:
  InputFile(int fd, bool is_stream) : fd_(fd), is_stream_(is_stream) {}

  const int fd_;
  const bool is_stream_;
};

// Whether `path` can be read only once.
bool IsStream(const std::string& path);

}  // namespace trainprof
