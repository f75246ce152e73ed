// Stacks of calls: each distinct frame is stored once, and so is each distinct stack, as its
// innermost frame and the stack of the caller.
#pragma once

#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "trace/base/ids.h"

namespace trainprof {

enum class FrameId : uint32_t {};  // index into StackTable's frames
enum class StackId : uint32_t {};  // of StackTable's stacks, from 1

inline constexpr StackId kNoStack{0};

// One function in a stack, as far as it is known. Without file and module, `function` is all that
// the source says of it.
struct CallFrame {
  StringId function = kEmptyString;
  StringId file = kEmptyString;  // "" without line information
  int64_t line = 0;
  StringId module = kEmptyString;  // the mapped file of native code
  uint64_t offset = 0;             // of a frame without a file: in the module, else the address
  bool is_user = false;            // not torch's, CUDA's or the system's: a line to change

  bool HasLine() const { return file != kEmptyString; }
  bool HasPlace() const { return HasLine() || module != kEmptyString; }
  bool operator==(const CallFrame&) const = default;
};

// Where a process opens ranges of a name, as the first of a thread was seen to be: a place of their own, not of what
// happens inside them.
struct Opening {
  StringId name = kEmptyString;
  ProcessId process{};
  StackId stack = kNoStack;

  bool operator==(const Opening&) const = default;
};

class StackTable {
 public:
  // O(1). The same frame of the same caller gives the same stack; `caller` may be kNoStack.
  StackId Add(FrameId frame, StackId caller) {
    const uint64_t key = uint64_t{Index(caller)} << 32 | Index(frame);
    const auto [it, is_new] = known_stacks_.try_emplace(key);
    if (is_new) {
      frame_.push_back(frame);
      parent_.push_back(caller);
      it->second = StackId{static_cast<uint32_t>(frame_.size())};
    }
    return it->second;
  }
  // The same frame gives the same id, whatever `is_user` says. A new one is asked decide(), whether
  // it is the user's.
  template <class Decide>
  FrameId AddFrame(CallFrame frame, Decide decide) {
    const auto [it, is_new] =
        known_frames_.try_emplace(frame, static_cast<uint32_t>(frames_.size()));
    if (is_new) {
      frame.is_user = decide();
      frames_.push_back(frame);
    }
    return FrameId{it->second};
  }

  const CallFrame& frame(FrameId id) const { return frames_[Index(id)]; }
  FrameId innermost(StackId id) const { return frame_[Index(id) - 1]; }
  StackId caller(StackId id) const { return parent_[Index(id) - 1]; }
  size_t size() const { return frame_.size(); }

  // Calls visit(const CallFrame&) for each frame, innermost first, until it returns false.
  template <class Visit>
  void ForEachFrame(StackId id, Visit visit) const {
    for (; id != kNoStack; id = caller(id)) {
      if (!visit(frame(innermost(id)))) return;
    }
  }

  size_t size_bytes() const {
    constexpr size_t kNodeBytes = 64;  // of a hash table of small keys, with its bucket
    return frame_.size() * (sizeof(FrameId) + sizeof(StackId) + kNodeBytes) +
           frames_.size() * (2 * sizeof(CallFrame) + kNodeBytes);
  }

 private:
  struct FrameHash {
    size_t operator()(const CallFrame& f) const {
      size_t hash = f.offset + static_cast<uint64_t>(f.line);
      for (const StringId text : {f.function, f.file, f.module}) {
        hash = (hash ^ Index(text)) * 0x9E3779B97F4A7C15ull;
      }
      return hash;
    }
  };
  struct SameFrame {
    bool operator()(const CallFrame& a, const CallFrame& b) const {
      return std::tie(a.function, a.file, a.line, a.module, a.offset) ==
             std::tie(b.function, b.file, b.line, b.module, b.offset);
    }
  };

  std::vector<FrameId> frame_;   // of each stack the innermost
  std::vector<StackId> parent_;  // of each stack the caller's
  std::vector<CallFrame> frames_;
  std::unordered_map<uint64_t, StackId> known_stacks_;
  std::unordered_map<CallFrame, uint32_t, FrameHash, SameFrame> known_frames_;
};

}  // namespace trainprof
