// Decodes the frames of a stack sampler's file; hostile bytes cost what they say, never more.
#include <string>
#include <vector>

#include "trace/recording/files/frame_payload.h"
#include "trace/recording/files/stack_file.h"

namespace trainprof::recording {
namespace {

// A line number beyond this is damage; so are a time and a weight beyond 2^62 ns.
constexpr int64_t kMostLine = INT32_MAX;
constexpr uint64_t kMostNs = uint64_t{1} << 62;

class StackDecoder {
 public:
  explicit StackDecoder(StackSink& sink) : sink_(sink) {}

  void Lose() { in_step_ = false; }
  bool in_step() const { return in_step_; }

  // False when the payload is none of ours.
  bool Decode(bool is_key, std::span<const char> payload) {
    if (is_key) BeginKey();
    PayloadReader in(payload);
    while (!in.AtEnd()) {
      if (!DecodeItem(in)) return false;
    }
    return in.ok();
  }

 private:
  void BeginKey() {
    in_step_ = true;
    now_ = 0;
    texts_.assign(1, {});
    processes_ = threads_ = frames_ = 0;
    stacks_ = 1;
    sink_.OnKey();
  }

  bool DecodeItem(PayloadReader& in) {
    switch (static_cast<StackItem>(in.Byte())) {
      case StackItem::kPadding:
        return true;
      case StackItem::kProcess:
        return Process(in);
      case StackItem::kThread: {
        const uint64_t process = in.Varint();
        const int64_t tid = in.Signed();
        const std::string_view name = in.Text();
        if (!in.ok() || process >= processes_) return false;
        ++threads_;
        sink_.OnThread(static_cast<uint32_t>(process), tid, name);
        return true;
      }
      case StackItem::kText:
        texts_.push_back(in.Text());
        return in.ok();
      case StackItem::kFrame: {
        const uint64_t function = in.Varint();
        const uint64_t file = in.Varint();
        const int64_t line = in.Signed();
        if (!in.ok() || function >= texts_.size() || file >= texts_.size() || line < 0 ||
            line > kMostLine) {
          return false;
        }
        ++frames_;
        sink_.OnFrame(texts_[function], texts_[file], line);
        return true;
      }
      case StackItem::kStack: {
        const uint64_t caller = in.Varint();
        const uint64_t frame = in.Varint();
        if (!in.ok() || caller >= stacks_ || frame >= frames_) return false;
        ++stacks_;
        sink_.OnStack(static_cast<uint32_t>(caller), static_cast<uint32_t>(frame));
        return true;
      }
      case StackItem::kSample:
        return Sample(in);
      case StackItem::kFact: {
        const std::string_view key = in.Text();
        const std::string_view text = in.Text();
        if (in.ok()) sink_.OnFact(key, text);
        return in.ok();
      }
    }
    return false;
  }

  bool Process(PayloadReader& in) {
    HostEntity process;
    process.kind = HostEntityKind::kProcess;
    process.number = in.Signed();
    process.parent = in.Signed();
    process.start_ticks = in.Varint();
    process.text = in.Text();
    if (!in.ok()) return false;
    ++processes_;
    sink_.OnProcess(process);
    return true;
  }

  bool Sample(PayloadReader& in) {
    const uint64_t passed = in.Varint();
    const uint64_t thread = in.Varint();
    const uint8_t state = in.Byte();
    const uint64_t stack = in.Varint();
    const uint64_t weight = in.Varint();
    if (!in.ok() || passed > kMostNs - now_ || thread >= threads_ || stack >= stacks_ ||
        weight > kMostNs || state > static_cast<uint8_t>(ThreadStateCode::kGil)) {
      return false;
    }
    now_ += passed;
    sink_.OnSample({static_cast<int64_t>(now_), static_cast<uint32_t>(thread),
                    static_cast<ThreadStateCode>(state), static_cast<uint32_t>(stack),
                    static_cast<int64_t>(weight)});
    return true;
  }

  StackSink& sink_;
  bool in_step_ = false;
  uint64_t now_ = 0;
  std::vector<std::string_view> texts_;
  uint64_t processes_ = 0;
  uint64_t threads_ = 0;
  uint64_t frames_ = 0;
  uint64_t stacks_ = 1;
};

}  // namespace

int64_t DecodeStackFrames(std::span<const char> frames, StackSink& sink) {
  StackDecoder decoder(sink);
  int64_t damaged = 0;
  FrameWalker walker(frames);
  while (const std::optional<HostFrame> frame = walker.Next()) {
    if (frame->after_loss) {
      decoder.Lose();
      ++damaged;
    }
    if (frame->stream != kStackStream || (!frame->is_key && !decoder.in_step())) continue;
    if (decoder.Decode(frame->is_key, frame->payload)) continue;
    decoder.Lose();
    ++damaged;
  }
  return damaged;
}

}  // namespace trainprof::recording
