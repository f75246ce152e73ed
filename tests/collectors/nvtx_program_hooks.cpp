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

int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 * kMs + now.tv_nsec;
}

struct Hooks {
  int (*start)() = Find<int()>("TrainprofStart");
  const void* (*place)(const char*,
                       const char*) = Find<const void*(const char*, const char*)>("TrainprofPlace");
  void (*past_range)(const void*, int64_t,
                     int64_t) = Find<void(const void*, int64_t, int64_t)>("TrainprofPastRange");
  int64_t (*user_range)(const char*,
                        int64_t) = Find<int64_t(const char*, int64_t)>("TrainprofUserRange");
  void (*mark)(const char*, uint64_t) = Find<void(const char*, uint64_t)>("TrainprofMark");
  void (*fact)(const char*, const char*) = Find<void(const char*, const char*)>("TrainprofFact");
  void (*step_begins)() = Find<void()>("TrainprofStepBegins");

  int64_t Range(const void* handle, int64_t begin) const {
    const int64_t now = Now();
    past_range(handle, begin, now);
    return now;
  }
};

}  // namespace

int HookRanges(const Arguments& arguments) {
  const Hooks hooks;
  const int expected = arguments.empty() ? 1 : 0;
  if (hooks.start() != expected) return 1;
  const int64_t start = Now();
  const char* stack = "57 Trainer.fit /home/ann/my code/train.py\nno frame\n9 <module> x";
  usleep(1000);
  const int64_t begin = Now();
  usleep(1000);
  hooks.Range(hooks.place("backward", stack), begin);
  const int64_t end = hooks.Range(hooks.place("Optimizer.step#SGD.step", ""), start);
  hooks.Range(nullptr, begin);
  hooks.user_range("users", end);
  hooks.mark("samples", 32);
  hooks.fact("torch.version", "2.13.0");
  return 0;
}

// The structures as ITT's part in a program has them.
int Tasks(const Arguments& arguments) {
  struct Id {
    unsigned long long d1 = 0, d2 = 0, d3 = 0;
  };
  struct IttDomain {
    volatile int flags;
    const char* name;
  };
  const Hooks hooks;
  const auto version = Find<const char*()>("__itt_api_version");
  const auto handle = Find<const void*(const char*)>("__itt_string_handle_create");
  const auto begin = Find<void(const IttDomain*, Id, Id, const void*)>("__itt_task_begin");
  const auto end = Find<void(const IttDomain*)>("__itt_task_end");
  const IttDomain torch{1, "PyTorch"};
  const IttDomain other{1, "oneDNN"};
  if (version() == nullptr) return 1;
  begin(&torch, {}, {}, handle("before the start"));
  end(&torch);
  if (hooks.start() != (arguments.empty() ? 1 : 0)) return 1;
  for (int i = 0; i < 3; ++i) {
    begin(&torch, {}, {}, handle("nn.Module: head (Linear)"));
    begin(&torch, {}, {}, handle("aten::addmm"));
    begin(&other, {}, {}, handle("inner_product"));
    end(&other);
    usleep(1000);
    end(&torch);
    begin(&torch, {}, {}, handle("Optimizer.step#SGD.step"));  // hooks tell of it
    end(&torch);
    end(&torch);
  }
  if (handle("aten::addmm") != handle("aten::addmm")) return 1;
  begin(&torch, {}, {}, nullptr);
  end(&torch);
  begin(nullptr, {}, {}, handle("x"));
  end(nullptr);
  return 0;
}

int HookedSteps(const Arguments& arguments) {
  const Hooks hooks;
  if (hooks.start() != 1) return 1;
  const int64_t start = Now();
  const void* work = hooks.place("work", "");
  for (int step = 0; step < std::atoi(arguments[0].c_str()); ++step) {
    hooks.step_begins();
    const int64_t begin = Now();
    usleep(1000);
    hooks.Range(work, begin);
    if (arguments.size() > 1) hooks.user_range("since the start", start);
  }
  return 0;
}

int HooksFork(const Arguments&) {
  const Hooks hooks;
  if (hooks.start() != 1) return 1;
  const void* child_name = hooks.place("child", "");
  hooks.Range(hooks.place("parent", ""), Now());
  const pid_t child = fork();
  if (child == 0) {
    hooks.Range(child_name, Now());
    _exit(0);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

}  // namespace nvtx_program
