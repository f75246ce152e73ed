// What the test program nvtx_program does in each of its modes.
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include "tests/collectors/nvtx_program.h"
#include "tests/support/sanitized.h"

extern "C" void RangeOfSecondLibrary();

namespace nvtx_program {
namespace {

long Number(const Arguments& arguments, size_t i, long otherwise) {
  return i < arguments.size() ? std::atol(arguments[i].c_str()) : otherwise;
}

nvtxEventAttributes_t Event(const char* text) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text;
  return event;
}

void Range(const char* name) {
  nvtxRangePushA(name);
  nvtxRangePop();
}

int WaitFor(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

void Payloads(nvtxDomainHandle_t domain) {
  nvtxEventAttributes_t event = Event("int64");
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = -5;
  nvtxDomainMarkEx(domain, &event);
  event = Event("uint64");
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = UINT64_MAX;
  nvtxDomainMarkEx(domain, &event);
  event = Event("double");
  event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  event.payload.dValue = 0.5;
  nvtxDomainMarkEx(domain, &event);
  event = Event("int32");
  event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  event.payload.iValue = -7;
  nvtxDomainMarkEx(domain, &event);
  event = Event("uint32");
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
  event.payload.uiValue = UINT32_MAX;
  nvtxDomainMarkEx(domain, &event);
  event = Event("float");
  event.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  event.payload.fValue = 0.25f;
  nvtxDomainMarkEx(domain, &event);
}

}  // namespace

int Everything(const Arguments&) {
  nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), "trainer");
  // Push returns the level, pop the level that it ends.
  if (nvtxRangePushA("outer") != 0 || nvtxRangePushW(L"w\u00efde \u4e16\U0001F600") != 1) return 3;
  if (nvtxRangePop() != 1 || nvtxRangePop() != 0) return 4;
  nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  if (nvtxDomainCreateA("library") != domain) return 5;
  nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "registered");
  nvtxDomainNameCategoryA(domain, 7, "allreduce");
  nvtxEventAttributes_t event = Event("");
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = registered;
  event.category = 7;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xFF112233;
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = 42;
  if (nvtxDomainRangePushEx(domain, &event) != 0) return 6;
  nvtxRangePushA("in default");  // the two domains' stacks are apart
  if (nvtxDomainRangePop(domain) != 0 || nvtxRangePop() != 0) return 7;
  const nvtxRangeId_t id = nvtxRangeStartA("crossing");
  std::thread([id] { nvtxRangeEnd(id); }).join();
  const nvtxRangeId_t other = nvtxDomainRangeStartEx(domain, &event);
  nvtxDomainRangeEnd(domain, other);
  nvtxMarkA("mark");
  nvtxMarkW(L"wide mark");
  Payloads(domain);
  nvtxRangePushEx(nullptr);
  nvtxRangePop();
  nvtxRangePushA(nullptr);
  nvtxRangePop();
  nvtxDomainDestroy(domain);
  nvtxRangePushA("left open");
  return 0;
}

int Numbered(const Arguments& arguments) {
  const int fd = open(arguments.at(0).c_str(), O_RDWR);
  auto* shared = static_cast<HandedOver*>(
      mmap(nullptr, sizeof(HandedOver), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  const auto pause = std::chrono::milliseconds(Number(arguments, 1, 0));
  const auto run = [shared, pause](int thread) {
    HandedOver::PerThread& mine = shared->thread[thread];
    char name[32];
    std::snprintf(name, sizeof name, "%d:%ld", thread, 0L);
    for (long n = 0;; ++n) {
      nvtxRangePushA(name);
      mine.pushed = n + 1;
      std::snprintf(name, sizeof name, "%d:%ld", thread, n + 1);  // a kill often meets it open
      nvtxRangePop();
      mine.popped = n + 1;
      if (pause.count() > 0 && n % 1000 == 999) std::this_thread::sleep_for(pause);
    }
  };
  std::thread second(run, 1);
  std::thread third(run, 2);
  run(0);
  return 0;
}

int Bulk(const Arguments& arguments) {
  for (long i = Number(arguments, 0, 1000); i > 0; --i) {
    nvtxRangePushA("phase");
    nvtxRangePushA("part");
    nvtxRangePushA("detail");
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePop();
  }
  return 0;
}

int Paced(const Arguments& arguments) {
  for (long i = Number(arguments, 0, 100); i > 0; --i) {
    for (int range = 0; range < 5000; ++range) Range("paced");
    std::this_thread::sleep_for(std::chrono::milliseconds(Number(arguments, 1, 10)));
  }
  return 0;
}

int Threads(const Arguments& arguments) {
  const long count = Number(arguments, 0, 100);
  std::vector<std::thread> threads;
  std::atomic<long> ready{0};
  for (long i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < count) std::this_thread::yield();
      Range(("thread " + std::to_string(i)).c_str());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// Thread i has written some words more than thread i - 1 when its clock becomes due, all of them between two and
// four thousand: where its first chunk ends.
int ChunkEnds(const Arguments& arguments) {
  const long count = Number(arguments, 0, 100);
  std::vector<std::thread> threads;
  for (long i = 0; i < count; ++i) {
    threads.emplace_back([i] {
      constexpr long kLeastPairs = 985;  // a range takes two words
      const nvtxRangeId_t odd =
          i % 2 == 0 ? 0 : nvtxRangeStartA("filled");  // three, and three at its end
      for (long pair = kLeastPairs + i / 2; pair > 0; --pair) Range("filled");
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      Range("filled");
      if (i % 2 != 0) nvtxRangeEnd(odd);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

int ShortThreads(const Arguments& arguments) {
  for (long i = Number(arguments, 0, 1000); i > 0; --i) {
    std::thread([] { Range("short"); }).join();
  }
  return 0;
}

int Fork(const Arguments& arguments) {
  std::atomic<bool> stop{false};
  std::atomic<int> running{0};
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] {
      Range("busy");
      ++running;
      while (!stop) Range("busy");
    });
  }
  while (running < 2) std::this_thread::yield();
  nvtxRangePushA("around the forks");
  int failures = 0;
  for (long i = Number(arguments, 0, 1); i > 0; --i) {
    Range("parent");
    const pid_t child = fork();
    if (child == 0) {
      Range("child");
      std::thread([] { Range("child's thread"); }).join();
      nvtxRangePop();  // ends the parent's range in this copy of it
      _exit(0);
    }
    failures += WaitFor(child);
    Range("parent");
  }
  nvtxRangePop();
  stop = true;
  for (std::thread& thread : busy) thread.join();
  return failures;
}

int RawFork(const Arguments&) {
  Range("parent");
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    Range("child");
    syscall(SYS_exit_group, 0);
  }
  const int failed = WaitFor(child);
  Range("parent");
  return failed;
}

int Exec(const Arguments&) {
  Range("parent");
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", static_cast<char*>(nullptr));
    _exit(1);
  }
  const int failed = WaitFor(child);
  Range("parent");
  return failed;
}

int Spawned(const Arguments&) {
  Range("parent");
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "nvtx_program", "bulk", "1", static_cast<char*>(nullptr));
    _exit(1);
  }
  return WaitFor(child);
}

int WorkingSteps(const Arguments& arguments) {
  std::thread([] {  // that does not step
    for (int i = 0; i < 20; ++i) {
      Range("beside");
      usleep(1000);
    }
  })
      .join();
  const auto used_ns = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000'000L + time.tv_nsec;
  };
  const long before_ns = used_ns();
  for (long i = Number(arguments, 0, 10); i > 0; --i) {
    nvtxRangePushA("step");
    nvtxRangePushA("work");
    for (const long begin_ns = used_ns(); used_ns() < begin_ns + 3'000'000;) {
    }
    nvtxRangePop();
    nvtxRangePushA("sleep");
    usleep(3000);
    nvtxRangePop();
    nvtxRangePop();
  }
  std::printf("%ld\n", used_ns() - before_ns);
  return 0;
}

int Steps(const Arguments& arguments) {
  const auto wait_us = static_cast<useconds_t>(Number(arguments, 1, 0) * 1000);
  nvtxRangePushA("training");
  for (long i = Number(arguments, 0, 10); i > 0; --i) {
    nvtxRangePushA("step");
    Range("work");
    if (wait_us != 0) usleep(wait_us);
    nvtxRangePop();
    Range("between");
  }
  nvtxRangePop();
  return 0;
}

int Capture(const Arguments&) {
  Range("before");
  nvtxRangePushA("capture");
  Range("inside");
  nvtxRangePop();
  Range("after");
  const nvtxRangeId_t id = nvtxRangeStartA("capture");
  Range("inside");
  nvtxRangeEnd(id);
  Range("after");
  return 0;
}

int Signals(const Arguments&) {
  struct sigaction action {};
  action.sa_handler = [](int) { Range("handler"); };
  sigaction(SIGPROF, &action, nullptr);
  Range("main");  // NVTX's own first call loads the library, and hangs when a handler interrupts it
  const itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_PROF, &often, nullptr);
  const clock_t start = std::clock();
  while (std::clock() - start < trainprof::testing::Rounds(CLOCKS_PER_SEC)) {
    const clock_t begin = std::clock();
    for (int i = 0; i < 1000; ++i) Range("main");
    const clock_t took = std::clock() - begin;
    while (std::clock() - begin < 2 * took) {
    }  // half of the signals interrupt no call
  }
  const itimerval never{};
  setitimer(ITIMER_PROF, &never, nullptr);
  return 0;
}

int SmallStacks(const Arguments&) {
  Range("main");
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN)));
  const auto run = [](void*) -> void* {
    Range("small");
    return nullptr;
  };
  pthread_t thread{};
  if (pthread_create(&thread, &attributes, run, nullptr) != 0) return 3;
  pthread_join(thread, nullptr);

  std::string memory(static_cast<size_t>(sysconf(_SC_SIGSTKSZ)), '\0');
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = [](int) { Range("alternate"); };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  stack.ss_flags = SS_DISABLE;
  return sigaltstack(&stack, nullptr);
}

int CloseAll(const Arguments& arguments) {
  Range("first");
  for (int fd = 3; fd < 256; ++fd) close(fd);
  // A file of the program's own gets the numbers that were free.
  for (int i = 0; i < 8; ++i) {
    const int fd = open(arguments.at(0).c_str(), O_RDWR | O_CREAT | O_APPEND, 0644);
    if (write(fd, "mine", 4) != 4) return 3;
  }
  for (int i = 0; i < 100'000; ++i) Range("second");
  return 0;
}

namespace {
struct LateUser {
  ~LateUser() { Range("late"); }
};
thread_local LateUser t_late;
}  // namespace

int Late(const Arguments&) {
  std::atexit([] { Range("at exit"); });
  std::thread([] {
    (void)&t_late;
    Range("thread");
  }).join();
  return 0;
}

int Deep(const Arguments& arguments) {
  const long depth = Number(arguments, 0, 2000);
  for (long i = 0; i < depth; ++i) nvtxRangePushA("deep");
  for (long i = 0; i < depth; ++i) nvtxRangePop();
  nvtxRangePop();  // one too many
  Range("after");
  return 0;
}

int Long(const Arguments&) {
  const std::string text(100'000, 'x');
  Range(text.c_str());
  Range(text.c_str());
  const std::wstring wide(100'000, L'\u4e16');
  nvtxRangePushW(wide.c_str());
  nvtxRangePop();
  Range("after");
  return 0;
}

int Libraries(const Arguments&) {
  nvtxRangePushA("program");
  RangeOfSecondLibrary();
  nvtxRangePop();
  return 0;
}

int Names(const Arguments& arguments) {
  const long count = Number(arguments, 0, 1000);
  for (int round = 0; round < 2; ++round) {
    for (long i = 0; i < count; ++i) Range(("name " + std::to_string(i)).c_str());
  }
  return 0;
}

}  // namespace nvtx_program
