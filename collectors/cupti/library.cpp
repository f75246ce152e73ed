#include "collectors/cupti/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/host/old_glibc.h"
#include "collectors/host/system.h"

namespace trainprof::collectors {
namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                  "libcupti.so"};
constexpr const char* kPackageFolders[] = {"nvidia/cuda_cupti/lib", "nvidia/cu13/lib", "torch/lib"};
constexpr const char* kToolkitFolders[] = {"extras/CUPTI/lib64", "lib64", "lib"};
constexpr const char* kToolkits[] = {"/usr/local/cuda", "/usr/local/cuda-13", "/usr/local/cuda-12",
                                     "/opt/cuda"};
constexpr size_t kMostMapsBytes = 8 * 1024 * 1024;
constexpr size_t kMostPath = 1024;

void AskDriver(CuptiLibrary* library) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return;
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  if (get_version != nullptr) get_version(&library->driver_version);
}

// Tries one candidate; `flags` may say that it must be loaded already. True ends the search.
bool Try(CuptiLibrary* library, const char* name, int flags) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);
  if (handle == nullptr) return false;
  CuptiApi api{};
  const char* missing = FindFunctions(handle, &api);
  Dl_info info{};
  const char* path = name;
  if (dladdr(dlsym(handle, "cuptiGetVersion"), &info) != 0 && info.dli_fname != nullptr) {
    path = info.dli_fname;
  }
  const int version = CudaVersionOf(api.version);
  const bool newer =
      library->driver_version != 0 && version / 1000 > library->driver_version / 1000;
  if (missing == nullptr && !newer) {
    library->api = api;
    snprintf(library->path, sizeof library->path, "%s", path);
    library->found = true;
    return true;
  }
  if (library->why_not[0] == 0) {
    if (missing != nullptr) {
      snprintf(library->why_not, sizeof library->why_not, "libcupti at %s lacks %s", path, missing);
    } else {
      snprintf(
          library->why_not, sizeof library->why_not,
          "libcupti %d.%d at %s, driver %d.%d: install the CUPTI of the driver's CUDA version, "
          "or name its path in TRAINPROF_CUPTI",
          version / 1000, version % 1000 / 10, path, library->driver_version / 1000,
          library->driver_version % 1000 / 10);
    }
  }
  dlclose(handle);
  return false;
}

bool Join(char (&out)[kMostPath], const char* folder, const char* name) {
  const int length = snprintf(out, sizeof out, "%s/%s", folder, name);
  return length > 0 && static_cast<size_t>(length) < sizeof out;
}

bool TryIn(CuptiLibrary* library, const char* folder) {
  char path[kMostPath];
  for (const char* name : kNames) {
    if (Join(path, folder, name) && access(path, R_OK) == 0 && Try(library, path, 0)) return true;
  }
  return false;
}

bool TryPackages(CuptiLibrary* library, const char* site_packages) {
  char folder[kMostPath];
  for (const char* below : kPackageFolders) {
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
      done = strncmp(base, "libcupti", 8) == 0 && Try(library, path, RTLD_NOLOAD);
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
  for (const char* name : kNames) {
    if (Try(library, name, RTLD_NOLOAD)) return true;
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
  for (const char* below : kToolkitFolders) {
    if (Join(folder, home, below) && TryIn(library, folder)) return true;
  }
  return false;
}

bool TryToolkits(CuptiLibrary* library) {
  for (const char* name : kNames) {  // LD_LIBRARY_PATH, the system's
    if (Try(library, name, 0)) return true;
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* home = secure_getenv(variable);
    if (home != nullptr && *home != 0 && TryToolkit(library, home)) return true;
  }
  for (const char* home : kToolkits) {
    if (TryToolkit(library, home)) return true;
  }
  return false;
}

}  // namespace

void LoadCupti(CuptiLibrary* library) {
  AskDriver(library);
  const char* named = secure_getenv("TRAINPROF_CUPTI");
  if (named != nullptr && *named != 0) {
    if (!Try(library, named, 0) && library->why_not[0] == 0) {
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
