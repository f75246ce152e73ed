// Who may read a recording: its owner, or with `trainprof run --share` the owner's group as well.
// The mode of the run directory is the one place that says so. Whatever is made in it follows,
// under any umask: a folder takes the mode of the folder around it, a file the same without the
// search bits. Header-only and free of the C++ runtime: the in-process library includes it.
#pragma once

#include <sys/stat.h>

namespace trainprof::recording {

inline constexpr mode_t kPrivateFolderMode = 0700;
inline constexpr mode_t kSharedFolderMode = 0750;

constexpr mode_t FolderModeIn(mode_t folder_around) {
  const bool shared = (folder_around & 0050) == 0050;
  return shared ? kSharedFolderMode : kPrivateFolderMode;
}
constexpr mode_t FileModeIn(mode_t folder) { return FolderModeIn(folder) & 0640; }

}  // namespace trainprof::recording
