#include "collectors/cupti/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/core/old_glibc.h"
#include "collectors/core/system.h"
#include "collectors/cupti/library_answer.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::MonotonicNs;

constexpr size_t kMostMapsBytes = 8 * 1024 * 1024;
constexpr size_t kMostPath = 1024;

void FindOurselves(CuptiLibrary* library) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&LoadCupti), &info) != 0 && info.dli_fname != nullptr) {
    snprintf(library->injection, sizeof library->injection, "%s", info.dli_fname);
  }
  snprintf(library->driver, sizeof library->driver, "libcuda.so.1");
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (driver != nullptr && dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != 0) {
    snprintf(library->driver, sizeof library->driver, "%s", map->l_name);
  }
}

void NoteWhyNot(CuptiLibrary* library, const char* path, const LibraryAnswer& answer) {
  if (library->why_not[0] != 0) return;
  char trouble[256] = "";
  if (DriverMayBeTheCause(answer)) DriverTrouble(*library, trouble, sizeof trouble);
  DescribeAnswer(path, answer, trouble, library->why_not, sizeof library->why_not);
}

// Loads what has answered, by the path at which it did.
bool Load(CuptiLibrary* library, const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return false;
  const char* missing = FindFunctions(handle, &library->api);
  if (missing == nullptr && library->api.get_version(&library->api.version) == CUPTI_SUCCESS) {
    snprintf(library->path, sizeof library->path, "%s", path);
    library->found = true;
    return true;
  }
  if (library->why_not[0] == 0) {
    snprintf(library->why_not, sizeof library->why_not,
             "libcupti at %s answers in a process of its own and not in this one", path);
  }
  dlclose(handle);
  return false;
}

// Whether this file has been tried; the search comes by some files in several ways.
bool IsKnown(CuptiLibrary* library, const char* path) {
  struct stat file {};
  if (strchr(path, '/') == nullptr) return false;
  // As a system call: glibc's function has a name of its own since 2.33.
  if (syscall(SYS_newfstatat, AT_FDCWD, path, &file, 0) != 0) return false;
  for (int i = 0; i < library->tried_count; ++i) {
    const TriedFile& tried = library->tried[i];
    if (tried.device == file.st_dev && tried.number == file.st_ino) return true;
  }
  if (library->tried_count < kMostTriedFiles) {
    library->tried[library->tried_count++] = {file.st_dev, file.st_ino};
  }
  return false;
}

// Tries one candidate. True ends the search.
bool Try(CuptiLibrary* library, const char* name) {
  if (IsKnown(library, name)) return false;
  const int64_t left = library->search_ends_ns - MonotonicNs();
  if (left <= 0) return true;
  const int64_t begin = MonotonicNs();
  const LibraryAnswer answer = AskLibrary(library->injection, library->driver, name,
                                          left < kAnswerLimitNs ? left : kAnswerLimitNs);
  library->answers_ns += MonotonicNs() - begin;
  const LibraryReport& report = answer.report;
  if (report.driver_version != 0) library->driver_version = report.driver_version;
  const char* path = report.path[0] == 0 ? name : report.path;
  library->cuda_version = report.cupti_version;
  if (report.verdict == LibraryVerdict::kUsable) return Load(library, path);
  // What is not there is no candidate; of a name the loader knows where to look.
  const bool absent = report.verdict == LibraryVerdict::kNotLoaded &&
                      (strchr(name, '/') == nullptr || access(name, F_OK) != 0);
  if (!absent) NoteWhyNot(library, path, answer);
  return false;
}

// Tries one that the process has loaded.
bool TryIfLoaded(CuptiLibrary* library, const char* name) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  char path[kMostPath];
  link_map* map = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != 0;
  snprintf(path, sizeof path, "%s", known ? map->l_name : name);
  dlclose(handle);
  return Try(library, path);
}

bool Join(char (&out)[kMostPath], const char* folder, const char* name) {
  const int length = snprintf(out, sizeof out, "%s/%s", folder, name);
  return length > 0 && static_cast<size_t>(length) < sizeof out;
}

bool TryIn(CuptiLibrary* library, const char* folder) {
  char path[kMostPath];
  for (const char* name : kCuptiNames) {
    if (Join(path, folder, name) && access(path, R_OK) == 0 && Try(library, path)) return true;
  }
  return false;
}

bool TryPackages(CuptiLibrary* library, const char* site_packages) {
  char folder[kMostPath];
  for (const char* below : kCuptiPackageFolders) {
    if (Join(folder, site_packages, below) && TryIn(library, folder)) return true;
  }
  return false;
}

// One pass over the mapped files of the process: a libcupti among them under any name is taken;
// else the folders of Python packages are looked into.
bool TryMappedFiles(CuptiLibrary* library, char* maps, bool loaded_ones) {
  char last[kMostPath] = "";
  for (char* line = maps; *line != 0;) {
    char* end = strchr(line, '\n');
    if (end == nullptr) break;
    *end = 0;
    char* path = strchr(line, '/');
    char* next = end + 1;
    char* base = path == nullptr ? nullptr : strrchr(path, '/') + 1;
    bool done = false;
    if (base != nullptr && loaded_ones) {
      done = strncmp(base, "libcupti", 8) == 0 && TryIfLoaded(library, path);
    } else if (base != nullptr) {
      char* packages = strstr(path, "-packages/");  // site-packages, dist-packages
      if (packages != nullptr) {
        packages[sizeof "-packages" - 1] = 0;
        if (strcmp(path, last) != 0) done = TryPackages(library, path);
        snprintf(last, sizeof last, "%s", path);
        packages[sizeof "-packages" - 1] = '/';
      }
    }
    *end = '\n';
    if (done) return true;
    line = next;
  }
  return false;
}

bool TryLoaded(CuptiLibrary* library, char* maps) {
  for (const char* name : kCuptiNames) {
    if (TryIfLoaded(library, name)) return true;
  }
  return TryMappedFiles(library, maps, true);
}

// PREFIX/lib/python3.N/site-packages for the versions that CUDA packages are made for.
bool TryPrefix(CuptiLibrary* library, const char* prefix) {
  char folder[kMostPath];
  for (int minor = 8; minor <= 16; ++minor) {
    snprintf(folder, sizeof folder, "%s/lib/python3.%d/site-packages", prefix, minor);
    if (access(folder, X_OK) == 0 && TryPackages(library, folder)) return true;
  }
  return false;
}

bool TryPython(CuptiLibrary* library, char* maps) {
  if (TryMappedFiles(library, maps, false)) return true;
  const char* environment = secure_getenv("VIRTUAL_ENV");
  if (environment != nullptr && TryPrefix(library, environment)) return true;
  char program[kMostPath];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return false;
  program[length] = 0;
  char* bin = strstr(program, "/bin/");  // PREFIX/bin/python3
  if (bin == nullptr) return false;
  *bin = 0;
  return TryPrefix(library, program);
}

bool TryToolkit(CuptiLibrary* library, const char* home) {
  char folder[kMostPath];
  for (const char* below : kCuptiToolkitFolders) {
    if (Join(folder, home, below) && TryIn(library, folder)) return true;
  }
  return false;
}

bool TryToolkits(CuptiLibrary* library) {
  for (const char* name : kCuptiNames) {  // LD_LIBRARY_PATH, the system's
    if (Try(library, name)) return true;
  }
  for (const char* variable : kCudaHomeVariables) {
    const char* home = secure_getenv(variable);
    if (home != nullptr && *home != 0 && TryToolkit(library, home)) return true;
  }
  for (const char* home : kCudaToolkits) {
    if (TryToolkit(library, home)) return true;
  }
  return false;
}

}  // namespace

bool DriverTrouble(const CuptiLibrary& library, char* what, size_t size) {
  return !AskDriverToStart(library.injection, library.driver, kAnswerLimitNs, what, size);
}

bool IsMapped(const char* part) {
  auto* maps = static_cast<char*>(AllocatePages(kMostMapsBytes));
  if (maps == nullptr) return false;
  ReadSmallFile("/proc/self/maps", maps, kMostMapsBytes);
  const bool found = strstr(maps, part) != nullptr;
  ReleasePages(maps, kMostMapsBytes);
  return found;
}

void LoadCupti(CuptiLibrary* library) {
  FindOurselves(library);
  library->search_ends_ns = MonotonicNs() + kSearchLimitNs;
  const char* named = secure_getenv("TRAINPROF_CUPTI");
  if (named != nullptr && *named != 0) {
    if (!Try(library, named) && library->why_not[0] == 0) {
      snprintf(library->why_not, sizeof library->why_not, "TRAINPROF_CUPTI=%s does not load",
               named);
    }
    return;
  }
  auto* maps = static_cast<char*>(AllocatePages(kMostMapsBytes));
  if (maps == nullptr) return;
  ReadSmallFile("/proc/self/maps", maps, kMostMapsBytes);
  if (!TryLoaded(library, maps) && !TryPython(library, maps)) TryToolkits(library);
  ReleasePages(maps, kMostMapsBytes);
  if (!library->found && library->why_not[0] == 0) {
    snprintf(library->why_not, sizeof library->why_not,
             "libcupti is not installed: it comes with torch for CUDA (nvidia-cuda-cupti) and with "
             "the CUDA toolkit (CUDA_HOME), or name its path in TRAINPROF_CUPTI");
  }
}

}  // namespace trainprof::collectors
