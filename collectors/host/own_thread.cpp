#include "collectors/host/own_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "collectors/host/old_glibc.h"

namespace trainprof::collectors {
namespace {

struct Start {
  const char* name;
  void (*body)();
};

// Starts are kept: a thread may begin to run late. Who starts them is one thread.
constexpr int kMostThreads = 4;
constinit Start g_starts[kMostThreads]{};
constinit int g_started = 0;

void* Run(void* argument) {
  const auto* start = static_cast<const Start*>(argument);
  prctl(PR_SET_NAME, start->name);
  start->body();
  return nullptr;
}

}  // namespace

bool StartOwnThread(const char* name, void (*body)()) {
  if (g_started == kMostThreads) return false;
  Start* start = &g_starts[g_started++];
  *start = {name, body};
  // A new thread inherits the mask of who makes it. Signals 32 and 33 are glibc's own: setuid() in
  // the program waits for all threads to take the second one.
  constexpr uint64_t kAll = ~(uint64_t{3} << 31);
  uint64_t before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kAll, &before, sizeof kAll);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const bool made = pthread_create(&thread, &attributes, Run, start) == 0;
  pthread_attr_destroy(&attributes);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  return made;
}

}  // namespace trainprof::collectors
