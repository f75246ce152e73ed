// The `trainprof` that pip puts on PATH: becomes the program in the package trainprof of the same installation. It looks
// for it from its own place, so that links to it work (pipx, uv) and no Python has to start. No Python in between also
// means that signals and environment reach the program as they are.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int kInternal = 70;  // kExitInternal of trace/base/exit_codes.h

// What snprintf says of a path that it has written whole.
static int IsWhole(int length) { return length > 0 && length < PATH_MAX; }

// Becomes the program of the package in `packages`, a folder that Python imports from; returns where there is none, or,
// with `same_version`, where it is of another version than this launcher.
static void Become(const char* packages, int same_version, char** argv) {
  char path[PATH_MAX];
  if (same_version) {
    const int length =
        snprintf(path, sizeof path, "%s/trainprof-%s.dist-info", packages, TRAINPROF_VERSION);
    if (!IsWhole(length) || access(path, F_OK) != 0) return;
  }
  const int length = snprintf(path, sizeof path, "%s/trainprof/bin/trainprof", packages);
  if (!IsWhole(length) || access(path, X_OK) != 0) return;
  execv(path, argv);
}

// PREFIX/LIB/python3.11/site-packages, or Debian's name for it, of each Python.
static void BecomeFromLibrary(const char* prefix, const char* library, int same_version,
                              char** argv) {
  char folder[PATH_MAX];
  if (!IsWhole(snprintf(folder, sizeof folder, "%s/%s", prefix, library))) return;
  DIR* pythons = opendir(folder);
  if (pythons == NULL) return;
  for (const struct dirent* python; (python = readdir(pythons)) != NULL;) {
    if (strncmp(python->d_name, "py", 2) != 0) continue;
    const char* const names[] = {"site-packages", "dist-packages"};
    for (size_t i = 0; i < 2; ++i) {
      char packages[PATH_MAX];
      const int length =
          snprintf(packages, sizeof packages, "%s/%s/%s", folder, python->d_name, names[i]);
      if (IsWhole(length)) Become(packages, same_version, argv);
    }
  }
  closedir(pythons);
}

int main(int argc, char** argv) {
  (void)argc;
  char prefix[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", prefix, sizeof prefix - 1);
  if (length <= 0) {
    fprintf(stderr, "trainprof: /proc/self/exe cannot be read: %s\n", strerror(errno));
    return kInternal;
  }
  prefix[length] = 0;
  for (int up = 0; up < 2; ++up) {  // .../bin/trainprof
    char* const slash = strrchr(prefix, '/');
    if (slash != NULL) *slash = 0;
  }
  // Several Pythons may share one prefix (~/.local): the one that brought this launcher goes first.
  for (int same_version = 1; same_version >= 0; --same_version) {
    BecomeFromLibrary(prefix, "lib", same_version, argv);
    BecomeFromLibrary(prefix, "lib64", same_version, argv);
    Become(prefix, same_version, argv);  // pip install --target
  }
  fprintf(stderr,
          "trainprof: its package is in no Python of %s: install it again (pip install "
          "--force-reinstall trainprof), or run it from where it is: python -m trainprof\n",
          prefix);
  return kInternal;
}
