// Line information of one file, where this build can read it (libdw).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trace/symbols/symbolizer.h"

namespace trainprof {

class DebugInfo {
 public:
  // nullptr: there is none in the file, nor in a separate file that /usr/lib/debug has for its
  // build id, or this build cannot read it. `fd` is borrowed for the object's life.
  static std::unique_ptr<DebugInfo> Open(int fd, bool has_debug_sections,
                                         const std::string& build_id);
  virtual ~DebugInfo() = default;

  // Empty where nothing is known of the address. Stops searching at the deadline.
  virtual SourceFrames FramesAt(uint64_t address,
                                std::chrono::steady_clock::time_point deadline) = 0;
};

}  // namespace trainprof
