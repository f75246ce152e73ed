#include "analysis/host/call_sites.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

TEST(CallSites, RecordedPythonFramesWinOverNames) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    python 0 100 train.py(20): main
    python 10 90 torch/_tensor.py(5): item
    op 20 80 aten::item
    op 30 70 aten::_local_scalar_dense)");
  const Site site = SiteFinder(trace).Find(TrackId{0}, TraceTime{50'000});
  EXPECT_EQ(site.file, "train.py");
  EXPECT_EQ(site.line, 20);
  EXPECT_EQ(site.op, "aten::item");
}

TEST(CallSites, WithoutStacksTheUsersRangeNamesThePlace) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    step 0 100 step
    annotation 5 95 forward
    op 10 90 aten::to)");
  const Site site = SiteFinder(trace).Find(TrackId{0}, TraceTime{50'000});
  EXPECT_EQ(site.file, "");
  EXPECT_EQ(site.function, "forward");
  EXPECT_EQ(site.op, "aten::to");
}

Site SiteOfCall(const std::string& stack) {
  const Trace trace = TraceFromScript(
      "thread 1\nannotation 0 100 forward\ncall 10 20 cudaMemcpyAsync"
      " | corr=1 stack=" +
      stack);
  return SiteFinder(trace).FindCall(Row{0});
}

// Inlined headers and libraries stand between the call and the user's line; the outermost of them
// is what the user wrote.
TEST(CallSites, ANativeStackNamesTheUsersLineAndTheOperator) {
  const Site site = SiteOfCall(
      "/usr/lib/x86_64-linux-gnu/libcuda.so.1(+0x10);"
      "/opt/libtorch/lib/libc10_cuda.so(+0x5): c10::cuda::memcpy_and_sync(void*, long);"
      "/opt/libtorch/lib/libtorch_cpu.so(+0x9): at::_ops::item::call(at::Tensor const&);"
      "/opt/libtorch/include/ATen/core/TensorBody.h(4001): float at::Tensor::item<float>() const;"
      "/home/me/train.cpp(88): train_step(Net&, at::Tensor);/home/me/train.cpp(120): main;"
      "/lib/x86_64-linux-gnu/libc.so.6(+0x2724a): __libc_start_call_main");
  EXPECT_EQ(site.file, "/home/me/train.cpp");
  EXPECT_EQ(site.line, 88);
  EXPECT_EQ(site.function, "train_step");
  EXPECT_EQ(site.op, "at::Tensor::item");
}

TEST(CallSites, AProgramWithoutLinesNamesItsFunction) {
  const Site site = SiteOfCall(
      "/opt/libtorch/lib/libtorch_cpu.so(+0x9): at::Tensor::to(at::Device) const;"
      "/home/me/train(+0x1a2b): make_noise(int);/home/me/train(+0x99): main");
  EXPECT_EQ(site.file, "");
  EXPECT_EQ(site.function, "make_noise");
  EXPECT_EQ(site.op, "at::Tensor::to");
}

// Of a Python program, or one whose symbols are gone.
TEST(CallSites, AStackOfLibrariesAloneLeavesThePlaceToTheRanges) {
  for (const char* stack :
       {"0x7f00;/opt/libtorch/lib/libtorch_cpu.so(+0x9): at::_ops::item::call(at::Tensor const&);"
        "/usr/bin/python3.11(+0x5): _PyEval_EvalFrameDefault",
        "/home/me/train(+0x1a2b)", ";;;", "(+0x", "a(+0x1"}) {
    const Site site = SiteOfCall(stack);
    EXPECT_EQ(site.function, "forward") << stack;
    EXPECT_EQ(site.count, 1);
  }
}

TEST(CallSites, PlacesWithALineComeFirst) {
  std::vector<Site> sites = {
      {"", 0, "forward", "", 90}, {"b.cpp", 3, "f", "", 1}, {"a.cpp", 3, "f", "", 5}};
  SortSites(sites);
  EXPECT_EQ(sites[0].file, "a.cpp");
  EXPECT_EQ(sites[1].file, "b.cpp");
}

TEST(CallSites, MomentOutsideAllRangesHasNoPlace) {
  const Trace trace = TraceFromScript("thread 1\nop 10 20 aten::to\nop 40 50 aten::to");
  EXPECT_EQ(SiteFinder(trace).Find(TrackId{0}, TraceTime{30'000}).function, "");
}

TEST(CallSites, TheProfilersOwnStepIsNobodysLine) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    python 0 1000 train.py(60): main
    python 100 900 profiler.py(684): step
    annotation 100 900 prof.step()
    call 200 800 cudaDeviceSynchronize)");
  const Site site = SiteFinder(trace).FindCall(Row{0});
  EXPECT_EQ(site.file, "train.py");
  EXPECT_EQ(site.line, 60);
}

TEST(CallSites, PathsAreNormal) {
  const auto file = [](const std::string& frame) { return SiteOfCall(frame).file; };
  EXPECT_EQ(file("./src/../train.py(3): f"), "train.py");
  EXPECT_EQ(file("/build//x/./y/../train.cpp(3): f"), "/build/x/train.cpp");
  EXPECT_EQ(file("../train.py(3): f"), "../train.py");
  EXPECT_EQ(file("dbfs://a/b.py(3): f"), "dbfs://a/b.py");
}

// A tally is what AddSite() makes of each moment and each call by itself.
TEST(CallSites, ATallyCountsAsOneByOne) {
  const char* const kStacks[] = {"", " stack=/home/me/a.cpp(1): f", " stack=/home/me/b.cpp(2): g",
                                 " stack=/opt/libtorch/lib/libc10.so(+0x5): c10::h"};
  const char* const kCalls[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamWaitEvent"};
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](int64_t most) { return static_cast<int64_t>(random() % (most + 1)); };
    std::string script;
    for (int thread = 1; thread <= 2; ++thread) {
      script += fmt::format("thread {}\n", thread);
      for (int64_t at = 0; at < 2000; at += 20 + draw(60)) {
        script += fmt::format("{} {} {} {}\n", draw(1) ? "annotation" : "op", at, at + 15,
                              draw(2) ? "forward" : "aten::item");
        if (draw(1))
          script += fmt::format("python {} {} train.py({}): f\n", at + 1, at + 14, draw(3));
        if (draw(1)) {
          script += fmt::format("call {} {} {} | corr={}{}\n", at + 2, at + 9, kCalls[draw(2)],
                                at + 10000 * thread, kStacks[draw(3)]);
        }
      }
    }
    const Trace trace = TraceFromScript(script);
    const SiteFinder finder(trace);
    SiteTally tally(trace, finder);
    std::vector<Site> expected;
    int64_t at = 0;
    for (int i = 0; i < 300; ++i) {
      // In order for the most part, on one thread for a while.
      at = draw(20) == 0 ? draw(2100) : at + draw(30);
      const TrackId thread{static_cast<uint32_t>(i / 40 % 2)};
      if (draw(2) == 0 && trace.api.size() > 0) {
        const Row call{static_cast<uint32_t>(draw(static_cast<int64_t>(trace.api.size()) - 1))};
        tally.AddCall(call);
        AddSite(expected, finder.FindCall(call));
      } else {
        tally.Add(thread, TraceTime{at * 1000});
        AddSite(expected, finder.Find(thread, TraceTime{at * 1000}));
      }
    }
    EXPECT_EQ(std::move(tally).Take(), expected);
  }
}

}  // namespace
}  // namespace trainprof
