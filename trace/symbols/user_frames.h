// Whose a frame of a stack is, native or Python.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainprof {

// A frame as texts; what is missing is empty. See CallFrame (trace/tables/stacks.h).
struct FrameText {
  std::string_view function;
  std::string_view file;
  int64_t line = 0;
  std::string_view module;
  uint64_t offset = 0;
};

// Frames inside torch, CUDA, Python itself, the system or installed packages are nobody's line to
// change; nor is the profiler's own step.
bool IsUserFrame(const FrameText& frame);

}  // namespace trainprof
