#include "trace/recording/read/stack_samples.h"

#include <map>

#include "trace/base/utf8.h"
#include "trace/formats/io/memory_limit.h"
#include "trace/recording/files/stack_file.h"

namespace trainprof::recording {
namespace {

constexpr char kStackCategory[] = "python";
constexpr size_t kItemsACheck = 1 << 16;  // of the memory that is left

class SampleMaker : public StackSink {
 public:
  SampleMaker(HostOwnership& ownership, size_t audience, int64_t base_ns, TraceBuilder& builder)
      : ownership_(ownership),
        audience_(audience),
        base_ns_(base_ns),
        builder_(builder),
        category_(builder.Intern(kStackCategory)) {}

  void OnKey() override {
    processes_.clear();
    threads_.clear();
    frames_.clear();
    stacks_.assign(1, {});
    stacks_[0].is_known = true;
  }
  void OnProcess(const HostEntity& process) override {
    CheckNowAndThen();
    const bool is_ours = ownership_.OwnerOf(process) == audience_;
    processes_.push_back({process.number, is_ours});
    if (!is_ours) return;
    Process& named = builder_.process(builder_.FindOrAddProcess(process.number));
    if (named.name == kEmptyString) named.name = Text(process.text);
  }
  void OnThread(uint32_t process, int64_t tid, std::string_view name) override {
    CheckNowAndThen();
    Thread& thread = threads_.emplace_back();
    thread.is_ours = processes_[process].is_ours;
    if (!thread.is_ours) return;
    thread.track =
        builder_.FindOrAddThread(builder_.FindOrAddProcess(processes_[process].pid), tid);
    Track& track = builder_.track(thread.track);
    if (track.name == kEmptyString) track.name = Text(name);
  }
  void OnFrame(std::string_view function, std::string_view file, int64_t line) override {
    CheckNowAndThen();
    frames_.push_back({function, file, line});
  }
  void OnStack(uint32_t caller, uint32_t frame) override {
    CheckNowAndThen();
    stacks_.push_back({caller, frame});
  }
  void OnSample(const Sample& sample) override {
    CheckNowAndThen();
    const Thread& thread = threads_[sample.thread];
    if (!thread.is_ours) return;
    const StackId stack = StackOf(sample.stack);
    const TraceTime time{sample.monotonic_ns - base_ns_};
    const Event event{.begin = time, .end = time, .name = NameOf(stack), .track = thread.track};
    builder_.AddRow(builder_.trace().samples, event, category_,
                    static_cast<ThreadState>(sample.state), stack, sample.weight_ns);
  }
  void OnFact(std::string_view key, std::string_view text) override {
    bool repaired = false;
    facts[std::string(key)] = RepairUtf8(text, &repaired);
    if (text.empty()) facts.erase(std::string(key));  // taken back
  }

  std::map<std::string, std::string> facts;

 private:
  struct OfProcess {
    int64_t pid;
    bool is_ours;
  };
  struct Thread {
    bool is_ours = false;
    TrackId track{};
  };
  struct Frame {
    std::string_view function;
    std::string_view file;
    int64_t line = 0;
  };
  struct Stack {
    uint32_t caller = 0;
    uint32_t frame = 0;
    bool is_known = false;  // in the trace, as `id`
    StackId id = kNoStack;
  };

  StringId Text(std::string_view text) {
    bool repaired = false;
    return builder_.Intern(RepairUtf8(text, &repaired));
  }
  StringId NameOf(StackId stack) {
    if (stack == kNoStack) return builder_.Intern(kNotInPython);
    const StackTable& table = builder_.trace().stacks;
    return table.frame(table.innermost(stack)).function;
  }

  // Only what a sample of ours needs goes into the trace. Callers have smaller numbers.
  StackId StackOf(uint32_t number) {
    unknown_.clear();
    for (uint32_t i = number; !stacks_[i].is_known; i = stacks_[i].caller) unknown_.push_back(i);
    for (; !unknown_.empty(); unknown_.pop_back()) {
      Stack& stack = stacks_[unknown_.back()];
      const Frame& frame = frames_[stack.frame];
      bool repaired = false;
      const std::string function = RepairUtf8(frame.function, &repaired);
      const std::string file = RepairUtf8(frame.file, &repaired);
      const FrameId id = builder_.AddFrame({function, file, frame.line, {}, 0});
      stack.id = builder_.AddStack(id, stacks_[stack.caller].id);
      stack.is_known = true;
    }
    return stacks_[number].id;
  }

  void CheckNowAndThen() {
    if (++items_ % kItemsACheck == 0) CheckMemory(most_memory_);
  }

  HostOwnership& ownership_;
  size_t audience_;
  int64_t base_ns_;
  TraceBuilder& builder_;
  StringId category_;
  const uint64_t most_memory_ = ReadableMemoryBytes();
  size_t items_ = 0;
  std::vector<OfProcess> processes_;
  std::vector<Thread> threads_;
  std::vector<Frame> frames_;
  std::vector<Stack> stacks_ = std::vector<Stack>(1);
  std::vector<uint32_t> unknown_;
};

}  // namespace

void AddStackSamples(const HostFile& file, HostOwnership& ownership, size_t audience,
                     bool takes_rest, int64_t base_monotonic_ns, TraceBuilder& builder) {
  SampleMaker maker(ownership, audience, base_monotonic_ns, builder);
  const int64_t damaged = DecodeStackFrames(file.frames, maker) + (file.whole ? 0 : 1);
  if (!takes_rest) return;
  for (const auto& [key, text] : maker.facts) builder.trace().environment.emplace_back(key, text);
  builder.quality().Count(
      "damaged_stack_samples", QualitySeverity::kDataLoss, damaged,
      file.path.filename().string() + ": samples around the damage are missing");
}

}  // namespace trainprof::recording
