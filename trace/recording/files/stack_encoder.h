// Turns samples of threads' stacks into frames of their file (FORMAT.md, "Stack samples"). What a
// sample refers to is defined when it is first needed after a key frame, and once.
//
//   StackEncoder encoder;
//   const uint32_t process = encoder.AddProcess({HostEntityKind::kProcess, 4711, 1, 99, "python"});
//   const uint32_t thread = encoder.AddThread(process, 4711, "python");
//   const uint32_t frame = encoder.AddFrame("main", "train.py", 12);
//   encoder.Sample(now_ns, thread, ThreadStateCode::kRunning, 20'000'000, {&frame, 1});
//   log.Append(encoder.TakeFrame());
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/recording/files/frame_payload.h"
#include "trace/recording/files/stack_file.h"

namespace trainprof::recording {

class StackEncoder {
 public:
  // `parent` (a pid) tells whose child it is: ancestors are added before it.
  uint32_t AddProcess(HostEntity process);
  void EndProcess(uint32_t process);
  uint32_t AddThread(uint32_t process, int64_t tid, std::string_view name);
  uint32_t AddFrame(std::string_view function, std::string_view file, int64_t line);
  // Said once.
  void Fact(std::string_view key, std::string_view text);

  // `frames`: of AddFrame, innermost first; empty: the thread has no Python frame. Times never run
  // backwards. O(frames), O(1) for the thread's last stack again.
  void Sample(int64_t monotonic_ns, uint32_t thread, ThreadStateCode state, int64_t weight_ns,
              std::span<const uint32_t> frames);

  // What was said since the last frame as one frame; empty when there is nothing. Valid until the
  // next call of anything.
  std::span<const char> TakeFrame();
  // Of the frame so far: far below kMostFrameBytes is the caller's to keep.
  size_t pending_bytes() const { return open_ ? out_.size() : 0; }
  // How much is remembered: whoever adds without end begins anew with another encoder.
  size_t remembered() const { return frames_.size() + threads_.size() + processes_.size(); }

 private:
  static constexpr uint32_t kUnsaid = UINT32_MAX;
  struct KnownProcess {
    HostEntity what;
    uint32_t number = kUnsaid;  // in the file, since the last key frame; so below
    bool ended = false;
  };
  struct KnownThread {
    uint32_t process;
    int64_t tid;
    std::string name;
    uint32_t number = kUnsaid;
    std::vector<uint32_t> last_frames{};
    uint32_t last_stack = kUnsaid;
  };
  struct KnownFrame {
    std::string function;
    std::string file;
    int64_t line;
    uint32_t number = kUnsaid;
  };
  void Begin();
  void Restate();
  void Say(KnownProcess& process);
  uint32_t NumberOf(KnownThread& thread);
  uint32_t NumberOf(KnownFrame& frame);
  uint32_t TextNumber(const std::string& text);
  uint32_t StackNumber(std::span<const uint32_t> frames);

  FrameWriter out_{kStackStream};
  bool open_ = false;  // something was said since the last frame
  bool is_key_ = true;
  uint32_t frames_taken_ = 0;
  int64_t last_ns_ = 0;
  std::vector<KnownProcess> processes_;
  std::vector<KnownThread> threads_;
  std::vector<KnownFrame> frames_;
  std::unordered_map<std::string, uint32_t> frame_of_;  // by all that it says
  // Since the last key frame:
  std::unordered_map<std::string, uint32_t> texts_;
  std::unordered_map<uint64_t, uint32_t> stacks_;  // by caller and frame
  uint32_t said_processes_ = 0;
  uint32_t said_threads_ = 0;
  uint32_t said_frames_ = 0;
};

}  // namespace trainprof::recording
