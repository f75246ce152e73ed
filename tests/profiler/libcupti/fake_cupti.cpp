// A libcupti that behaves as badly as FAKE_CUPTI says. Each call is noted in the file
// FAKE_CUPTI_LOG, with the name of the process that made it.
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kUnknown = 999;
constexpr int kInvalidKind = 21;

bool Is(const char* mode) {
  const char* asked = std::getenv("FAKE_CUPTI");
  return asked != nullptr && std::strcmp(asked, mode) == 0;
}

void Note(const char* function) {
  const char* path = std::getenv("FAKE_CUPTI_LOG");
  if (path == nullptr) return;
  char process[17] = "";
  prctl(PR_GET_NAME, process);
  if (FILE* log = fopen(path, "a")) {
    fprintf(log, "%s %s\n", process, function);
    fclose(log);
  }
}

// Until the stack ends.
int Recurse(int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return depth < 0 ? depth : Recurse(depth + 1) + room[0];
}

int Answer(const char* function) {
  Note(function);
  return kUnknown;
}

[[gnu::constructor]] void Load() { Note("dlopen"); }

}  // namespace

#define FAKE(name) \
  extern "C" int name() { return Answer(#name); }

extern "C" int cuptiGetVersion(uint32_t* version) {
  Note("cuptiGetVersion");
  if (Is("crash") || (Is("crash13") && FAKE_MAJOR == 13)) std::raise(SIGSEGV);
  if (Is("recursion")) return Recurse(1);
  if (Is("hang")) {
    for (;;) pause();
  }
  if (Is("exit")) _exit(0);
  if (Is("999")) return kUnknown;
  printf("a library's word\n");
  fflush(stdout);
  *version = 130300;
  return 0;
}

// Records of 200 bytes that cannot be walked: their size is told, or nothing is.
extern "C" int cuptiActivityGetStructSize(int kind, uint32_t, size_t* size) {
  Note("cuptiActivityGetStructSize");
  if (Is("no_sizes") || kind > 50) return kInvalidKind;
  *size = 200;
  return 0;
}

FAKE(cuptiActivityGetNextRecord)
FAKE(cuptiGetTimestamp)
FAKE(cuptiGetResultString)
FAKE(cuptiSubscribe)
FAKE(cuptiUnsubscribe)
FAKE(cuptiEnableCallback)
FAKE(cuptiGetCallbackName)
FAKE(cuptiActivityRegisterCallbacks)
FAKE(cuptiActivityEnable)
FAKE(cuptiActivityDisable)
FAKE(cuptiActivityFlushAll)
FAKE(cuptiActivityGetNumDroppedRecords)
FAKE(cuptiActivitySetAttribute)
