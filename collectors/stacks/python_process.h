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
  uint64_t pthread = 0;
  uint64_t stack_begin = 0;  // of the memory that its frames stand in; 0: not known
  uint64_t holder = 0;       // 3.11, 3.12: what points at its innermost frame
  uint64_t frame = 0;        // its innermost frame when it was listed; 0: none
  bool operator==(const PythonThread&) const = default;
};

enum class StackOutcome { kRead, kEmpty, kUnusable };

class PythonProcess {
 public:
  // Deeper stacks lose their outermost frames.
  static constexpr size_t kMostFrames = 256;
  static constexpr size_t kMostThreads = 1024;

  // `root`: /proc is read below it.
  PythonProcess(const std::filesystem::path& root, pid_t pid, const PythonPlace& place,
                const GivenMemory* given = nullptr)
      : folder_(root / "proc" / std::to_string(pid)),
        memory_(pid, given),
        place_(place),
        codes_(place, folder_) {}

  // The threads that have run Python, in all interpreters. False when the process cannot be read:
  // error() says why. Empty before the interpreter is up, and when it has been taken down.
  bool ListThreads(std::vector<PythonThread>& threads);

  // The thread's stack, innermost first, by the numbers that `number` gives. Where its innermost
  // function calls one without Python code, that comes first (kBuiltInFile).
  StackOutcome ReadStack(const PythonThread& listed, const NumberFrame& number,
                         std::vector<uint32_t>& frames);

  // Whether a thread that waits for the futex at the address waits for the GIL: of the locks that stand
  // in the runtime's own state, only it is ever held for long.
  bool IsGil(uint64_t futex) const {
    return futex >= place_.runtime && futex - place_.runtime < place_.runtime_bytes;
  }

  int error() const { return memory_.error(); }

 private:
  struct RawFrame {
    uint64_t code = 0;
    uint64_t instruction = 0;  // address; in 3.10 the number of the instruction
  };
  bool ListAsBefore(std::vector<PythonThread>& threads);
  bool ListAnew(std::vector<PythonThread>& threads);
  // Reads the holder's pointer.
  uint64_t FrameIn(uint64_t holder);
  // Of the bytes of a PyThreadState all but the frame and, in 3.10, the tid.
  PythonThread ThreadIn(uint64_t state, const char* bytes) const;
  // Copies what stands around the innermost frame, then reads which one is innermost now.
  uint64_t CopyTop(PythonThread& thread);
  // Reads which frame of the thread is innermost now.
  uint64_t TopOf(PythonThread& thread);
  int64_t TidOf(uint64_t pthread);
  // The bytes of the frame at `address`, from the copy or from a new one; nullptr: unreadable.
  const char* FrameBytes(uint64_t address);
  bool Walk(uint64_t top);
  // Where a copy that ends with the frame is to begin.
  uint64_t CopyFrom(uint64_t frame) const;
  // Takes [begin, the frame's end) as what copy_ is to hold; the piece that reads it.
  RemoteMemory::Piece Window(uint64_t begin, uint64_t frame);
  bool Resolve(const NumberFrame& number, std::vector<uint32_t>& frames);

  std::filesystem::path folder_;  // /proc/PID
  RemoteMemory memory_;
  PythonPlace place_;
  CodeCache codes_;
  // As the last listing left them, in the order of the interpreter's list; empty where that has to
  // be walked again.
  std::vector<PythonThread> known_;
  uint64_t known_interpreter_ = 0;
  std::vector<char> states_;
  std::vector<uint64_t> tops_;
  std::vector<RemoteMemory::Piece> pieces_;
  std::vector<char> copy_;
  uint64_t copy_begin_ = 0;
  uint64_t stack_begin_ = 0;  // of the thread that is being read
  size_t copy_bytes_ = 0;
  int copies_ = 0;
  std::vector<RawFrame> raw_;
  std::vector<uint64_t> addresses_;
  std::vector<char> heads_;
};

}  // namespace trainprof
