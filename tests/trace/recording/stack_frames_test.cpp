// The frames of stack samples: what is encoded comes back, damage and hostile bytes are survived.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "tests/support/sanitized.h"
#include "trace/recording/files/stack_encoder.h"

namespace trainprof::testing {
namespace {

using namespace recording;

// What a decoder said, a line a sample: "1000 python 12/13 running 20: inner x.py:3 < main x.py:9".
class StackListing : public StackSink {
 public:
  void OnKey() override {
    ++keys;
    processes_.clear();
    threads_.clear();
    frames_.clear();
    stacks_.assign(1, {});
  }
  void OnProcess(const HostEntity& process) override {
    processes_.push_back(process.text + " " + std::to_string(process.number));
    parents.push_back(process.parent);
  }
  void OnThread(uint32_t process, int64_t tid, std::string_view name) override {
    threads_.push_back(processes_.at(process) + "/" + std::to_string(tid) + " " +
                       std::string(name));
  }
  void OnFrame(std::string_view function, std::string_view file, int64_t line) override {
    frames_.push_back(std::string(function) + " " + std::string(file) + ":" + std::to_string(line));
  }
  void OnStack(uint32_t caller, uint32_t frame) override {
    const std::string& outer = stacks_.at(caller);
    stacks_.push_back(frames_.at(frame) + (outer.empty() ? "" : " < " + outer));
    // A hostile chain would double itself.
    if (stacks_.back().size() > 4096) stacks_.back().resize(4096);
  }
  void OnSample(const Sample& sample) override {
    static const char* const kStates[] = {"unknown", "running", "waiting"};
    lines.push_back(std::to_string(sample.monotonic_ns) + " " + threads_.at(sample.thread) + " " +
                    kStates[static_cast<size_t>(sample.state)] + " " +
                    std::to_string(sample.weight_ns) + ": " + stacks_.at(sample.stack));
  }
  void OnFact(std::string_view key, std::string_view text) override {
    lines.push_back(std::string(key) + " is " + std::string(text));
  }

  int keys = 0;
  std::vector<std::string> lines;
  std::vector<int64_t> parents;

 private:
  std::vector<std::string> processes_;
  std::vector<std::string> threads_;
  std::vector<std::string> frames_;
  std::vector<std::string> stacks_ = std::vector<std::string>(1);
};

void AppendFrame(std::vector<char>& file, std::span<const char> frame) {
  for (const char byte : frame) file.push_back(byte);
}

TEST(StackFrames, SayWhatWasSampled) {
  StackEncoder encoder;
  EXPECT_TRUE(encoder.TakeFrame().empty());
  const uint32_t process = encoder.AddProcess({HostEntityKind::kProcess, 12, 1, 99, "python"});
  const uint32_t thread = encoder.AddThread(process, 13, "loader");
  const uint32_t chain[] = {encoder.AddFrame("inner", "x.py", 3),
                            encoder.AddFrame("main", "x.py", 9)};
  EXPECT_EQ(encoder.AddFrame("main", "x.py", 9), chain[1]);
  std::vector<char> file;
  encoder.Sample(1000, thread, ThreadStateCode::kRunning, 20, chain);
  AppendFrame(file, encoder.TakeFrame());
  const size_t first_bytes = file.size();
  encoder.Sample(1020, thread, ThreadStateCode::kWaiting, 20, chain);
  encoder.Sample(1040, thread, ThreadStateCode::kUnknown, 20, {});
  encoder.Sample(1060, thread, ThreadStateCode::kRunning, 20, std::span(chain).subspan(1));
  encoder.Fact("stack sampler", "cheap");
  AppendFrame(file, encoder.TakeFrame());
  EXPECT_LE(file.size() - first_bytes, 64u);  // nothing is said twice
  EXPECT_TRUE(encoder.TakeFrame().empty());
  StackListing listing;
  EXPECT_EQ(DecodeStackFrames(file, listing), 0);
  EXPECT_EQ(listing.lines,
            (std::vector<std::string>{
                "1000 python 12/13 loader running 20: inner x.py:3 < main x.py:9",
                "1020 python 12/13 loader waiting 20: inner x.py:3 < main x.py:9",
                "1040 python 12/13 loader unknown 20: ",
                "1060 python 12/13 loader running 20: main x.py:9", "stack sampler is cheap"}));
}

// A run of random threads, stacks, ends of processes; some two key frames long.
struct RandomRun {
  explicit RandomRun(uint32_t seed) {
    std::mt19937 random(seed);
    StackEncoder encoder;
    std::vector<uint32_t> processes, threads;
    std::vector<std::string> thread_text;
    std::vector<uint32_t> frames;
    std::vector<std::string> frame_text;
    int64_t now = 1'000'000;
    for (int i = 0; i < 1500; ++i) {
      if (i % 100 == 0) {
        const int64_t pid = 100 + i;
        processes.push_back(
            encoder.AddProcess({HostEntityKind::kProcess, pid, 1, 5, "p" + std::to_string(i)}));
        for (int t = 0; t < 3; ++t) {
          threads.push_back(encoder.AddThread(processes.back(), pid + t, "t"));
          thread_text.push_back("p" + std::to_string(i) + " " + std::to_string(pid) + "/" +
                                std::to_string(pid + t) + " t");
        }
        if (processes.size() > 2) encoder.EndProcess(processes[processes.size() - 3]);
      }
      if (i % 7 == 0) {
        const std::string name = "f" + std::to_string(random() % 40);
        frames.push_back(encoder.AddFrame(name, name + ".py", i));
        frame_text.push_back(name + " " + name + ".py:" + std::to_string(i));
      }
      std::vector<uint32_t> stack(random() % 6);
      std::string text;
      for (uint32_t& frame : stack) {
        const size_t which = random() % frames.size();
        frame = frames[which];
        text += (text.empty() ? "" : " < ") + frame_text[which];
      }
      now += random() % 1000;
      const size_t thread = threads.size() - 1 - random() % std::min<size_t>(threads.size(), 6);
      encoder.Sample(now, threads[thread], ThreadStateCode::kRunning, i, stack);
      lines.push_back(std::to_string(now) + " " + thread_text[thread] + " running " +
                      std::to_string(i) + ": " + text);
      if (random() % 2 != 0) AppendFrame(file, encoder.TakeFrame());
    }
    AppendFrame(file, encoder.TakeFrame());
  }
  std::vector<char> file;
  std::vector<std::string> lines;
};

TEST(StackFrames, RandomRunsComeBackEqual) {
  for (uint32_t seed = 0; seed < static_cast<uint32_t>(Rounds(20)); ++seed) {
    const RandomRun run(seed);
    StackListing listing;
    ASSERT_EQ(DecodeStackFrames(run.file, listing), 0);
    ASSERT_EQ(listing.lines, run.lines);
    ASSERT_GE(listing.keys, 2);
  }
}

// As a kill of the sampler leaves it, wherever in a frame.
TEST(StackFrames, ATornTailIsNoDamage) {
  const RandomRun run(1);
  for (size_t size = 0; size < run.file.size(); size += 97) {
    StackListing listing;
    ASSERT_EQ(DecodeStackFrames(std::span(run.file).first(size), listing), 0);
    ASSERT_LE(listing.lines.size(), run.lines.size());
    for (size_t i = 0; i < listing.lines.size(); ++i) ASSERT_EQ(listing.lines[i], run.lines[i]);
  }
}

// Nothing that a lost definition could have been part of is taken for something else.
TEST(StackFrames, DamageLosesSamplesAndChangesNone) {
  const RandomRun run(2);
  const std::set<std::string> good(run.lines.begin(), run.lines.end());
  std::mt19937 random(3);
  for (int i = 0; i < Rounds(300); ++i) {
    std::vector<char> file = run.file;
    file[random() % file.size()] ^= static_cast<char>(1 + random() % 255);
    StackListing listing;
    const int64_t damaged = DecodeStackFrames(file, listing);
    if (listing.lines.size() < run.lines.size()) {
      // A changed length at the very end is a torn tail.
      ASSERT_TRUE(damaged == 1 || listing.lines.back() != run.lines.back());
    }
    for (const std::string& line : listing.lines) ASSERT_TRUE(good.contains(line)) << line;
  }
}

// Payloads with good checks and any words inside: numbers that were defined, or nothing.
TEST(StackFrames, HostilePayloadsAreSurvived) {
  std::mt19937 random(4);
  for (int i = 0; i < Rounds(20'000); ++i) {
    std::vector<char> file;
    for (int f = 0; f < 3; ++f) {
      FrameWriter writer(kStackStream);
      writer.Begin();
      const size_t bytes = random() % 120;
      for (size_t b = 0; b < bytes; ++b) {
        writer.Byte(static_cast<uint8_t>(random() % 3 == 0 ? random() : random() % 8));
      }
      AppendFrame(file, writer.Finish(f == 0));
    }
    StackListing listing;
    DecodeStackFrames(file, listing);
    ASSERT_LE(listing.lines.size(), 200u);
  }
}

TEST(StackFrames, OfOtherStreamsAreLeftOut) {
  FrameWriter writer(kProcStream);
  writer.Begin();
  for (int i = 0; i < 20; ++i) writer.Byte(static_cast<uint8_t>(StackItem::kSample));
  std::vector<char> file;
  AppendFrame(file, writer.Finish(true));
  StackListing listing;
  EXPECT_EQ(DecodeStackFrames(file, listing), 0);
  EXPECT_EQ(listing.keys, 0);
}

}  // namespace
}  // namespace trainprof::testing
