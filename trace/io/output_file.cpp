#include "trace/io/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "trace/io/output_target.h"
#include "trace/io/write_all.h"

namespace trainprof {
namespace {

constexpr int kFirstOwnDescriptor = STDERR_FILENO + 1;
constexpr int kMostNamesTried = 100;

// Names of half-written files, for a signal handler. More at once than anybody opens; one too many
// would only stay behind after a signal.
constexpr size_t kMostUnfinished = 16;
std::atomic<const char*> g_unfinished[kMostUnfinished];

void NoteUnfinished(const char* name) {
  for (std::atomic<const char*>& slot : g_unfinished) {
    const char* free_slot = nullptr;
    if (slot.compare_exchange_strong(free_slot, name)) return;
  }
}

void ForgetUnfinished(const char* name) {
  for (std::atomic<const char*>& slot : g_unfinished) {
    const char* noted = name;
    if (slot.compare_exchange_strong(noted, nullptr)) return;
  }
}

// Nobody can have put a file or a link there beforehand.
std::string TemporaryName(const std::string& folder) {
  uint64_t number[2] = {};
  if (getrandom(number, sizeof number, 0) != sizeof number) {
    number[0] = static_cast<uint64_t>(getpid());  // O_EXCL guards what remains
    number[1] = reinterpret_cast<uintptr_t>(&folder);
  }
  return fmt::format("{}/.trainprof-{:016x}{:016x}.part", folder == "/" ? "" : folder, number[0],
                     number[1]);
}

// With standard descriptors closed (`2>&-`) the file would take their number, and messages would
// go into it.
int AboveStandard(int fd) {
  if (fd < 0 || fd >= kFirstOwnDescriptor) return fd;
  const int above = fcntl(fd, F_DUPFD_CLOEXEC, kFirstOwnDescriptor);
  const int error = errno;
  close(fd);
  errno = error;
  return above;
}

Error ExistsAlready(const std::string& path, const char* when) {
  return Error{fmt::format("{}: exists already{}; remove it, choose another name, or use --force",
                           path, when)};
}

bool IsRegularOrAbsent(const std::string& file) {
  struct stat info {};
  return lstat(file.c_str(), &info) != 0 ? errno == ENOENT : S_ISREG(info.st_mode);
}

}  // namespace

Result<std::unique_ptr<OutputFile>> OutputFile::Open(const std::string& path, Existing existing) {
  std::unique_ptr<OutputFile> file(new OutputFile(path, existing));
  Result<void> opened = file->OpenTarget();
  if (!opened.ok()) return Error{opened.error()};
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  ForgetUnfinished(temporary_.c_str());
}

Error OutputFile::Failure(int error) const {
  return Error{fmt::format("{}: cannot be written: {}{}", path_, std::strerror(error),
                           WhatToDoAboutWriting(error))};
}

Result<void> OutputFile::OpenTarget() {
  const Result<OutputTarget> found = FindOutputTarget(path_);
  if (!found.ok()) return Error{found.error()};
  const OutputTarget& target = found.value();
  switch (target.kind) {
    case OutputTarget::Kind::kDescriptor:
      // What was printed before comes before; and shares its place in the file.
      std::fflush(nullptr);
      fd_ = fcntl(target.descriptor, F_DUPFD_CLOEXEC, kFirstOwnDescriptor);
      break;
    case OutputTarget::Kind::kSpecial:
      fd_ = AboveStandard(open(target.file.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
      break;
    case OutputTarget::Kind::kRegular:
      if (existing_ == Existing::kRefuse) return ExistsAlready(path_, "");
      fd_ = OpenTemporary(target.folder, false);
      // The temporary file was made for its owner alone.
      if (fd_ >= 0) (void)!fchmod(fd_, target.mode & 0777);
      break;
    case OutputTarget::Kind::kAbsent:
      fd_ = OpenTemporary(target.folder, true);
      break;
  }
  if (fd_ < 0) return Failure(errno);
  target_ = target.file;
  return {};
}

int OutputFile::OpenTemporary(const std::string& folder, bool is_new) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = -1;
  for (int i = 0; i < kMostNamesTried; ++i) {
    temporary_ = TemporaryName(folder);
    // Before it is made: a signal in between must not leave it.
    NoteUnfinished(temporary_.c_str());
    fd = AboveStandard(open(temporary_.c_str(), kFlags, is_new ? 0666 : 0600));
    if (fd >= 0) return fd;
    const int error = errno;
    ForgetUnfinished(temporary_.c_str());
    temporary_.clear();
    errno = error;
    if (error != EEXIST) break;
  }
  return fd;
}

void OutputFile::Write(std::string_view bytes) {
  if (!failure_.empty()) return;
  const int error = WriteAll(fd_, bytes, &written_);
  if (error == 0) return;
  failure_ = fmt::format("{}: writing failed after {} bytes: {}{}", path_, written_,
                         std::strerror(error), WhatToDoAboutWriting(error));
}

Result<void> OutputFile::Commit() {
  const int fd = std::exchange(fd_, -1);
  // close() is where a network or quota file system reports what it could not store.
  if (close(fd) != 0 && failure_.empty()) failure_ = Failure(errno).message;
  if (!failure_.empty()) return Error{failure_};
  return temporary_.empty() ? Result<void>() : Publish();
}

Result<void> OutputFile::Publish() {
  if (existing_ == Existing::kRefuse) {
    // link() fails where the name has come up meanwhile; rename() would replace it. File systems
    // without links have to do with the latter. The destructor removes the other name.
    if (link(temporary_.c_str(), target_.c_str()) == 0) return {};
    struct stat info {};
    if (errno == EEXIST || lstat(target_.c_str(), &info) == 0) {
      return ExistsAlready(path_, " (it came up while writing)");
    }
  }
  if (!IsRegularOrAbsent(target_)) {
    return Error{fmt::format("{}: cannot be written: it became something else meanwhile", path_)};
  }
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return Failure(errno);
  ForgetUnfinished(temporary_.c_str());
  temporary_.clear();
  return {};
}

Result<void> WriteOutputFile(const std::string& path, std::string_view text,
                             OutputFile::Existing existing) {
  Result<std::unique_ptr<OutputFile>> file = OutputFile::Open(path, existing);
  if (!file.ok()) return Error{file.error()};
  file.value()->Write(text);
  return file.value()->Commit();
}

Result<void> CheckOutputFile(const std::string& path, OutputFile::Existing existing) {
  const Result<OutputTarget> found = FindOutputTarget(path);
  if (!found.ok()) return Error{found.error()};
  const bool there = found.value().kind == OutputTarget::Kind::kRegular;
  if (there && existing == OutputFile::Existing::kRefuse) return ExistsAlready(path, "");
  return {};
}

bool IsWrittenInto(const std::string& path) {
  const Result<OutputTarget> found = FindOutputTarget(path);
  return found.ok() && (found.value().kind == OutputTarget::Kind::kSpecial ||
                        found.value().kind == OutputTarget::Kind::kDescriptor);
}

void RemoveUnfinishedFiles() {
  for (const std::atomic<const char*>& slot : g_unfinished) {
    if (const char* const name = slot.load(); name != nullptr) unlink(name);
  }
}

}  // namespace trainprof
