// Kineto's spelling of stacks, and what the trace makes of it.
#include "trace/formats/chrome/stack_text.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/trace_text.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

TEST(StackText, AFrameHasALineOrAModulesPlaceOrItsTextAlone) {
  const FrameText line = ParseFrame("resnet50_profiler_api.py(54): <module>");
  EXPECT_EQ(line.file, "resnet50_profiler_api.py");
  EXPECT_EQ(line.line, 54);
  EXPECT_EQ(line.function, "<module>");
  const FrameText native = ParseFrame("/home/me/train(+0x1a2b): step(int)");
  EXPECT_EQ(native.module, "/home/me/train");
  EXPECT_EQ(native.offset, 0x1a2b);
  EXPECT_EQ(native.function, "step(int)");
  EXPECT_EQ(ParseFrame("a.so(+0x1)").module, "a.so");
  for (const char* text : {"<built-in method run>", "a.py(x): f", "(3): f", "(+0x1): f", "a(+0x",
                           "a(+0xzz): f", "a(+0x1)f", "0x7f00", "a.py(99999999999999999999): f"}) {
    const FrameText frame = ParseFrame(text);
    EXPECT_EQ(frame.function, text);
    EXPECT_EQ(frame.file, "") << text;
    EXPECT_EQ(frame.module, "") << text;
  }
}

std::string Spelled(const std::string& text) {
  TraceBuilder builder;
  const StackId stack = StackTexts(builder).Of(builder.Intern(text));
  return StackSpelled(std::move(builder).Build(), stack);
}

TEST(StackText, WhatIsReadIsSpelledTheSame) {
  for (const char* text :
       {"f", "torch/nn/linear.py(114): forward;train.py(12): step",
        "a.so(+0x10);b.so(+0x5): c10::f(int);/x/t.cpp(3): g;0x1234;<built-in method run>"}) {
    EXPECT_EQ(Spelled(text), text);
  }
  EXPECT_EQ(Spelled(";a.py(1): f;;g;"), "a.py(1): f;g");
  EXPECT_EQ(Spelled(";;"), "");
}

TEST(StackText, ASemicolonWithinAFrameBecomesAComma) {
  TraceBuilder builder;
  const FrameId frame =
      builder.AddFrame({.function = "f", .file = "a;b.cpp", .line = 3, .module = {}});
  const StackId stack = builder.AddStack(frame, kNoStack);
  EXPECT_EQ(StackSpelled(builder.trace(), stack), "a,b.cpp(3): f");
}

TEST(StackText, EqualFramesAndCallersAreStoredOnce) {
  TraceBuilder builder;
  StackTexts texts(builder);
  const StackId first = texts.Of(builder.Intern("a.py(1): f;c.py(3): main"));
  const StackId second = texts.Of(builder.Intern("b.py(2): g;c.py(3): main"));
  EXPECT_EQ(texts.Of(builder.Intern("b.py(2): g;c.py(3): main")), second);
  const StackTable& stacks = builder.trace().stacks;
  EXPECT_EQ(stacks.size(), 3u);
  EXPECT_EQ(stacks.caller(first), stacks.caller(second));
  EXPECT_EQ(stacks.caller(stacks.caller(first)), kNoStack);
  EXPECT_EQ(texts.OfFrame(builder.Intern("c.py(3): main")), stacks.caller(first));
}

// The argument itself stays, for export.
TEST(StackText, RangesCallsAndPointsOfAFileHaveTheirStacks) {
  Result<Trace> read = ImportText(R"json({"traceEvents": [
    {"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":0,"dur":9,"args":{"Call stack":"a.py(1): f;<built-in>","External id":3}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaMalloc","pid":1,"tid":1,"ts":1,"dur":1,"args":{"Call stack":"b.py(2): g"}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaFree","pid":1,"tid":1,"ts":3,"dur":1,"args":{"Call stack":7}},
    {"ph":"X","cat":"python_function","name":"train.py(5): h","pid":1,"tid":1,"ts":5,"dur":1,"args":{}},
    {"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":6,"s":"t","args":{"Call stack":"a.py(1): f"}}]})json");
  ASSERT_TRUE(read.ok()) << read.error();
  const Trace& trace = read.value();
  EXPECT_EQ(StackSpelled(trace, trace.ranges.stack[0]), "a.py(1): f;<built-in>");
  EXPECT_EQ(StackSpelled(trace, trace.ranges.stack[1]), "train.py(5): h");
  EXPECT_EQ(StackSpelled(trace, trace.api.stack[0]), "b.py(2): g");
  EXPECT_EQ(trace.api.stack[1], kNoStack);
  EXPECT_EQ(StackSpelled(trace, trace.instants.stack[0]), "a.py(1): f");
  EXPECT_TRUE(trace.args.Find(trace.api.args[0], trace.strings.Find(kCallStackKey)));
}

// Each once, on the first ranges of their name; steps have another name in an export.
TEST(StackText, WhereRangesAreOpenedComesBackFromAnExport) {
  TraceBuilder builder;
  builder.trace().source = SourceKind::kRecording;
  const ProcessId process = builder.FindOrAddProcess(1);
  const TrackId thread = builder.FindOrAddThread(process, 1);
  StackTexts stacks(builder);
  for (const char* place : {"train.py(12): a;train.py(3): main", "train.py(14): b"}) {
    builder.AddOpening({builder.Intern("wait"), process, stacks.Of(builder.Intern(place))});
  }
  builder.AddOpening({builder.Intern("never"), process, stacks.Of(builder.Intern("a.py(1): f"))});
  for (int64_t at = 0; at < 5; ++at) {
    builder.AddRange({.begin = TraceTime{at * 10},
                      .end = TraceTime{at * 10 + 5},
                      .name = builder.Intern(at == 0 ? "forward" : "wait"),
                      .track = thread},
                     RangeKind::kUserAnnotation);
  }
  const TemporaryFile out("out.json");
  ASSERT_TRUE(ExportTrace(std::move(builder).Build(), out.path()).ok());
  const Result<Trace> read = ImportTrace(out.path());
  ASSERT_TRUE(read.ok()) << read.error();
  const Trace& trace = read.value();
  std::set<std::string> places;
  for (const Opening& opening : trace.openings) {
    EXPECT_EQ(trace.Text(opening.name), "wait");
    EXPECT_EQ(trace.processes[Index(opening.process)].pid, 1);
    places.insert(StackSpelled(trace, opening.stack));
  }
  EXPECT_EQ(places,
            (std::set<std::string>{"train.py(12): a;train.py(3): main", "train.py(14): b"}));
  for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
    EXPECT_EQ(trace.ranges.stack[row], kNoStack);
  }
}

// On whatever row they are: of a recording only calls have some, of another importer's trace any
// may.
TEST(StackText, StacksOfOurOwnRowsComeBackFromAnExport) {
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  StackTexts stacks(builder);
  Event event{.begin = TraceTime{0}, .end = TraceTime{900}, .track = thread};
  const auto with = [&](const char* name, const char* stack) {
    event.name = builder.Intern(name);
    event.stack = stacks.Of(builder.Intern(stack));
    return event;
  };
  builder.AddRange(with("aten::item", "train.py(12): step;train.py(3): main"), RangeKind::kCpuOp);
  builder.AddApi(with("cudaMalloc", "train.py(13): step"), ApiKind::kAllocate, 1);
  builder.AddInstant(with("[memory]", "train.py(14): step"), 't');
  builder.trace().source = SourceKind::kRecording;
  const Trace trace = std::move(builder).Build();
  const TemporaryFile out("out.json");
  ASSERT_TRUE(ExportTrace(trace, out.path()).ok());
  const Result<Trace> again = ImportTrace(out.path());
  ASSERT_TRUE(again.ok()) << again.error();
  const Trace& back = again.value();
  EXPECT_EQ(StackSpelled(back, back.ranges.stack[0]), "train.py(12): step;train.py(3): main");
  EXPECT_EQ(StackSpelled(back, back.api.stack[0]), "train.py(13): step");
  EXPECT_EQ(StackSpelled(back, back.instants.stack[0]), "train.py(14): step");
}

}  // namespace
}  // namespace trainprof
