// Tells a signal that was sent to us alone from one that the program received as well.
#include "profiler/process/group_witness.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "profiler/process/signals.h"

namespace trainprof {
namespace {

[[noreturn]] void Stand(pid_t supervisor) {
  SetSignalMask(kAllSignals);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(0);  // it died before the line above
  close_range(0, ~0U, 0);
  for (;;) pause();
}

// ShdPnd of /proc/PID/status: the signals that wait for a process, bit N - 1 for signal N.
unsigned long long PendingOf(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  const std::string name = "ShdPnd:";
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name, 0) == 0) return std::strtoull(line.c_str() + name.size(), nullptr, 16);
  }
  return 0;
}

}  // namespace

GroupWitness::GroupWitness() { Start(); }

GroupWitness::~GroupWitness() { Stop(); }

void GroupWitness::Start() {
  const pid_t supervisor = getpid();
  pid_ = fork();
  if (pid_ == 0) Stand(supervisor);
}

void GroupWitness::Stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool GroupWitness::AlsoReceived(int signal) {
  if (pid_ <= 0) return false;
  std::this_thread::sleep_for(kDeliveryTime);
  if ((PendingOf(pid_) >> (signal - 1) & 1) == 0) return false;
  // Nothing but a handler or a new process takes a pending signal away.
  Stop();
  Start();
  // A sender that signals us first and the group next (timeout) is one request: drop our second,
  // and of the real-time signals, which queue up, all that have come meanwhile.
  while (TakeSignal(SignalBits{1} << (signal - 1), {})) {
  }
  return true;
}

}  // namespace trainprof
