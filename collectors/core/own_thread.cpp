#include "collectors/core/own_thread.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "collectors/core/old_glibc.h"
#include "trace/base/held_signals.h"

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
  const HeldSignals held(kSignalsToHold);  // a new thread inherits the mask of who makes it
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const bool made = pthread_create(&thread, &attributes, Run, start) == 0;
  pthread_attr_destroy(&attributes);
  return made;
}

}  // namespace trainprof::collectors
