#include "collectors/stacks/python_process.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

namespace trainprof {
namespace {

constexpr size_t kMostInterpreters = 64;
constexpr uint32_t kMostThreadBytes = 2048;
// How often a thread that moves meanwhile is read again.
constexpr int kTries = 3;
// Frames that a thread's calls make stand one behind the other, the outer ones below: a copy takes
// in what stands so far below the first one that is missing. Generators keep theirs elsewhere.
constexpr uint64_t kCopyBelow = 8192;
constexpr uint64_t kPage = 4096;
// Of one stack: with a chain of generators each may stand alone.
constexpr int kMostCopies = 300;
// _PyInterpreterFrame::owner of frames that belong to no Python function.
constexpr uint8_t kOwnedByC = 3;
constexpr int64_t kUnitBytes = 2;  // of bytecode

template <class T>
T At(const char* bytes, size_t offset) {
  T value;
  memcpy(&value, bytes + offset, sizeof value);
  return value;
}

}  // namespace

// 3.10 keeps no thread id of the kernel: glibc has it in what its pthread_t points at.
int64_t PythonProcess::TidOf(uint64_t pthread) const {
#if defined(__x86_64__)
  constexpr uint64_t kTidInPthread = 720;
#else
  constexpr uint64_t kTidInPthread = 208;
#endif
  int32_t tid = 0;
  RemoteMemory memory = memory_;
  if (!memory.Read(pthread + kTidInPthread, tid) || tid <= 0) return 0;
  return access((task_ / std::to_string(tid)).c_str(), F_OK) == 0 ? tid : 0;
}

bool PythonProcess::ReadThread(uint64_t state, PythonThread& thread, uint64_t& next) {
  const PythonLayout& layout = place_.layout;
  char bytes[kMostThreadBytes];
  if (!memory_.Read(state, bytes, layout.thread_bytes())) return false;
  next = At<uint64_t>(bytes, layout.next_thread);
  thread.state = state;
  thread.tid =
      layout.tid != 0 ? At<int64_t>(bytes, layout.tid) : TidOf(At<uint64_t>(bytes, layout.pthread));
  thread.frame = At<uint64_t>(bytes, layout.frame);
  if (layout.frame_in_holder < 0 || thread.frame == 0) return true;
  // A thread that ends takes what is pointed at with it: it has no frame then.
  if (!memory_.Read(thread.frame + static_cast<uint64_t>(layout.frame_in_holder), thread.frame)) {
    thread.frame = 0;
  }
  return true;
}

bool PythonProcess::ListThreads(std::vector<PythonThread>& threads) {
  threads.clear();
  const PythonLayout& layout = place_.layout;
  uint64_t interpreter = 0;
  if (!memory_.Read(place_.runtime + layout.first_interpreter, interpreter)) return false;
  for (size_t i = 0; i < kMostInterpreters && interpreter != 0; ++i) {
    uint64_t state = 0;
    if (!memory_.Read(interpreter + layout.first_thread, state)) break;
    while (state != 0 && threads.size() < kMostThreads) {
      PythonThread thread;
      if (!ReadThread(state, thread, state)) break;
      if (thread.tid > 0 && thread.tid <= INT32_MAX) threads.push_back(thread);
    }
    if (!memory_.Read(interpreter + layout.next_interpreter, interpreter)) break;
  }
  return true;
}

uint64_t PythonProcess::TopFrame(uint64_t thread_state) {
  const PythonLayout& layout = place_.layout;
  uint64_t frame = 0;
  if (!memory_.Read(thread_state + layout.frame, frame) || frame == 0) return 0;
  if (layout.frame_in_holder < 0) return frame;
  uint64_t top = 0;
  return memory_.Read(frame + static_cast<uint64_t>(layout.frame_in_holder), top) ? top : 0;
}

const char* PythonProcess::FrameBytes(uint64_t address) {
  const size_t size = place_.layout.frame_bytes();
  if (address >= copy_begin_ && address - copy_begin_ + size <= copy_bytes_) {
    return copy_.data() + (address - copy_begin_);
  }
  if (++copies_ > kMostCopies) return nullptr;
  const uint64_t page = address / kPage * kPage;
  const bool below = place_.layout.has_frame_stack() && page > kCopyBelow;
  for (const uint64_t begin : {below ? page - kCopyBelow : address, address}) {
    copy_begin_ = begin;
    copy_bytes_ = address + size - begin;
    if (copy_.size() < copy_bytes_) copy_.resize(copy_bytes_);
    if (memory_.Read(begin, copy_.data(), copy_bytes_)) return copy_.data() + (address - begin);
  }
  copy_bytes_ = 0;
  return nullptr;
}

// The frames from the innermost one out, as they stand in the copy. False when they lead nowhere.
bool PythonProcess::Walk(uint64_t top) {
  const PythonLayout& layout = place_.layout;
  raw_.clear();
  copy_bytes_ = 0;
  copies_ = 0;
  for (uint64_t frame = top; frame != 0 && raw_.size() < kMostFrames;) {
    const char* bytes = FrameBytes(frame);
    if (bytes == nullptr) return false;
    const bool is_python = layout.has_frame_stack()
                               ? At<uint8_t>(bytes, layout.owner) != kOwnedByC
                               : At<uint64_t>(bytes, kObjectType) == place_.frame_type;
    if (!layout.has_frame_stack() && !is_python) return false;
    if (is_python) {
      raw_.push_back({At<uint64_t>(bytes, layout.code),
                      layout.has_frame_stack()
                          ? At<uint64_t>(bytes, layout.instruction)
                          : static_cast<uint64_t>(At<int32_t>(bytes, layout.instruction))});
    }
    const auto previous = At<uint64_t>(bytes, layout.previous);
    if (previous == frame) return false;
    frame = previous;
  }
  return true;
}

bool PythonProcess::Resolve(const NumberFrame& number, std::vector<uint32_t>& frames) {
  const PythonLayout& layout = place_.layout;
  addresses_.clear();
  for (const RawFrame& frame : raw_) addresses_.push_back(frame.code);
  const size_t bytes = layout.code_bytes();
  heads_.resize(addresses_.size() * bytes);
  if (memory_.ReadEach(addresses_, bytes, heads_.data()) != addresses_.size()) return false;
  frames.clear();
  for (size_t i = 0; i < raw_.size(); ++i) {
    const std::span<const char> head(heads_.data() + i * bytes, bytes);
    int64_t instruction = static_cast<int64_t>(raw_[i].instruction) * kUnitBytes;
    if (layout.has_frame_stack()) {
      instruction = static_cast<int64_t>(raw_[i].instruction - raw_[i].code - layout.instructions);
      const auto units = At<int64_t>(head.data(), kObjectSize);
      // One unit before the first instruction stands who has not begun.
      if (instruction < -kUnitBytes || instruction / kUnitBytes >= units) return false;
    }
    const auto frame = codes_.FrameOf(raw_[i].code, head, instruction, memory_, number);
    if (!frame) return false;
    frames.push_back(*frame);
  }
  return true;
}

StackOutcome PythonProcess::ReadStack(const PythonThread& thread, const NumberFrame& number,
                                      std::vector<uint32_t>& frames) {
  frames.clear();
  uint64_t top = thread.frame;
  for (int i = 0; i < kTries; ++i) {
    if (top == 0) return StackOutcome::kEmpty;
    const bool whole = Walk(top);
    const uint64_t top_now = TopFrame(thread.state);
    const bool stood_still = top_now == top;
    // The last try is as good as it gets: what moved at the end of the copy need not be wrong.
    if (whole && (stood_still || i + 1 == kTries) && Resolve(number, frames)) {
      return frames.empty() ? StackOutcome::kEmpty : StackOutcome::kRead;
    }
    top = top_now;
  }
  frames.clear();
  return StackOutcome::kUnusable;
}

}  // namespace trainprof
