// Starts the profiled program as execvp would, with a changed environment and nothing else changed.
#include "profiler/session/program.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstdint>

#include "trace/base/exit_codes.h"

namespace trainprof {
namespace {

constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

std::vector<char*> PointersTo(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

StartedProgram Failure(const std::string& program, int exec_errno) {
  if (exec_errno != ENOENT) {
    const char* hint =
        exec_errno == EACCES ? " (is it executable? chmod +x, or name its interpreter)" : "";
    return {-1, false, kCannotExecute,
            fmt::format("cannot execute '{}': {}{}", program, strerror(exec_errno), hint)};
  }
  if (program.find('/') != std::string::npos && access(program.c_str(), F_OK) == 0) {
    return {-1, false, kNotFound,
            fmt::format("cannot start '{}': the interpreter in its first line does not exist",
                        program)};
  }
  return {-1, false, kNotFound,
          fmt::format("'{}' was not found{}", program,
                      program.find('/') == std::string::npos ? " in PATH" : "")};
}

// The sampler of stacks is our child, not the program's ancestor: where Yama lets only ancestors read
// a process (ptrace_scope 1), the program says that what we have started may. Other kernels do not
// know the question. Its children have to say it for themselves.
void LetSamplerRead() { prctl(PR_SET_PTRACER, getppid(), 0, 0, 0); }

// Only async-signal-safe calls; returns the errno of a failure.
int Execute(const std::vector<char*>& arguments, const std::vector<char*>& environment,
            const Surroundings& surroundings) {
  surroundings.inherited.Restore();
  surroundings.inbox.RestoreInherited();
  execvpe(arguments[0], arguments.data(), environment.data());
  return errno;
}

// What the program's process is given; it shares our memory until it executes the program.
struct Start {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const Surroundings& surroundings;
  int exec_errno = 0;
};

int RunStart(void* argument) {
  auto* start = static_cast<Start*>(argument);
  LetSamplerRead();
  start->exec_errno = Execute(start->arguments, start->environment, start->surroundings);
  for (;;) syscall(SYS_exit_group, kNotFound);  // no exit handler: they are ours
}

StartedProgram NoProcess(int fork_errno) {
  const char* limit = fork_errno == EAGAIN ? " (a limit of processes, see ulimit -u)" : "";
  StartedProgram none{-1, true, kExitRunFailed, ""};
  none.error = fmt::format("cannot start a process: {}{}", strerror(fork_errno), limit);
  return none;
}

}  // namespace

StartedProgram StartProgram(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment,
                            const Surroundings& surroundings) {
  // We stand still until the program runs or has failed to, and read why from memory that we share
  // till then. This tells our 126 and 127 from the program's own, and works without a descriptor.
  // No handler of ours can run in the child: there is none. (vfork, but with a stack of its own, as
  // sanitizers need it.)
  constexpr size_t kStackBytes = 256 * 1024;  // and what execvpe makes of a script's arguments
  constexpr size_t kStackAlignment = 16;
  std::vector<char> stack(kStackBytes + arguments.size() * sizeof(char*));
  auto top = reinterpret_cast<uintptr_t>(stack.data() + stack.size());
  top -= top % kStackAlignment;
  Start start{PointersTo(arguments), PointersTo(environment), surroundings};
  const pid_t pid =
      clone(RunStart, reinterpret_cast<void*>(top), CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  if (pid < 0) return NoProcess(errno);
  if (start.exec_errno == 0) return {pid, false, 0, {}};
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return Failure(arguments[0], start.exec_errno);
}

StartedProgram BecomeProgram(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment,
                             const Surroundings& surroundings) {
  return Failure(arguments[0],
                 Execute(PointersTo(arguments), PointersTo(environment), surroundings));
}

}  // namespace trainprof
