// The one way in which a file that somebody named is written. A regular file appears whole or not
// at all: it is written under another name in its folder and renamed by Commit(). What is no
// regular file (/dev/stdout, a FIFO, a character device) is never replaced but written into; a
// symbolic link stays, and the file it names is written.
//
//   auto file = OutputFile::Open("report.json", OutputFile::Existing::kReplace);
//   if (!file.ok()) return Error{file.error()};  // "no/report.json: the folder does not exist"
//   file.value()->Write(text);
//   return file.value()->Commit();
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "trace/base/result.h"

namespace trainprof {

class OutputFile {
 public:
  // What to do about a regular file that exists.
  enum class Existing { kReplace, kRefuse };

  // A new file gets the mode that the umask leaves, one that replaces another its mode. A FIFO is
  // opened when somebody reads it, as a shell does.
  static Result<std::unique_ptr<OutputFile>> Open(const std::string& path, Existing existing);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  // Without a successful Commit() nothing stays of a regular file.
  ~OutputFile();

  // After a failed write the rest is ignored; Commit() reports it.
  void Write(std::string_view bytes);
  bool failed() const { return !failure_.empty(); }
  Result<void> Commit();

 private:
  OutputFile(std::string path, Existing existing) : path_(std::move(path)), existing_(existing) {}
  Result<void> OpenTarget();
  int OpenTemporary(const std::string& folder, bool is_new);
  Result<void> Publish();
  Error Failure(int error) const;

  const std::string path_;  // as the user wrote it: what messages name
  const Existing existing_;
  int fd_ = -1;
  std::string target_;     // behind links; the file that Publish() makes or replaces
  std::string temporary_;  // beside it; "" where what is there is written into
  uint64_t written_ = 0;
  std::string failure_;
};

// Opens, writes, commits.
Result<void> WriteOutputFile(const std::string& path, std::string_view text,
                             OutputFile::Existing existing = OutputFile::Existing::kReplace);

// What Open() would say now, without making or opening anything: for those who work long before
// they write.
Result<void> CheckOutputFile(const std::string& path, OutputFile::Existing existing);

// Whether `path` names something that is written into, not replaced: a device, a FIFO, an open
// descriptor.
bool IsWrittenInto(const std::string& path);

// Removes what is half written, of all threads. For signal handlers: async-signal-safe.
void RemoveUnfinishedFiles();

}  // namespace trainprof
