// Which frames of a Python stack are those of the recorder's own hooks.
#pragma once

#include <string_view>

namespace trainprof {

// Hooks are called between a user's line and what it calls; they are neither. `file` is a frame's.
// They lie in a folder of this name wherever trainprof is installed (collectors/python).
constexpr bool IsHookFrame(std::string_view file) {
  return file.find("/trainprof-python/") != std::string_view::npos;
}

}  // namespace trainprof
