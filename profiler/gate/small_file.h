// A short text of the user's: a policy, a line of source.
#pragma once

#include <filesystem>
#include <string>

#include "trace/base/result.h"

namespace trainprof {

// What a regular file holds; an error where it is none, cannot be read, or is longer than `most` bytes.
Result<std::string> ReadSmallFile(const std::filesystem::path& path, size_t most);

// The same file in another checkout: the longest end of its path that is a file below the current folder; "" where
// none is.
std::filesystem::path FileBelowHere(const std::filesystem::path& path);

}  // namespace trainprof
