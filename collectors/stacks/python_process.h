// The Python threads of another process and what they are doing, read while it runs: it is neither
// stopped nor signalled, takes no lock and notices nothing.
//
// A stack is read in one piece and walked in the copy; what moved meanwhile makes it unusable, or
// (in a program that does nothing but call tiny functions) one that mixes two that came one after
// the other. Each function on it is checked to be one before its name is asked for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "collectors/stacks/code_cache.h"
#include "collectors/stacks/python_finder.h"
#include "collectors/stacks/remote_memory.h"

namespace trainprof {

struct PythonThread {
  uint64_t state = 0;  // address of its PyThreadState
  int64_t tid = 0;     // of the kernel
  uint64_t frame = 0;  // its innermost frame when it was listed; 0: none
};

enum class StackOutcome { kRead, kEmpty, kUnusable };

class PythonProcess {
 public:
  // Deeper stacks lose their outermost frames.
  static constexpr size_t kMostFrames = 256;
  static constexpr size_t kMostThreads = 1024;

  // `root`: /proc is read below it.
  PythonProcess(const std::filesystem::path& root, pid_t pid, const PythonPlace& place)
      : task_(root / "proc" / std::to_string(pid) / "task"),
        memory_(pid),
        place_(place),
        codes_(place) {}

  // The threads that have run Python, in all interpreters. False when the process cannot be read:
  // error() says why. Empty before the interpreter is up, and when it has been taken down.
  bool ListThreads(std::vector<PythonThread>& threads);

  // The thread's stack, innermost first, by the numbers that `number` gives.
  StackOutcome ReadStack(const PythonThread& thread, const NumberFrame& number,
                         std::vector<uint32_t>& frames);

  int error() const { return memory_.error(); }

 private:
  struct RawFrame {
    uint64_t code = 0;
    uint64_t instruction = 0;  // address; in 3.10 the number of the instruction
  };
  bool ReadThread(uint64_t state, PythonThread& thread, uint64_t& next);
  uint64_t TopFrame(uint64_t thread_state);
  int64_t TidOf(uint64_t pthread) const;
  // The bytes of the frame at `address`, from the copy or from a new one; nullptr: unreadable.
  const char* FrameBytes(uint64_t address);
  bool Walk(uint64_t top);
  bool Resolve(const NumberFrame& number, std::vector<uint32_t>& frames);

  std::filesystem::path task_;
  RemoteMemory memory_;
  PythonPlace place_;
  CodeCache codes_;
  std::vector<char> copy_;
  uint64_t copy_begin_ = 0;
  size_t copy_bytes_ = 0;
  int copies_ = 0;
  std::vector<RawFrame> raw_;
  std::vector<uint64_t> addresses_;
  std::vector<char> heads_;
};

}  // namespace trainprof
