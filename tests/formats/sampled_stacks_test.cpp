// Sampled stacks as other tools read them: the files that a small trace must give.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/scratch_folder.h"
#include "trace/build/trace_builder.h"
#include "trace/formats/exporter.h"

namespace trainprof::testing {
namespace {

Trace SmallTrace() {
  TraceBuilder builder;
  builder.trace().path = "run";
  const ProcessId process = builder.FindOrAddProcess(12);
  builder.process(process).name = builder.Intern("python");
  const TrackId main = builder.FindOrAddThread(process, 12);
  const TrackId loader = builder.FindOrAddThread(process, 13);
  builder.track(loader).name = builder.Intern("load;er");
  const auto decide = [](const char* function, int64_t line) {
    return FrameText{function, "train \"x\".py", line, {}, 0};
  };
  const StackId outer = builder.AddStack(builder.AddFrame(decide("main", 40)), kNoStack);
  const StackId inner = builder.AddStack(builder.AddFrame(decide("a;b\n", 7)), outer);
  const auto add = [&](int64_t ns, TrackId track, StackId stack, int64_t weight) {
    builder.AddRow(builder.trace().samples,
                   Event{.begin = TraceTime{ns}, .end = TraceTime{ns}, .track = track},
                   kEmptyString, ThreadState::kRunning, stack, weight);
  };
  add(30'000, main, outer, 20'000);
  add(10'000, main, inner, 10'000);
  add(60'000, main, inner, 30'000);
  add(70'000, main, kNoStack, 5'000);
  add(20'000, loader, outer, 20'999);
  return std::move(builder).Build();
}

std::string ExportedAs(const Trace& trace, const char* name) {
  const ScratchFolder folder;
  const Result<void> written = ExportTrace(trace, (folder / name).string());
  EXPECT_TRUE(written.ok()) << written.error();
  const std::vector<char> bytes = ReadBytes(folder / name);
  return {bytes.begin(), bytes.end()};
}

TEST(Collapsed, HasALineForEachStackOfAThread) {
  EXPECT_EQ(ExportedAs(SmallTrace(), "x.collapsed"),
            "python 12 5\n"
            "python 12;main (train \"x\".py:40) 20\n"
            "python 12;main (train \"x\".py:40);a,b  (train \"x\".py:7) 40\n"
            "python 12, thread 13 (load,er);main (train \"x\".py:40) 20\n");
  EXPECT_EQ(ExportedAs(SmallTrace(), "x.folded"), ExportedAs(SmallTrace(), "x.collapsed"));
}

TEST(Speedscope, HasAProfileForEachThread) {
  const auto json = nlohmann::json::parse(ExportedAs(SmallTrace(), "x.speedscope.json"));
  EXPECT_EQ(json.at("$schema"), "https://www.speedscope.app/file-format-schema.json");
  const auto& frames = json.at("shared").at("frames");
  ASSERT_EQ(frames.size(), 2u);
  ASSERT_EQ(json.at("profiles").size(), 2u);
  const auto& main = json.at("profiles").at(0);
  EXPECT_EQ(main.at("type"), "sampled");
  EXPECT_EQ(main.at("name"), "python 12");
  EXPECT_EQ(main.at("unit"), "nanoseconds");
  EXPECT_EQ(main.at("startValue"), 0);
  EXPECT_EQ(main.at("endValue"), 65'000);
  EXPECT_EQ(main.at("weights"), nlohmann::json({10'000, 20'000, 30'000, 5'000}));
  std::vector<std::string> stacks;
  for (const auto& sample : main.at("samples")) {
    std::string text;
    for (const auto& frame : sample) {
      const auto& of = frames.at(frame.get<size_t>());
      EXPECT_EQ(of.at("file"), "train \"x\".py");
      text += of.at("name").get<std::string>() + ":" + of.at("line").dump() + " ";
    }
    stacks.push_back(text);
  }
  EXPECT_EQ(stacks,
            (std::vector<std::string>{"main:40 a;b\n:7 ", "main:40 ", "main:40 a;b\n:7 ", ""}));
}

TEST(SampledStacks, OfATraceWithoutThemAreAnErrorThatSaysSo) {
  const ScratchFolder folder;
  for (const char* name : {"x.collapsed", "x.speedscope.json"}) {
    const Result<void> written = ExportTrace(Trace{}, (folder / name).string());
    ASSERT_FALSE(written.ok());
    EXPECT_NE(written.error().find("no samples of stacks"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder / name));
  }
}

// ".speedscope.json" ends like Chrome's ".json", too.
TEST(SampledStacks, TheLongestEndingDecides) {
  EXPECT_EQ(ExportedAs(SmallTrace(), "x.json").find("speedscope"), std::string::npos);
  EXPECT_NE(ExportedAs(SmallTrace(), "x.speedscope.json").find("speedscope"), std::string::npos);
}

}  // namespace
}  // namespace trainprof::testing
