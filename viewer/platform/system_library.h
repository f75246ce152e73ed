// The graphics libraries of the machine, loaded when they are needed: the program starts where there are none, and
// `--screenshot` needs no GLFW. Their functions are called by their own names (system_functions.inc).
#pragma once

#include <cstdint>

#include "trace/base/result.h"

namespace trainprof {

enum class SystemLibrary : uint8_t { kEgl, kOpenGl, kGlfw };

// Before any function of it is called; loaded once. The error names the file, or the function that a
// file lacks.
Result<void> LoadSystemLibrary(SystemLibrary library);

}  // namespace trainprof
