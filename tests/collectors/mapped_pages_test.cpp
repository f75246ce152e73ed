// Pages of a segment that are mapped to be written (collectors/core/system.h): also where the kernel cannot make them
// writable ahead, and never such as would end the program at their first write.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "collectors/core/system.h"
#include "tests/support/scratch_folder.h"
#include "trace/recording/files/recorded_files.h"

namespace trainprof::testing {
namespace {

constexpr uint64_t kOffset = 64 * 1024;
constexpr size_t kBytes = 64 * 1024;

recording::OwnedFd NewFile(const ScratchFolder& folder) {
  return recording::OwnedFd(collectors::CreateFile((folder / "pages").c_str(), 0600));
}

// As Linux before 5.14: that advice is not known.
void ForgetPopulateWrite() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_POPULATE_WRITE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {static_cast<unsigned short>(std::size(filter)), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(2);
}

using Allocate = int (*)(int fd, uint64_t offset, uint64_t length);

bool WritesReachTheFile(int fd, Allocate allocate) {
  int error = 0;
  if (allocate(fd, kOffset, kBytes) != 0) return false;
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_size != kOffset + kBytes) return false;
  auto* const pages = static_cast<char*>(collectors::MapShared(fd, kOffset, kBytes, &error));
  if (pages == nullptr || error != 0) return false;
  if (std::count(pages, pages + kBytes, 0) != kBytes) return false;
  std::fill_n(pages, kBytes, 'x');
  char last = 0;
  return pread(fd, &last, 1, kOffset + kBytes - 1) == 1 && last == 'x';
}

TEST(MappedPages, AreWritten) {
  const ScratchFolder folder;
  EXPECT_TRUE(WritesReachTheFile(NewFile(folder).get(), collectors::AllocateBlocks));
  const ScratchFolder other;
  EXPECT_TRUE(WritesReachTheFile(NewFile(other).get(), collectors::AllocatePagesOfFile));
}

// Without SIGXFSZ, which would end the program.
TEST(MappedPages, BeyondTheLimitOfAFileAreRefused) {
  for (const Allocate allocate : {collectors::AllocateBlocks, collectors::AllocatePagesOfFile}) {
    const ScratchFolder folder;
    const recording::OwnedFd file = NewFile(folder);
    const pid_t child = fork();
    if (child == 0) {
      const rlimit limit = {kOffset + kBytes - 1, kOffset + kBytes - 1};
      setrlimit(RLIMIT_FSIZE, &limit);
      _exit(allocate(file.get(), kOffset, kBytes) == -EFBIG ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(MappedPages, AreWrittenOnAnOldKernel) {
  const ScratchFolder folder;
  const recording::OwnedFd file = NewFile(folder);
  const pid_t child = fork();
  if (child == 0) {
    ForgetPopulateWrite();
    _exit(WritesReachTheFile(file.get(), collectors::AllocatePagesOfFile) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(MappedPages, WhatTheFileDoesNotHoldIsRefused) {
  const ScratchFolder folder;
  const recording::OwnedFd file = NewFile(folder);
  int error = 0;
  EXPECT_EQ(collectors::MapShared(file.get(), kOffset, kBytes, &error), nullptr);
  EXPECT_EQ(error, -EFAULT);
}

}  // namespace
}  // namespace trainprof::testing
