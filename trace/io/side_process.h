// Work beside the supervisor, in a process of its own: a call that hangs in the kernel would keep a
// thread, and with it the supervisor, from ending; the supervisor stays single-threaded, so that it may
// fork at any time; and a crash costs that work alone. The process shares nothing with the program: no
// descriptors, no signals.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

#include "trace/base/result.h"

namespace trainprof {

class SideProcess {
 public:
  // The exit code of a process whose work has thrown: without memory or threads.
  static constexpr int kNoRoom = 2;

  // Forks: call it while the process has one thread. `work` gets a descriptor whose other end closes when
  // it shall end, also by our death, and returns the exit code; of our descriptors it finds `kept` alone.
  // `name`: what ps shows, at most 15 characters.
  static Result<SideProcess> Start(const char* name, std::vector<int> kept,
                                   const std::function<int(int stop_fd)>& work);
  SideProcess(SideProcess&& other) noexcept;
  SideProcess& operator=(SideProcess&& other) noexcept;
  ~SideProcess();  // kills it

  struct End {
    bool in_time = false;
    int status = 0;  // as of waitpid(), where it ended in time
  };
  // Asks it to end; kills it after `limit`.
  End Stop(std::chrono::milliseconds limit);
  bool is_running() const { return pid_ > 0; }

 private:
  SideProcess(pid_t pid, int stop_pipe) : pid_(pid), stop_pipe_(stop_pipe) {}
  bool WaitForEnd(std::chrono::milliseconds limit, int& status) const;

  pid_t pid_;
  int stop_pipe_;
};

}  // namespace trainprof
