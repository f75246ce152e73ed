// The profiled program calls a process between: the attendant. It shares our memory and stands
// still for nobody but the calling thread (as vfork does), and it ends without a signal to the
// program, which a process that executes another file cannot. The process that does execute one is
// the attendant's child, so that its end and its descriptors concern nobody else.
#include "collectors/core/own_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "collectors/core/system.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

constexpr size_t kStackBytes = 256 * 1024;  // sanitizers need more than we do
// Endless recursion, which libcupti 13.2 is known for, must end before memory does.
constexpr rlim_t kMostStack = 8 * 1024 * 1024;

struct Job {
  const OwnProcess* process;
  char* output;
  size_t size;
  char* child_stack;  // its upper end
  int pipe_end;
  int start_error;  // written by the child where it cannot execute the program
  OwnProcessEnd end;
};

void Await(long pid, int options, int* status) {
  while (syscall(SYS_wait4, pid, status, options, nullptr) < 0 && errno == EINTR) {
  }
}

// False where it has not ended within a second: a driver may hold who was killed for as long as it
// likes.
bool AwaitKilled(long pid, int* status) {
  const int64_t deadline = recording::MonotonicNs() + recording::kNsPerSecond;
  const timespec step = {0, 1'000'000};
  while (recording::MonotonicNs() < deadline) {
    const long ended = syscall(SYS_wait4, pid, status, WNOHANG, nullptr);
    if (ended == pid || (ended < 0 && errno != EINTR)) return true;
    syscall(SYS_ppoll, nullptr, 0, &step, nullptr, 0);
  }
  return false;
}

[[noreturn]] void Leave(int code) {
  for (;;) syscall(SYS_exit_group, code);
}

constexpr int kAllDescriptors = INT_MAX;

void CloseBetween(int first, int end) {
  if (first >= end) return;
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, end - 1, 0) == 0) return;
#endif
  constexpr int kMostTried = 4096;  // kernels before 5.9
  for (int fd = first; fd < end && fd < kMostTried; ++fd) syscall(SYS_close, fd);
}

// Standard streams are the program's: what a library prints must not come between.
bool TakeDescriptors(int pipe_end) {
  if (pipe_end != kOwnProcessOutput) {
    if (syscall(SYS_dup3, pipe_end, kOwnProcessOutput, 0) < 0) return false;
  } else if (syscall(SYS_fcntl, pipe_end, F_SETFD, 0) < 0) {
    return false;
  }
  CloseBetween(kOwnProcessOutput + 1, kAllDescriptors);
  for (int fd = 0; fd < kOwnProcessOutput; ++fd) syscall(SYS_close, fd);
  for (int fd = 0; fd < kOwnProcessOutput; ++fd) {
    if (syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR) < 0) return false;
  }
  return true;
}

// In the child, which shares our memory until it executes the program.
int Become(void* argument) {
  auto* job = static_cast<Job*>(argument);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur > kMostStack) {
    stack.rlim_cur = kMostStack;
    setrlimit(RLIMIT_STACK, &stack);
  }
  // One byte: too little for a file, and with it the kernel starts no core_pattern program either.
  const rlimit core = {1, 1};
  setrlimit(RLIMIT_CORE, &core);
  if (TakeDescriptors(job->pipe_end)) {
    const OwnProcess& process = *job->process;
    syscall(SYS_execve, process.program, process.arguments, process.environment);
  }
  job->start_error = -errno;
  Leave(127);
}

// Reads until the output ends or time is up. False: time is up.
bool ReadOutput(Job& job, int fd) {
  const int64_t deadline = recording::MonotonicNs() + job.process->limit_ns;
  while (job.end.output_bytes < job.size) {
    const int64_t left = deadline - recording::MonotonicNs();
    if (left <= 0) return false;
    pollfd ready = {fd, POLLIN, 0};
    const timespec limit = recording::ToTimespec(left);
    const long waited = syscall(SYS_ppoll, &ready, 1, &limit, nullptr, 0);
    if (waited < 0 && errno != EINTR) return true;
    if (waited <= 0) continue;
    char* rest = job.output + job.end.output_bytes;
    const long got = syscall(SYS_read, fd, rest, job.size - job.end.output_bytes);
    if (got <= 0) return true;
    job.end.output_bytes += static_cast<size_t>(got);
  }
  return true;
}

// In the attendant. With all signals blocked, none of the program's handlers runs here.
int Attend(void* argument) {
  auto* job = static_cast<Job*>(argument);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Where the program ignores SIGCHLD the kernel would throw the exit code away. This process has
  // dispositions of its own; all zero is the kernel's SIG_DFL.
  const uint64_t standard[4] = {};
  syscall(SYS_rt_sigaction, SIGCHLD, standard, nullptr, sizeof(uint64_t));
  int ends[2];
  if (syscall(SYS_pipe2, ends, O_CLOEXEC) != 0) {
    job->end.error = -errno;
    Leave(0);
  }
  // Copies of the program's: who waits for the other end of a pipe shall not wait for us.
  CloseBetween(0, ends[0]);
  CloseBetween(ends[0] + 1, ends[1]);
  CloseBetween(ends[1] + 1, kAllDescriptors);
  job->pipe_end = ends[1];
  const pid_t child = clone(Become, job->child_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, job);
  if (child < 0) {
    job->end.error = -errno;
    Leave(0);
  }
  syscall(SYS_close, ends[1]);
  job->end.timed_out = !ReadOutput(*job, ends[0]);
  // Who has closed its output is at its end: then its exit code stands and this changes nothing.
  syscall(SYS_kill, child, SIGKILL);
  int status = 0;
  job->end.timed_out |= !AwaitKilled(child, &status);
  job->end.error = job->start_error;
  job->end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  job->end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  Leave(0);
}

}  // namespace

OwnProcessEnd RunOwnProcess(const OwnProcess& process, void* output, size_t size) {
  Job job{};
  job.process = &process;
  job.output = static_cast<char*>(output);
  job.size = size;
  auto* stacks = static_cast<char*>(AllocatePages(2 * kStackBytes));
  if (stacks == nullptr) {
    job.end.error = -ENOMEM;
    return job.end;
  }
  job.child_stack = stacks + 2 * kStackBytes;
  const int errno_before = errno;  // the processes write to this thread's
  constexpr uint64_t kAll = ~uint64_t{0};
  uint64_t before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kAll, &before, sizeof kAll);
  // No signal at its end: only a wait that asks for such children by __WCLONE finds it.
  const pid_t attendant = clone(Attend, stacks + kStackBytes, CLONE_VM | CLONE_VFORK, &job);
  if (attendant < 0) {
    job.end.error = -errno;
  } else {
    Await(attendant, __WCLONE, nullptr);
  }
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  errno = errno_before;
#ifdef __SANITIZE_ADDRESS__
  // The processes never returned from their functions: whatever is mapped here next would be taken
  // for what those had marked as out of bounds.
  __asan_unpoison_memory_region(stacks, 2 * kStackBytes);
#endif
  ReleasePages(stacks, 2 * kStackBytes);
  return job.end;
}

}  // namespace trainprof::collectors
