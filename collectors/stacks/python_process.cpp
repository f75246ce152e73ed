#include "collectors/stacks/python_process.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

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
constexpr uint64_t kMostOfStack = 1 << 20;  // Python takes 16 KiB at a time, or what one call needs
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
int64_t PythonProcess::TidOf(uint64_t pthread) {
#if defined(__x86_64__)
  constexpr uint64_t kTidInPthread = 720;
#else
  constexpr uint64_t kTidInPthread = 208;
#endif
  int32_t tid = 0;
  if (!memory_.Read(pthread + kTidInPthread, tid) || tid <= 0) return 0;
  return access((folder_ / "task" / std::to_string(tid)).c_str(), F_OK) == 0 ? tid : 0;
}

PythonThread PythonProcess::ThreadIn(uint64_t state, const char* bytes) const {
  const PythonLayout& layout = place_.layout;
  PythonThread thread;
  thread.state = state;
  thread.pthread = At<uint64_t>(bytes, layout.pthread);
  if (layout.tid != 0) thread.tid = At<int64_t>(bytes, layout.tid);
  if (layout.frame_stack != 0) thread.stack_begin = At<uint64_t>(bytes, layout.frame_stack);
  const auto frame = At<uint64_t>(bytes, layout.frame);
  (layout.frame_in_holder < 0 ? thread.frame : thread.holder) = frame;
  return thread;
}

// A thread that ends takes the holder with it: it has no frame then.
uint64_t PythonProcess::FrameIn(uint64_t holder) {
  uint64_t frame = 0;
  const auto at = holder + static_cast<uint64_t>(place_.layout.frame_in_holder);
  return holder != 0 && memory_.Read(at, frame) ? frame : 0;
}

bool PythonProcess::ListThreads(std::vector<PythonThread>& threads) {
  return ListAsBefore(threads) || ListAnew(threads);
}

// One read of all that the last listing found. False when anything of the list has changed.
bool PythonProcess::ListAsBefore(std::vector<PythonThread>& threads) {
  const PythonLayout& layout = place_.layout;
  const size_t count = known_.size();
  if (count == 0 || 2 * count + 3 > RemoteMemory::kMostPieces) return false;
  const size_t bytes = layout.thread_bytes();
  states_.resize(count * bytes);
  tops_.assign(count, 0);
  uint64_t interpreter = 0;
  uint64_t next_interpreter = 0;
  uint64_t next = 0;
  pieces_ = {{place_.runtime + layout.first_interpreter, &interpreter, sizeof interpreter},
             {known_interpreter_ + layout.next_interpreter, &next_interpreter, sizeof interpreter},
             {known_interpreter_ + layout.first_thread, &next, sizeof next}};
  for (size_t i = 0; i < count; ++i) {
    pieces_.push_back({known_[i].state, &states_[i * bytes], bytes});
    if (known_[i].holder == 0) continue;
    pieces_.push_back({known_[i].holder + static_cast<uint64_t>(layout.frame_in_holder), &tops_[i],
                       sizeof tops_[i]});
  }
  if (!memory_.Read(pieces_) || interpreter != known_interpreter_ || next_interpreter != 0) {
    return false;
  }
  threads.clear();
  for (size_t i = 0; i < count; ++i) {
    const char* const state = &states_[i * bytes];
    PythonThread thread = ThreadIn(known_[i].state, state);
    if (layout.tid == 0) thread.tid = known_[i].tid;
    if (next != thread.state || thread.pthread != known_[i].pthread ||
        thread.tid != known_[i].tid) {
      return false;
    }
    if (layout.frame_in_holder >= 0) {
      thread.frame = thread.holder == known_[i].holder ? tops_[i] : FrameIn(thread.holder);
    }
    known_[i] = thread;
    threads.push_back(thread);
    next = At<uint64_t>(state, layout.next_thread);
  }
  return next == 0;
}

bool PythonProcess::ListAnew(std::vector<PythonThread>& threads) {
  threads.clear();
  known_.clear();
  const PythonLayout& layout = place_.layout;
  uint64_t interpreter = 0;
  if (!memory_.Read(place_.runtime + layout.first_interpreter, interpreter)) return false;
  known_interpreter_ = interpreter;
  bool is_whole = true;
  for (size_t i = 0; i < kMostInterpreters && interpreter != 0; ++i) {
    uint64_t state = 0;
    if (!memory_.Read(interpreter + layout.first_thread, state)) return true;
    while (state != 0 && threads.size() < kMostThreads) {
      char bytes[kMostThreadBytes];
      if (!memory_.Read(state, bytes, layout.thread_bytes())) return true;
      PythonThread thread = ThreadIn(state, bytes);
      if (layout.tid == 0) thread.tid = TidOf(thread.pthread);
      if (layout.frame_in_holder >= 0) thread.frame = FrameIn(thread.holder);
      const bool is_real = thread.tid > 0 && thread.tid <= INT32_MAX;
      is_whole = is_whole && is_real;
      if (is_real) threads.push_back(thread);
      state = At<uint64_t>(bytes, layout.next_thread);
    }
    is_whole = is_whole && i == 0 && state == 0;
    if (!memory_.Read(interpreter + layout.next_interpreter, interpreter)) return true;
  }
  if (is_whole) known_ = threads;
  return true;
}

RemoteMemory::Piece PythonProcess::Window(uint64_t begin, uint64_t frame) {
  copy_begin_ = begin;
  copy_bytes_ = frame + place_.layout.frame_bytes() - begin;
  if (copy_.size() < copy_bytes_) copy_.resize(copy_bytes_);
  return {copy_begin_, copy_.data(), copy_bytes_};
}

// What stands below a frame on the stack are those around it. A generator's frame stands elsewhere,
// and so does each of 3.10.
uint64_t PythonProcess::CopyFrom(uint64_t frame) const {
  const bool is_on_stack =
      stack_begin_ != 0 && frame > stack_begin_ && frame - stack_begin_ < kMostOfStack;
  return is_on_stack ? std::max(stack_begin_, frame - std::min(kCopyBelow, frame)) : frame;
}

uint64_t PythonProcess::TopOf(PythonThread& thread) {
  uint64_t frame = 0;
  if (!memory_.Read(thread.state + place_.layout.frame, frame)) return 0;
  if (place_.layout.frame_in_holder < 0) return frame;
  thread.holder = frame;
  return FrameIn(frame);
}

uint64_t PythonProcess::CopyTop(PythonThread& thread) {
  const PythonLayout& layout = place_.layout;
  copies_ = 0;
  stack_begin_ = thread.stack_begin;
  const bool has_holder = layout.frame_in_holder >= 0;
  uint64_t frame = 0;
  uint64_t top = 0;
  pieces_ = {Window(CopyFrom(thread.frame), thread.frame),
             {thread.state + layout.frame, &frame, sizeof frame}};
  if (has_holder) {
    pieces_.push_back(
        {thread.holder + static_cast<uint64_t>(layout.frame_in_holder), &top, sizeof top});
  }
  if (!memory_.Read(pieces_)) {
    copy_bytes_ = 0;  // the walk tries again
    return TopOf(thread);
  }
  if (!has_holder) return frame;
  if (frame != thread.holder) top = FrameIn(frame);
  thread.holder = frame;
  return top;
}

const char* PythonProcess::FrameBytes(uint64_t address) {
  const size_t size = place_.layout.frame_bytes();
  if (address >= copy_begin_ && address - copy_begin_ + size <= copy_bytes_) {
    return copy_.data() + (address - copy_begin_);
  }
  if (++copies_ > kMostCopies) return nullptr;
  // The rest of its page is there, too, and may be an earlier part of the stack.
  const uint64_t page = place_.layout.has_frame_stack() ? address / kPage * kPage : address;
  for (const uint64_t begin : {std::min(CopyFrom(address), page), address}) {
    const RemoteMemory::Piece window = Window(begin, address);
    if (memory_.Read(window.address, window.out, window.bytes)) {
      return copy_.data() + (address - begin);
    }
  }
  copy_bytes_ = 0;
  return nullptr;
}

// The frames from the innermost one out, as they stand in the copy. False when they lead nowhere.
bool PythonProcess::Walk(uint64_t top) {
  const PythonLayout& layout = place_.layout;
  raw_.clear();
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
    if (i == 0) {
      const auto call = codes_.CallOf(raw_[i].code, instruction, memory_, number);
      if (call) frames.push_back(*call);
    }
    frames.push_back(*frame);
  }
  return true;
}

StackOutcome PythonProcess::ReadStack(const PythonThread& listed, const NumberFrame& number,
                                      std::vector<uint32_t>& frames) {
  frames.clear();
  PythonThread thread = listed;
  for (int i = 0; i < kTries; ++i) {
    if (thread.frame == 0) return StackOutcome::kEmpty;
    uint64_t top_now = CopyTop(thread);
    const bool whole = Walk(thread.frame);
    // Frames that were read one after the other belong together if the first is still innermost.
    if (copies_ > 0 && top_now == thread.frame) top_now = TopOf(thread);
    // The last try is as good as it gets: what moved at the end of the copy need not be wrong.
    if (whole && (top_now == thread.frame || i + 1 == kTries) && Resolve(number, frames)) {
      return frames.empty() ? StackOutcome::kEmpty : StackOutcome::kRead;
    }
    thread.frame = top_now;
  }
  frames.clear();
  return StackOutcome::kUnusable;
}

}  // namespace trainprof
