// Runs work in a forked copy of the supervisor, within a time and a memory limit.
#include "profiler/process/isolated.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <new>

#include <fmt/format.h>

#include "trace/io/write_all.h"

namespace trainprof {
namespace {

constexpr int kWorkFailed = 1;

// Sanitizers reserve terabytes of address space, which no limit may cut.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

std::string ReadAll(int descriptor) {
  std::string text(kMaxIsolatedText, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = read(descriptor, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

[[noreturn]] void Work(const std::function<std::string()>& work, const IsolatedLimits& limits,
                       int pipe_end) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (limits.memory_bytes != UINT64_MAX && !kSanitized) {
    const rlimit memory = {limits.memory_bytes, limits.memory_bytes};
    setrlimit(RLIMIT_AS, &memory);
  }
  int code = 0;
  std::string text;
  try {
    text = work();
  } catch (const std::bad_alloc&) {
    code = kWorkFailed;
    text = fmt::format("it needs more than {} MiB", limits.memory_bytes >> 20);
  } catch (const std::exception& error) {
    code = kWorkFailed;
    text = error.what();
  } catch (...) {
    code = kWorkFailed;
    text = "unknown error";
  }
  if (text.size() > kMaxIsolatedText) text.resize(kMaxIsolatedText);
  WriteAll(pipe_end, text);
  _exit(code);
}

struct Waited {
  int status = 0;
  bool timed_out = false;
  bool interrupted = false;
};

Waited AwaitWithin(pid_t pid, const IsolatedLimits& limits, SignalInbox& inbox) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + limits.time;
  Waited waited;
  int interrupts = 0;
  for (;;) {
    const pid_t ended = waitpid(pid, &waited.status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return waited;
    waited.timed_out = Clock::now() >= deadline;
    if (waited.timed_out || waited.interrupted) break;
    const auto signal = inbox.Wait(deadline - Clock::now());
    if (signal && signal->si_signo == SIGINT)
      waited.interrupted = ++interrupts >= limits.interrupts;
  }
  kill(pid, SIGKILL);
  while (waitpid(pid, &waited.status, 0) < 0 && errno == EINTR) {
  }
  return waited;
}

}  // namespace

IsolatedResult RunIsolated(const std::function<std::string()>& work, const IsolatedLimits& limits,
                           SignalInbox& inbox) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return {false, false, strerror(errno)};
  const pid_t pid = fork();
  if (pid == 0) Work(work, limits, pipe_ends[1]);
  const int fork_errno = errno;
  close(pipe_ends[1]);
  IsolatedResult result;
  if (pid < 0) {
    result.text = fmt::format("cannot fork: {}", strerror(fork_errno));
  } else {
    const Waited waited = AwaitWithin(pid, limits, inbox);
    result.interrupted = waited.interrupted;
    if (waited.interrupted) {
      result.text = "interrupted";
    } else if (waited.timed_out) {
      result.text = fmt::format("it took more than {} ms", limits.time.count());
    } else if (WIFSIGNALED(waited.status)) {
      result.text = fmt::format("it ended with signal {} ({})", WTERMSIG(waited.status),
                                strsignal(WTERMSIG(waited.status)));
    } else {
      result.text = ReadAll(pipe_ends[0]);
      result.ok = WEXITSTATUS(waited.status) == 0;
      if (!result.ok && result.text.empty()) {
        result.text = fmt::format("it ended with exit code {}", WEXITSTATUS(waited.status));
      }
    }
  }
  close(pipe_ends[0]);
  return result;
}

}  // namespace trainprof
