#include "trace/recording/files/stack_encoder.h"

#include <algorithm>

namespace trainprof::recording {
namespace {

// A damaged frame costs at most this many: a minute at ten a second.
constexpr uint32_t kStackFramesAKey = 600;
constexpr size_t kMostStackText = 1024;

uint8_t Code(StackItem item) { return static_cast<uint8_t>(item); }

}  // namespace

// Nothing until something is said: an empty frame is none.
void StackEncoder::Begin() {
  if (open_) return;
  open_ = true;
  out_.Begin();
  is_key_ = frames_taken_ % kStackFramesAKey == 0;
  if (is_key_) Restate();
}

// What is said from here on builds on nothing before.
void StackEncoder::Restate() {
  last_ns_ = 0;
  texts_.clear();
  stacks_.clear();
  said_processes_ = said_threads_ = said_frames_ = 0;
  for (KnownThread& thread : threads_) thread.number = thread.last_stack = kUnsaid;
  for (KnownFrame& frame : frames_) frame.number = kUnsaid;
  for (KnownProcess& process : processes_) {
    process.number = kUnsaid;
    if (!process.ended) Say(process);
  }
}

void StackEncoder::Say(KnownProcess& process) {
  out_.Byte(Code(StackItem::kProcess));
  out_.Signed(process.what.number);
  out_.Signed(process.what.parent);
  out_.Varint(process.what.start_ticks);
  out_.Text(process.what.text, kMostStackText);
  process.number = said_processes_++;
}

uint32_t StackEncoder::AddProcess(HostEntity process) {
  Begin();
  processes_.push_back({std::move(process)});
  Say(processes_.back());
  return static_cast<uint32_t>(processes_.size()) - 1;
}

void StackEncoder::EndProcess(uint32_t process) { processes_.at(process).ended = true; }

uint32_t StackEncoder::AddThread(uint32_t process, int64_t tid, std::string_view name) {
  threads_.push_back({.process = process, .tid = tid, .name = std::string(name)});
  return static_cast<uint32_t>(threads_.size()) - 1;
}

uint32_t StackEncoder::AddFrame(std::string_view function, std::string_view file, int64_t line) {
  std::string key(function);
  key.append(1, '\0').append(file).append(1, '\0').append(std::to_string(line));
  const auto [it, is_new] =
      frame_of_.try_emplace(std::move(key), static_cast<uint32_t>(frames_.size()));
  if (is_new) frames_.push_back({std::string(function), std::string(file), line});
  return it->second;
}

void StackEncoder::Fact(std::string_view key, std::string_view text) {
  Begin();
  out_.Byte(Code(StackItem::kFact));
  out_.Text(key, kMostStackText);
  out_.Text(text, kMostStackText);
}

uint32_t StackEncoder::TextNumber(const std::string& text) {
  if (text.empty()) return 0;
  const auto [it, is_new] = texts_.try_emplace(text, static_cast<uint32_t>(texts_.size()) + 1);
  if (is_new) {
    out_.Byte(Code(StackItem::kText));
    out_.Text(text, kMostStackText);
  }
  return it->second;
}

uint32_t StackEncoder::NumberOf(KnownThread& thread) {
  if (thread.number != kUnsaid) return thread.number;
  KnownProcess& process = processes_.at(thread.process);
  if (process.number == kUnsaid) Say(process);
  out_.Byte(Code(StackItem::kThread));
  out_.Varint(process.number);
  out_.Signed(thread.tid);
  out_.Text(thread.name, kMostStackText);
  return thread.number = said_threads_++;
}

uint32_t StackEncoder::NumberOf(KnownFrame& frame) {
  if (frame.number != kUnsaid) return frame.number;
  const uint32_t function = TextNumber(frame.function);
  const uint32_t file = TextNumber(frame.file);
  out_.Byte(Code(StackItem::kFrame));
  out_.Varint(function);
  out_.Varint(file);
  out_.Signed(frame.line);
  return frame.number = said_frames_++;
}

uint32_t StackEncoder::StackNumber(std::span<const uint32_t> frames) {
  uint32_t stack = 0;
  for (size_t i = frames.size(); i-- > 0;) {
    const uint32_t frame = NumberOf(frames_.at(frames[i]));
    const auto [it, is_new] = stacks_.try_emplace(uint64_t{stack} << 32 | frame,
                                                  static_cast<uint32_t>(stacks_.size()) + 1);
    if (is_new) {
      out_.Byte(Code(StackItem::kStack));
      out_.Varint(stack);
      out_.Varint(frame);
    }
    stack = it->second;
  }
  return stack;
}

void StackEncoder::Sample(int64_t monotonic_ns, uint32_t thread_number, ThreadStateCode state,
                          int64_t weight_ns, std::span<const uint32_t> frames) {
  Begin();
  KnownThread& thread = threads_.at(thread_number);
  const uint32_t number = NumberOf(thread);
  if (thread.last_stack == kUnsaid || !std::ranges::equal(thread.last_frames, frames)) {
    thread.last_stack = StackNumber(frames);
    thread.last_frames.assign(frames.begin(), frames.end());
  }
  monotonic_ns = std::max(monotonic_ns, last_ns_);
  out_.Byte(Code(StackItem::kSample));
  out_.Varint(static_cast<uint64_t>(monotonic_ns - last_ns_));
  out_.Varint(number);
  out_.Byte(static_cast<uint8_t>(state));
  out_.Varint(thread.last_stack);
  out_.Varint(static_cast<uint64_t>(std::max<int64_t>(weight_ns, 0)));
  last_ns_ = monotonic_ns;
}

std::span<const char> StackEncoder::TakeFrame() {
  if (!open_) return {};
  open_ = false;
  ++frames_taken_;
  return out_.Finish(is_key_);
}

}  // namespace trainprof::recording
