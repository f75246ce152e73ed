// Reads the files of a folder on all cores, ahead of the one thread that takes their traces in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/base/parallel.h"
#include "trace/base/result.h"
#include "trace/tables/trace.h"

namespace trainprof {

class FilesAhead {
 public:
  // Called on several threads at once, each file once, unless there was no memory for it.
  using Load = std::function<Result<Trace>(size_t file)>;

  // `needs`: of each file what its trace may take, in bytes, roughly: where that is not at hand no file is read
  // ahead. At most one a core is read, one of them by who takes them, and one more than cores are read or wait to be
  // taken: no core is idle while the next one to be taken takes long.
  FilesAhead(std::vector<uint64_t> needs, Load load);
  FilesAhead(const FilesAhead&) = delete;
  FilesAhead& operator=(const FilesAhead&) = delete;
  // What is being read ends soon, where it has cancel points.
  ~FilesAhead();

  // The next file's. Not to be called more often than there are files. A file that finds no memory beside others
  // is read again by itself, and so are all behind it; std::bad_alloc is of a file alone. Can be cancelled.
  Result<Trace> Next();

 private:
  struct Slot {
    std::optional<Result<Trace>> loaded;
    std::exception_ptr failure;
    bool lacks_memory = false;
    bool is_done = false;
  };
  void Work();
  bool MayReadAhead() const;
  void LoadClaimed(std::unique_lock<std::mutex>& lock);
  Result<Trace> LoadAlone(std::unique_lock<std::mutex>& lock);

  const std::vector<uint64_t> needs_;  // by file
  const Load load_;
  const CancelScope* const outer_;
  std::vector<Slot> slots_;  // by file
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t given_ = 0;    // by Next()
  size_t claimed_ = 0;  // read, or being read
  size_t reading_ = 0;
  bool is_alone_ = false;
  bool stop_ = false;
  Helpers helpers_;
};

}  // namespace trainprof
