// Starts the profiled program as execvp would, with a changed environment and nothing else changed.
#include "profiler/session/program.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace trainprof {
namespace {

constexpr int kForkFailed = 125;
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
    return {-1, kCannotExecute,
            fmt::format("cannot execute '{}': {}{}", program, strerror(exec_errno), hint)};
  }
  if (program.find('/') != std::string::npos && access(program.c_str(), F_OK) == 0) {
    return {-1, kNotFound,
            fmt::format("cannot start '{}': the interpreter in its first line does not exist",
                        program)};
  }
  return {-1, kNotFound,
          fmt::format("'{}' was not found{}", program,
                      program.find('/') == std::string::npos ? " in PATH" : "")};
}

// In the child. Only async-signal-safe calls; does not return.
[[noreturn]] void Execute(const std::vector<char*>& arguments,
                          const std::vector<char*>& environment, const SignalInbox& inbox,
                          int error_pipe) {
  inbox.RestoreInherited();
  environ = const_cast<char**>(environment.data());
  execvp(arguments[0], arguments.data());
  const int error = errno;
  ssize_t written = 0;
  do {
    written = write(error_pipe, &error, sizeof error);
  } while (written < 0 && errno == EINTR);
  _exit(kNotFound);
}

}  // namespace

StartedProgram StartProgram(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment, const SignalInbox& inbox) {
  const std::vector<char*> argument_pointers = PointersTo(arguments);
  const std::vector<char*> environment_pointers = PointersTo(environment);
  // Closed by a successful exec: end of file says that the program runs, four bytes say why not.
  // This tells our 126 and 127 from the program's own.
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    return {-1, kForkFailed, fmt::format("cannot create a pipe: {}", strerror(errno))};
  }
  const pid_t pid = fork();
  if (pid == 0) Execute(argument_pointers, environment_pointers, inbox, pipe_ends[1]);
  const int fork_errno = errno;
  close(pipe_ends[1]);
  int exec_errno = 0;
  ssize_t got = 0;
  if (pid > 0) {
    do {
      got = read(pipe_ends[0], &exec_errno, sizeof exec_errno);
    } while (got < 0 && errno == EINTR);
  }
  close(pipe_ends[0]);
  if (pid < 0) return {-1, kForkFailed, fmt::format("cannot fork: {}", strerror(fork_errno))};
  if (got != static_cast<ssize_t>(sizeof exec_errno)) return {pid, 0, {}};
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return Failure(arguments[0], exec_errno);
}

}  // namespace trainprof
