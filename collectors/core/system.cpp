#include "collectors/core/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <iterator>

#include "trace/base/held_signals.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

int ToResult(long value) { return value < 0 ? -errno : static_cast<int>(value); }

// Keeps the program's errno: no NVTX call may change it.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_;
};

constexpr int kPermissions = 0777;

int ModeOf(int fd) {
  struct stat status {};
  return syscall(SYS_fstat, fd, &status) == 0 ? static_cast<int>(status.st_mode) : 0;
}

// A write reserves the blocks that it will need, also where there is no fallocate.
int WriteZeros(int fd, uint64_t offset, uint64_t length) {
  static const char kZeros[4096] = {};
  for (uint64_t done = 0; done < length;) {
    iovec parts[16];
    unsigned count = 0;
    for (uint64_t at = done; at < length && count < std::size(parts); at += sizeof kZeros) {
      const uint64_t left = length - at;
      parts[count++] = {const_cast<char*>(kZeros), left < sizeof kZeros ? left : sizeof kZeros};
    }
    const int wrote = ToResult(syscall(SYS_pwritev, fd, parts, count, offset + done, 0L));
    if (wrote == -EINTR) continue;
    if (wrote < 0) return wrote;
    if (wrote == 0) return -ENOSPC;
    done += static_cast<uint64_t>(wrote);
  }
  return 0;
}

// What is to be wiped by hand in a forked child. Filled while the library starts.
constexpr int kMostWiped = 4;
struct WipedPages {
  void* pages;
  size_t size;
};
constinit WipedPages g_wiped[kMostWiped]{};
constinit std::atomic<int> g_wiped_count{0};

void WipeInChild() {
  for (WipedPages& wiped : g_wiped) {
    if (wiped.pages != nullptr) memset(wiped.pages, 0, wiped.size);
  }
}

}  // namespace

int OpenFile(const char* path, int flags, int mode) {
  KeepErrno keep;
  for (;;) {
    const int fd = ToResult(syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode));
    if (fd != -EINTR) return fd;
  }
}

int OpenRecorded(const char* path, int flags, int mode) {
  const char* const name = strrchr(path, '/');
  char folder[PATH_MAX];
  if (name == nullptr || name == path || name - path >= PATH_MAX) return -ENOENT;
  memcpy(folder, path, static_cast<size_t>(name - path));
  folder[name - path] = 0;
  const int parent = OpenFile(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (parent < 0) return parent;
  const int fd = OpenRecordedIn(parent, name + 1, flags, mode);
  CloseFile(parent);
  return fd;
}

int OpenRecordedIn(int folder, const char* name, int flags, int mode) {
  KeepErrno keep;
  flags |= O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int fd = -EINTR;
  while (fd == -EINTR) fd = ToResult(syscall(SYS_openat, folder, name, flags, mode));
  struct stat status {};
  if (fd < 0 || (syscall(SYS_fstat, fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  CloseFile(fd);
  return -EXDEV;
}

int DuplicateFile(int fd) {
  KeepErrno keep;
  return ToResult(syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0));
}

void CloseFile(int fd) {
  KeepErrno keep;
  syscall(SYS_close, fd);
}

int ReadSmallFile(const char* path, char* buffer, size_t size) {
  const int fd = OpenFile(path, O_RDONLY);
  if (fd < 0) return fd;
  KeepErrno keep;
  size_t used = 0;
  while (used + 1 < size) {
    const int n = ToResult(syscall(SYS_read, fd, buffer + used, size - 1 - used));
    if (n == -EINTR) continue;
    if (n <= 0) break;
    used += static_cast<size_t>(n);
  }
  CloseFile(fd);
  buffer[used] = 0;
  return static_cast<int>(used);
}

int ReadLink(const char* path, char* buffer, size_t size) {
  KeepErrno keep;
  return ToResult(syscall(SYS_readlinkat, AT_FDCWD, path, buffer, size));
}

int MakeFolder(const char* path, int mode) {
  KeepErrno keep;
  const int result = ToResult(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
  if (result == 0 && (FolderMode(path) & kPermissions) != mode) {
    syscall(SYS_fchmodat, AT_FDCWD, path, mode | (FolderMode(path) & S_ISGID));
  }
  return result == -EEXIST ? 0 : result;
}

int FolderMode(const char* path) {
  KeepErrno keep;
  const int fd = OpenFile(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return 0;
  const int mode = ModeOf(fd);
  CloseFile(fd);
  return mode;
}

int CreateFile(const char* path, int mode) {
  const int fd = OpenRecorded(path, O_RDWR | O_CREAT | O_EXCL, mode);
  KeepErrno keep;
  if (fd >= 0 && (ModeOf(fd) & kPermissions) != mode) syscall(SYS_fchmod, fd, mode);
  return fd;
}

bool FolderExists(const char* path) {
  const int fd = OpenFile(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (fd < 0) return false;
  CloseFile(fd);
  return true;
}

int WriteFile(int fd, const void* data, size_t size) {
  KeepErrno keep;
  HeldSignals hold(SignalBit(SIGXFSZ));
  for (size_t done = 0; done < size;) {
    const int wrote = ToResult(
        syscall(SYS_pwrite64, fd, static_cast<const char*>(data) + done, size - done, done));
    if (wrote == -EINTR) continue;
    if (wrote == -EFBIG) hold.Swallow();
    if (wrote <= 0) return wrote < 0 ? wrote : -ENOSPC;
    done += static_cast<size_t>(wrote);
  }
  return 0;
}

bool FileSystemOf(const char* folder, FileSystem* found) {
  KeepErrno keep;
  struct statfs status {};
  if (ToResult(syscall(SYS_statfs, folder, &status)) != 0) return false;
  // f_type is signed: magic numbers with the highest of 32 bits set come as negative ones.
  found->type = static_cast<uint32_t>(status.f_type);
  found->free_bytes =
      static_cast<uint64_t>(status.f_bavail) * static_cast<uint64_t>(status.f_bsize);
  return true;
}

namespace {

bool IsQuickerToWrite(int fd) {
  constexpr uint32_t kExt4 = 0xEF53;
  struct statfs status {};
  return ToResult(syscall(SYS_fstatfs, fd, &status)) == 0 &&
         static_cast<uint32_t>(status.f_type) == kExt4;
}

// `by_writing`: else only where the file system has no other way.
int Allocate(int fd, uint64_t offset, uint64_t length, bool by_writing) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      offset + length > limit.rlim_cur) {
    return -EFBIG;
  }
  // The limit may change between the test above and the call below.
  HeldSignals hold(SignalBit(SIGXFSZ));
  for (;;) {
    int result = by_writing ? -EOPNOTSUPP : ToResult(syscall(SYS_fallocate, fd, 0, offset, length));
    if (result == -EINTR) continue;
    if (result == -EOPNOTSUPP || result == -ENOSYS) result = WriteZeros(fd, offset, length);
    if (result == -EFBIG) hold.Swallow();
    return result;
  }
}

}  // namespace

int AllocateBlocks(int fd, uint64_t offset, uint64_t length) {
  KeepErrno keep;
  return Allocate(fd, offset, length, false);
}

int AllocatePagesOfFile(int fd, uint64_t offset, uint64_t length) {
  KeepErrno keep;
  return Allocate(fd, offset, length, IsQuickerToWrite(fd));
}

void* AllocatePages(size_t size) {
  KeepErrno keep;
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void ReleasePages(void* pages, size_t size) {
  KeepErrno keep;
  munmap(pages, size);
}

void* AllocatePagesWipedInChild(size_t size) {
  size = (size + PageSize() - 1) / PageSize() * PageSize();
  void* pages = AllocatePages(size);
  if (pages == nullptr || madvise(pages, size, MADV_WIPEONFORK) == 0) return pages;
  const int slot = g_wiped_count.fetch_add(1);
  if (slot == 0) pthread_atfork(nullptr, nullptr, WipeInChild);
  if (slot >= kMostWiped) return nullptr;
  g_wiped[slot] = {pages, size};
  return pages;
}

void* ReserveAddresses(size_t size) {
  KeepErrno keep;
  void* pages = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

int MapSharedAt(void* where, int fd, uint64_t offset, size_t size) {
  KeepErrno keep;
  void* map = mmap(where, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
                   static_cast<off_t>(offset));
  return map == MAP_FAILED ? -errno : 0;
}

int MapPrivateAt(void* where, size_t size) {
  KeepErrno keep;
  void* map =
      mmap(where, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return map == MAP_FAILED ? -errno : 0;
}

void RemoveFile(const char* path) {
  KeepErrno keep;
  syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

void SleepWhile(std::atomic<uint32_t>* word, uint32_t expected, int64_t timeout_ns) {
  KeepErrno keep;
  const timespec timeout = recording::ToTimespec(timeout_ns);
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}

void Wake(std::atomic<uint32_t>* word) {
  KeepErrno keep;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

void* MapShared(int fd, uint64_t offset, size_t size, int* error) {
  KeepErrno keep;
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which headers before glibc 2.35 lack
  const auto at = static_cast<off_t>(offset);
  void* map = mmap(nullptr, size, kAccess, MAP_SHARED, fd, at);
  if (map != MAP_FAILED) {
    madvise(map, size, MADV_RANDOM);  // else a page that is missing looks for 31 more around it
    if (madvise(map, size, kPopulateWrite) == 0) return map;
    if (errno != EINVAL) {
      *error = -errno;
      munmap(map, size);
      return nullptr;
    }
    // Before Linux 5.14: to be read, so that the first write to each page faults again.
    map = mmap(map, size, kAccess, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, at);
    if (map != MAP_FAILED) return map;
  }
  *error = -errno;
  return nullptr;
}

ThreadUsage UsageOfThread() {
  rusage usage;
  memset(&usage, 0, sizeof usage);
  syscall(SYS_getrusage, RUSAGE_THREAD, &usage);
  const auto ns = [](const timeval& time) {
    return time.tv_sec * 1'000'000'000 + time.tv_usec * 1000;
  };
  return {ns(usage.ru_utime) + ns(usage.ru_stime), static_cast<uint32_t>(usage.ru_nvcsw),
          static_cast<uint32_t>(usage.ru_nivcsw)};
}

int ThreadId() { return static_cast<int>(syscall(SYS_gettid)); }
int ProcessId() { return static_cast<int>(syscall(SYS_getpid)); }
int ParentProcessId() { return static_cast<int>(syscall(SYS_getppid)); }
size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

bool ReadProcessStat(int pid, int* parent, uint64_t* start) {
  char path[64];
  char text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  if (ReadSmallFile(path, text, sizeof text) <= 0) return false;
  // The command name, in parentheses, may itself hold spaces and parentheses.
  const char* p = strrchr(text, ')');
  if (p == nullptr || p[1] != ' ') return false;
  p += 2;
  constexpr int kParentField = 4;
  constexpr int kStartField = 22;
  for (int field = 3; field <= kStartField; ++field) {
    if (field == kParentField) *parent = static_cast<int>(strtol(p, nullptr, 10));
    if (field == kStartField) *start = strtoull(p, nullptr, 10);
    p = strchr(p, ' ');
    if (p == nullptr) return false;
    ++p;
  }
  return true;
}

const char* DescribeError(int negative_errno) {
  switch (-negative_errno) {
    case EPERM:
      return "EPERM (not permitted)";
    case ENOENT:
      return "ENOENT (no such file or folder)";
    case EIO:
      return "EIO (input/output error)";
    case EAGAIN:
      return "EAGAIN (no more processes or threads may be started)";
    case ENOEXEC:
      return "ENOEXEC (it cannot be executed)";
    case ENOMEM:
      return "ENOMEM (out of memory or of mappings)";
    case EACCES:
      return "EACCES (permission denied)";
    case EEXIST:
      return "EEXIST (exists)";
    case ENODEV:
      return "ENODEV (this file system cannot be mapped)";
    case ELOOP:
      return "ELOOP (a link, which is not followed)";
    case EXDEV:
      return "not a regular file";
    case ENOTDIR:
      return "ENOTDIR (not a folder, or a link, which is not followed)";
    case EINVAL:
      return "EINVAL";
    case ENFILE:
    case EMFILE:
      return "EMFILE (too many open files)";
    case EFBIG:
      return "EFBIG (file size limit, see ulimit -f)";
    case ENOSPC:
      return "ENOSPC (no space left on the device)";
    case EROFS:
      return "EROFS (read-only file system)";
    case EDQUOT:
      return "EDQUOT (disk quota exceeded)";
    default:
      return "an unexpected error";
  }
}

}  // namespace trainprof::collectors
