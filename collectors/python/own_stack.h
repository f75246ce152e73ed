// The Python stack of the calling thread, from within a call that Python made: its frames stand
// still until that call returns, whoever holds the GIL meanwhile. Costs some tens of ns a frame,
// takes no lock, calls nothing of Python's but the getter of the thread's own state.
#pragma once

#include <cstdint>

namespace trainprof::collectors {

struct OwnStack {
  static constexpr uint32_t kMostFrames = 64;  // deeper ones lose their outermost frames
  struct Frame {
    const char* code;     // the code object, which the frame keeps alive
    int64_t instruction;  // bytes from the start of its code; negative: before its first one
  };
  uint32_t count;
  uint64_t hash;             // of what its functions are and where each stands
  Frame frame[kMostFrames];  // innermost first
};

// Stacks are read from here on, if this version of Python (3.`minor`) keeps them as is known here:
// the caller's own, which it tells as code objects and their present lines, innermost first, must
// come out. The caller holds the GIL.
bool StartOwnStacks(int minor, const void* const* codes, const int32_t* lines, uint32_t count);
// The interpreter is about to end: none is read any more.
void StopOwnStacks();

// False, and an empty stack, where there is none: a thread that runs no Python.
bool ReadOwnStack(OwnStack* stack);

// A code object, by addresses that are Python's: of one that is gone another may have it, but hardly
// with the same name and lines.
struct OwnCode {
  const char* object;
  const char* name;
  const char* lines;
  const char* file;
};
// For functions that Python itself calls, which hold the GIL, also when the interpreter is about to
// end: at most `most_frames`, from the innermost one on whose code is not passed over. False where
// there is none, or where stacks of this Python are not known.
bool ReadOwnStackFrom(bool (*passes_over)(const OwnCode& code), uint32_t most_frames,
                      OwnStack* stack);
// Whether ReadOwnStackFrom can read this Python's.
bool KnowsOwnStacks();
// The file's path in UTF-8, at most kMostPathBytes.
inline constexpr uint32_t kMostPathBytes = 2048;
uint32_t SpellFile(const OwnCode& code, char* text);

// A line a frame, "LINE FUNCTION FILE\n" (FORMAT.md, record 24), in UTF-8, as many whole ones as fit.
// The bytes that were written.
uint32_t SpellStack(const OwnStack& stack, char* text, uint32_t size);

}  // namespace trainprof::collectors
