// Making folders and files of a recording, with the modes of access.h.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace trainprof::recording {

// mkdir with exactly this mode (a set-group-ID bit that the folder around it hands down stays).
// False with errno set, also where `path` exists.
bool MakeFolder(const std::filesystem::path& path, mode_t mode);

// The same with the mode that `path`'s parent asks for.
bool MakeFolderInRun(const std::filesystem::path& path);

// open() of a file that is written; the mode is what its folder asks for, and a symbolic link is
// never followed. -1 with errno set.
int OpenInRun(const std::filesystem::path& path, int flags);

}  // namespace trainprof::recording
