// Finds the Python interpreter of a process: which version it is and where its state lies, by the
// symbols of its executable or of a libpython that it has mapped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "collectors/python/layout.h"
#include "collectors/stacks/remote_memory.h"
#include "trace/base/result.h"
#include "trace/symbols/elf_file.h"

namespace trainprof {

// Addresses in the process.
struct PythonPlace {
  PythonLayout layout;
  uint64_t runtime = 0;
  uint64_t runtime_bytes = 0;  // 0: not known
  // Types, by which objects are known for what they are.
  uint64_t code_type = 0;
  uint64_t text_type = 0;
  uint64_t bytes_type = 0;
  uint64_t frame_type = 0;
};

class PythonFinder {
 public:
  // Reads below root/proc.
  explicit PythonFinder(std::filesystem::path root, const GivenMemory* given = nullptr)
      : proc_(std::move(root) / "proc"), given_(given) {}

  // nullopt: it is no Python (yet). The error: it is one whose stacks cannot be read, and why.
  // Costs about as much as the kernel takes for /proc/PID/maps.
  Result<std::optional<PythonPlace>> Find(pid_t pid);

 private:
  struct Mapping {
    uint64_t begin = 0;
    uint64_t file_offset = 0;
    std::string path;
  };
  struct Symbols {
    bool is_python = false;
    std::map<std::string, ElfFile::Symbol> known;
    std::map<uint64_t, uint64_t> segments;  // file offset -> address in the file
  };
  using FileKey = std::tuple<uint64_t, uint64_t, int64_t, int64_t>;  // device, inode, size, time

  std::vector<Mapping> Candidates(pid_t pid);
  const Symbols& SymbolsOf(const std::string& path);
  Result<std::optional<PythonPlace>> PlaceIn(pid_t pid, const Mapping& mapping);

  std::filesystem::path proc_;
  const GivenMemory* given_;
  std::string buffer_;
  std::map<FileKey, Symbols> symbols_;
};

}  // namespace trainprof
