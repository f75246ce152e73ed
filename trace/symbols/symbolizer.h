// From code addresses to functions and lines, offline: reads the files that the addresses came
// from, on the machine where they are.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trainprof {

struct SourceFrame {
  std::string function;  // demangled; "" where no symbol covers the address
  std::string file;      // "" without line information
  int64_t line = 0;

  bool operator==(const SourceFrame&) const = default;
};

// The functions that one address is in: more than one where calls were inlined, innermost first.
using SourceFrames = std::vector<SourceFrame>;

// One mapped file. `frames` has its keys (addresses in the file's own symbol table) before
// Symbolize, its values after.
struct ModuleSymbols {
  std::string path;
  std::string build_id;  // lower-case hex, "" for a file without
  std::string state;     // "": all as it should be; else why frames are missing, or to be doubted
  std::map<uint64_t, SourceFrames> frames;

  bool operator==(const ModuleSymbols&) const = default;
};

// Fills in the empty ones of module.frames. A file of another build is not read: `state` says so.
// Files of the system, of CUDA and of torch get functions only, since their debug information is
// large and their lines are not the user's. Stops at `deadline`; what is left stays empty. Reads
// only regular files and takes no more memory than a file's symbol table.
void Symbolize(ModuleSymbols& module, std::chrono::steady_clock::time_point deadline);

// Whether this build reads line information (libdw), or functions only.
bool ReadsDebugInfo();

}  // namespace trainprof
