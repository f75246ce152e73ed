// What the test program does in the modes that call the library as Python's hooks do.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "tests/collectors/nvtx_program.h"

namespace nvtx_program {
namespace {

constexpr int64_t kMs = 1'000'000;

template <class Function>
Function* Find(const char* name) {
  static void* const library = dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

struct Hooks {
  int (*start)() = Find<int()>("TrainprofStart");
  const void* (*text)(const char*) = Find<const void*(const char*)>("TrainprofText");
  void (*range)(const void*, const void*, int64_t,
                int64_t) = Find<void(const void*, const void*, int64_t, int64_t)>("TrainprofRange");
  void (*user_range)(const char*, int64_t,
                     int64_t) = Find<void(const char*, int64_t, int64_t)>("TrainprofUserRange");
  void (*mark)(const char*, uint64_t) = Find<void(const char*, uint64_t)>("TrainprofMark");
  void (*fact)(const char*, const char*) = Find<void(const char*, const char*)>("TrainprofFact");
  void (*step_begins)() = Find<void()>("TrainprofStepBegins");
};

int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 * kMs + now.tv_nsec;
}

}  // namespace

int HookRanges(const Arguments& arguments) {
  const Hooks hooks;
  const int expected = arguments.empty() ? 1 : 0;
  if (hooks.start() != expected) return 1;
  const int64_t now = Now();
  const void* stack =
      hooks.text("57 Trainer.fit /home/ann/my code/train.py\nno frame\n9 <module> x");
  hooks.range(hooks.text("backward"), stack, now - 2 * kMs, now - kMs);
  hooks.range(hooks.text("Optimizer.step#SGD.step"), nullptr, now - 3 * kMs, now);
  hooks.range(nullptr, nullptr, now, now);
  hooks.user_range("users", now, now + 1);
  hooks.mark("samples", 32);
  hooks.fact("torch.version", "2.13.0");
  return 0;
}

int HookedSteps(const Arguments& arguments) {
  const Hooks hooks;
  if (hooks.start() != 1) return 1;
  const int64_t start = Now();
  const void* work = hooks.text("work");
  for (int step = 0; step < std::atoi(arguments[0].c_str()); ++step) {
    hooks.step_begins();
    const int64_t begin = Now();
    usleep(1000);
    hooks.range(work, nullptr, begin, Now());
    if (arguments.size() > 1) hooks.user_range("since the start", start, Now());
  }
  return 0;
}

int HooksFork(const Arguments&) {
  const Hooks hooks;
  if (hooks.start() != 1) return 1;
  const void* child_name = hooks.text("child");
  hooks.range(hooks.text("parent"), nullptr, Now(), Now());
  const pid_t child = fork();
  if (child == 0) {
    hooks.range(child_name, nullptr, Now(), Now());
    _exit(0);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

}  // namespace nvtx_program
