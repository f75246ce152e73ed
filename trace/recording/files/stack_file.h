// The items of a stack sampler's file (stacks-<pid>-<start>.tph, FORMAT.md has its bytes) and what
// reads them: which Python functions and lines the threads of a run were in, some fifty times a
// second. Header and frames are those of host samples.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trace/recording/files/host_format.h"

namespace trainprof::recording {

// Definitions have the number of their item among its kind since the last key frame: texts and
// stacks from 1 (0: the empty text, no stack), the others from 0.
enum class StackItem : uint8_t {
  kPadding = 0,
  kProcess = 1,
  kThread = 2,
  kText = 3,
  kFrame = 4,
  kStack = 5,
  kSample = 6,
  kFact = 7,
};

enum class ThreadStateCode : uint8_t { kUnknown = 0, kRunning = 1, kWaiting = 2, kGil = 3 };

// What a decoder meets, in the order of the file. Numbers are valid when they are given: below the
// count of what was defined since OnKey().
class StackSink {
 public:
  struct Sample {
    int64_t monotonic_ns = 0;
    uint32_t thread = 0;
    ThreadStateCode state = ThreadStateCode::kUnknown;
    uint32_t stack = 0;     // 0: the thread was in no Python function
    int64_t weight_ns = 0;  // of the thread's time that the sample stands for
  };
  virtual ~StackSink() = default;
  virtual void OnKey() = 0;  // definitions are forgotten and come again
  virtual void OnProcess(const HostEntity& process) = 0;
  virtual void OnThread(uint32_t process, int64_t tid, std::string_view name) = 0;
  // The texts live as long as the file's bytes.
  virtual void OnFrame(std::string_view function, std::string_view file, int64_t line) = 0;
  virtual void OnStack(uint32_t caller, uint32_t frame) = 0;  // `caller` 0: it has none
  virtual void OnSample(const Sample& sample) = 0;
  virtual void OnFact(std::string_view key, std::string_view text) = 0;
};

// Decodes all frames that are whole and understood. Returns how many stretches of bytes were not (a
// damaged frame and what cannot be understood without it is one); a torn tail is not counted.
// O(bytes).
int64_t DecodeStackFrames(std::span<const char> frames, StackSink& sink);

}  // namespace trainprof::recording
