#include "analysis/call_sites.h"

#include <gtest/gtest.h>

#include "tests/analysis/trace_script.h"

namespace trainprof {
namespace {

TEST(CallSites, ParsesFramesOfTorch) {
  Site site;
  ASSERT_TRUE(ParseFrame("resnet50_profiler_api.py(54): <module>", site));
  EXPECT_EQ(site.file, "resnet50_profiler_api.py");
  EXPECT_EQ(site.line, 54);
  EXPECT_EQ(site.function, "<module>");
  EXPECT_FALSE(ParseFrame("<built-in method run>", site));
  EXPECT_FALSE(ParseFrame("a.py(x): f", site));
}

TEST(CallSites, InstalledPackagesAreNobodysLineToChange) {
  EXPECT_FALSE(IsUserFrame("/venv/lib/python3.7/site-packages/torch/nn/modules.py(3): f"));
  EXPECT_FALSE(IsUserFrame("torch/nn/modules/module.py(1): _call_impl"));
  EXPECT_TRUE(IsUserFrame("/home/me/train.py(3): main"));
}

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

TEST(CallSites, MomentOutsideAllRangesHasNoPlace) {
  const Trace trace = TraceFromScript("thread 1\nop 10 20 aten::to\nop 40 50 aten::to");
  EXPECT_EQ(SiteFinder(trace).Find(TrackId{0}, TraceTime{30'000}).function, "");
}

}  // namespace
}  // namespace trainprof
