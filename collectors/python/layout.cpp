#include "collectors/python/layout.h"

#include <string.h>

#include <algorithm>

namespace trainprof {
namespace {

constexpr uint32_t kPointerBytes = 8;
// No field that we read lies further into its structure, but for the two of the interpreter.
constexpr uint64_t kFarthestField = 1024;
constexpr uint64_t kFarthestState = 1 << 20;

// From the headers of 3.10.13, 3.11.7 and 3.12.1 on LP64; the minor versions do not
// differ within themselves.
constexpr PythonLayout kLayouts[] = {
    {.minor = 10,
     .first_interpreter = 32,
     .next_interpreter = 0,
     .first_thread = 8,
     .next_thread = 8,
     .pthread = 176,
     .frame = 24,
     .code = 32,
     .instruction = 96,
     .previous = 24,
     .name = 112,
     .file = 104,
     .first_line = 40,
     .lines = 120,
     .ascii_data = 48,
     .text_data = 72,
     .bytes_data = 32},
    {.minor = 11,
     .first_interpreter = 40,
     .next_interpreter = 0,
     .first_thread = 16,
     .next_thread = 8,
     .pthread = 152,
     .tid = 160,
     .frame = 56,
     .frame_stack = 296,
     .frame_in_holder = 8,
     .code = 32,
     .instruction = 56,
     .previous = 48,
     .owner = 69,
     .instructions = 184,
     .name = 128,
     .file = 112,
     .first_line = 72,
     .lines = 136,
     .ascii_data = 48,
     .text_data = 72,
     .bytes_data = 32},
    {.minor = 12,
     .first_interpreter = 40,
     .next_interpreter = 0,
     .first_thread = 72,
     .next_thread = 8,
     .pthread = 136,
     .tid = 144,
     .frame = 56,
     .frame_stack = 232,
     .frame_in_holder = 0,
     .code = 0,
     .instruction = 56,
     .previous = 8,
     .owner = 70,
     .instructions = 192,
     .name = 128,
     .file = 112,
     .first_line = 68,
     .lines = 136,
     .ascii_data = 40,
     .text_data = 56,
     .bytes_data = 32},
};

// The words of _Py_DebugOffsets of 3.13 (Include/internal/pycore_runtime.h), by their number.
enum Word : size_t {
  kCookie = 0,
  kVersion = 1,
  kFreeThreaded = 2,
  kFirstInterpreter = 5,
  kNextInterpreter = 8,
  kFirstThread = 9,
  kNextThread = 21,
  kCurrentFrame = 23,
  kPthread = 24,
  kTid = 25,
  kFrameStack = 26,
  kPrevious = 29,
  kExecutable = 30,
  kInstruction = 31,
  kOwner = 33,
  kFile = 35,
  kName = 37,  // the qualified one
  kLines = 38,
  kFirstLine = 39,
  kInstructions = 43,
};

constexpr int kMinorWithOffsets = 13;

}  // namespace

uint32_t PythonLayout::thread_bytes() const {
  return std::max({next_thread, pthread, tid, frame, frame_stack}) + kPointerBytes;
}
uint32_t PythonLayout::frame_bytes() const {
  return std::max({code, instruction, previous, owner}) + kPointerBytes;
}
uint32_t PythonLayout::code_bytes() const {
  return std::max({name, file, first_line, lines}) + kPointerBytes;
}

std::optional<PythonLayout> LayoutOf(int minor) {
  for (const PythonLayout& layout : kLayouts) {
    if (layout.minor == minor) return layout;
  }
  return std::nullopt;
}

ToldLayout LayoutFromDebugOffsets(std::span<const char> runtime) {
  uint64_t words[kDebugOffsetsBytes / sizeof(uint64_t)];
  if (runtime.size() < sizeof words || memcmp(runtime.data(), "xdebugpy", 8) != 0) {
    return {LayoutFault::kSaysNothing};
  }
  memcpy(words, runtime.data(), sizeof words);
  const auto minor = static_cast<int>(words[kVersion] >> 16 & 0xFF);
  ToldLayout told;
  told.layout.minor = minor;
  if (words[kVersion] >> 24 != 3 || minor != kMinorWithOffsets) {
    told.fault = LayoutFault::kUnknownVersion;
    return told;
  }
  if (words[kFreeThreaded] != 0) {
    told.fault = LayoutFault::kFreeThreaded;
    return told;
  }
  bool can_be = words[kFirstInterpreter] <= kFarthestState &&
                words[kFirstThread] <= kFarthestState && words[kNextInterpreter] <= kFarthestState;
  for (const Word word :
       {kNextThread, kCurrentFrame, kPthread, kTid, kFrameStack, kPrevious, kExecutable,
        kInstruction, kOwner, kFile, kName, kLines, kFirstLine, kInstructions}) {
    can_be = can_be && words[word] <= kFarthestField;
  }
  if (!can_be) {
    told.fault = LayoutFault::kCannotBe;
    return told;
  }
  const auto at = [&](Word word) { return static_cast<uint32_t>(words[word]); };
  PythonLayout& layout = told.layout;
  layout = *LayoutOf(12);  // texts and bytes are as they were
  layout.minor = minor;
  layout.first_interpreter = at(kFirstInterpreter);
  layout.next_interpreter = at(kNextInterpreter);
  layout.first_thread = at(kFirstThread);
  layout.next_thread = at(kNextThread);
  layout.pthread = at(kPthread);
  layout.tid = at(kTid);
  layout.frame = at(kCurrentFrame);
  layout.frame_stack = at(kFrameStack);
  layout.frame_in_holder = -1;
  layout.code = at(kExecutable);
  layout.instruction = at(kInstruction);
  layout.previous = at(kPrevious);
  layout.owner = at(kOwner);
  layout.instructions = at(kInstructions);
  layout.name = at(kName);
  layout.file = at(kFile);
  layout.first_line = at(kFirstLine);
  layout.lines = at(kLines);
  return told;
}

}  // namespace trainprof
