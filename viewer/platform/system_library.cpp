#include "viewer/platform/system_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "trace/io/print.h"

// Where each function is, once its library is loaded. What is called by a library's name jumps
// there, whatever its arguments are: no signature has to be repeated here.
extern "C" {
[[noreturn]] __attribute__((visibility("hidden"))) void TrainprofNotLoaded() {
  trainprof::Print(stderr, "trainprof view: a graphics library is used before it is loaded\n");
  std::abort();
}
#define TRAINPROF_SYSTEM_FUNCTION(library, function)                 \
  __attribute__((visibility("hidden"))) void* trainprof_##function = \
      reinterpret_cast<void*>(TrainprofNotLoaded);
#include "viewer/platform/system_functions.inc"
#undef TRAINPROF_SYSTEM_FUNCTION
}

#define TRAINPROF_SYSTEM_FUNCTION(library, function) \
  asm(".pushsection .text\n"                         \
      ".globl " #function                            \
      "\n"                                           \
      ".hidden " #function                           \
      "\n"                                           \
      ".type " #function ", @function\n" #function   \
      ":\n"                                          \
      "endbr64\n"                                    \
      "jmp *trainprof_" #function                    \
      "(%rip)\n"                                     \
      ".size " #function ", . - " #function          \
      "\n"                                           \
      ".popsection");
#include "viewer/platform/system_functions.inc"
#undef TRAINPROF_SYSTEM_FUNCTION

namespace trainprof {
namespace {

struct SystemFunction {
  SystemLibrary library;
  const char* name;
  void** place;
};

constexpr SystemFunction kFunctions[] = {
#define TRAINPROF_SYSTEM_FUNCTION(library, function) \
  {SystemLibrary::library, #function, &trainprof_##function},
#include "viewer/platform/system_functions.inc"
#undef TRAINPROF_SYSTEM_FUNCTION
};

// As SystemLibrary.
constexpr const char* kFiles[] = {"libEGL.so.1", "libGL.so.1", "libglfw.so.3"};

// They are never closed: drivers keep threads and handlers at exit.
Result<void> Load(SystemLibrary library) {
  const char* const file = kFiles[static_cast<size_t>(library)];
  void* const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error{dlerror()};
  for (const SystemFunction& function : kFunctions) {
    if (function.library != library) continue;
    void* const address = dlsym(handle, function.name);
    if (address == nullptr) return Error{fmt::format("{} lacks {}", file, function.name)};
    *function.place = address;
  }
  return {};
}

}  // namespace

Result<void> LoadSystemLibrary(SystemLibrary library) {
  static bool loaded[std::size(kFiles)] = {};
  bool& is_loaded = loaded[static_cast<size_t>(library)];
  if (is_loaded) return {};
  auto outcome = Load(library);
  is_loaded = outcome.ok();
  return outcome;
}

}  // namespace trainprof
