// What the functions on a process's stacks are called, looked up once for each: names, files and
// line tables of its code objects, by their address. One that is gone and whose place another one
// has taken is noticed by what it points at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectors/stacks/call_names.h"
#include "collectors/stacks/python_finder.h"
#include "collectors/stacks/remote_memory.h"

namespace trainprof {

// Gives a number to a frame: the same one for the same texts and line.
using NumberFrame =
    std::function<uint32_t(std::string_view function, std::string_view file, int64_t line)>;

class CodeCache {
 public:
  // `proc_folder`: /proc/PID of the process, for its sources.
  CodeCache(const PythonPlace& place, std::filesystem::path proc_folder)
      : place_(place), names_(std::move(proc_folder)) {}

  // `head`: the first layout.code_bytes() of the code object at `address`, just read;
  // `instruction`: bytes from the start of its code. nullopt: it is no code object, or not any more.
  std::optional<uint32_t> FrameOf(uint64_t address, std::span<const char> head, int64_t instruction,
                                  RemoteMemory& memory, const NumberFrame& number);
  // Of a frame that FrameOf() has just given: what it calls at the instruction, as a frame of
  // kBuiltInFile. nullopt: nothing that is known.
  std::optional<uint32_t> CallOf(uint64_t address, int64_t instruction, RemoteMemory& memory,
                                 const NumberFrame& number);

 private:
  struct Identity {  // what a code object points at
    uint64_t name = 0;
    uint64_t file = 0;
    uint64_t lines = 0;
    int32_t first_line = 0;
    bool operator==(const Identity&) const = default;
  };
  struct Code {
    Identity identity;
    std::string function;
    std::string file;
    std::vector<uint8_t> lines;
    std::unordered_map<int64_t, uint32_t> frames;  // by instruction
    std::unordered_map<int64_t, std::optional<uint32_t>> calls;
  };
  std::optional<Identity> IdentityOf(std::span<const char> head) const;
  std::optional<Code> Read(uint64_t address, const Identity& identity, RemoteMemory& memory) const;
  std::optional<std::string> ReadText(uint64_t address, RemoteMemory& memory) const;
  bool IsLoop(uint64_t address, int64_t instruction, RemoteMemory& memory) const;

  PythonPlace place_;
  CallNames names_;
  std::unordered_map<uint64_t, Code> codes_;
};

}  // namespace trainprof
