#include "analysis/host/openings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/host/call_sites.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// "train.cpp:88 Step::Wait (data_wait)" of the first range of that name.
std::string PlaceOf(const Trace& trace, std::string_view name) {
  for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
    if (trace.Text(trace.ranges.name[row]) != name) continue;
    const Site site = SiteFinder(trace).FindRange(Row{row});
    return fmt::format("{}:{} {} ({})", site.file, site.line, site.function, site.op);
  }
  return "no such range";
}

std::string WhereOpened(const std::string& script, std::string_view name) {
  return PlaceOf(TraceFromScript("thread 1\n" + script), name);
}

TEST(Openings, ARangeStandsAtTheLineThatOpensIt) {
  const std::string script =
      "annotation 0 10 data_wait | opened-at=/opt/libtorch/lib/libtorch.so(+0x5): nvtx;"
      "/me/train.cpp(88): Step::Wait(int);/me/train.cpp(12): main\n"
      "annotation 20 30 data_wait\n";
  EXPECT_EQ(WhereOpened(script, "data_wait"), "/me/train.cpp:88 Step::Wait (data_wait)");
}

TEST(Openings, AnUnknownOneIsFoundByWhatIsAroundIt) {
  EXPECT_EQ(WhereOpened("python 0 90 train.py(5): f\nannotation 1 10 data_wait\n", "data_wait"),
            "train.py:5 f ()");
  EXPECT_EQ(WhereOpened("annotation 1 10 data_wait\n", "data_wait"), ":0 data_wait ()");
}

// Its line is the same for all names; where it is called from is not.
TEST(Openings, AWrapperIsNoPlace) {
  const std::string script =
      "annotation 0 10 data_wait | opened-at=/me/u.cpp(7): Push;/me/u.cpp(9): Scope;/me/t.cpp(88): Wait\n"
      "annotation 20 30 forward | opened-at=/me/u.cpp(7): Push;/me/u.cpp(9): Scope;/me/t.cpp(101): Run\n";
  EXPECT_EQ(WhereOpened(script, "data_wait"), "/me/t.cpp:88 Wait (data_wait)");
  EXPECT_EQ(WhereOpened(script, "forward"), "/me/t.cpp:101 Run (forward)");
}

TEST(Openings, AConstructorIsNoPlaceThoughItIsCalledOnce) {
  EXPECT_EQ(
      WhereOpened(
          "annotation 0 10 wait | opened-at=/me/r.h(7): a::Range::Range(char const*);/me/t.cpp(8): f\n",
          "wait"),
      "/me/t.cpp:8 f (wait)");
  EXPECT_EQ(
      WhereOpened(
          "annotation 0 10 wait | opened-at=/me/r.h(7): Range<int>::Range(int);/me/t.cpp(8): f\n",
          "wait"),
      "/me/t.cpp:8 f (wait)");
  // Not every name of two parts is one, and there is nothing to go to from the outermost.
  EXPECT_EQ(
      WhereOpened("annotation 0 10 wait | opened-at=/me/r.h(7): data::Wait();/me/t.cpp(8): f\n",
                  "wait"),
      "/me/r.h:7 data::Wait (wait)");
  EXPECT_EQ(WhereOpened("annotation 0 10 wait | opened-at=/me/r.h(7): Range::Range()\n", "wait"),
            "/me/r.h:7 Range::Range (wait)");
}

// for (layer : layers) Range(layer.name): one line and one caller.
TEST(Openings, ALineThatOpensManyNamesItselfIsTheirPlace) {
  const std::string script =
      "annotation 0 10 layer 1 | opened-at=/me/net.cpp(40): Forward;/me/t.cpp(12): main\n"
      "annotation 20 30 layer 2 | opened-at=/me/net.cpp(40): Forward;/me/t.cpp(12): main\n";
  EXPECT_EQ(WhereOpened(script, "layer 2"), "/me/net.cpp:40 Forward (layer 2)");
}

TEST(Openings, SeveralLinesAreNoPlace) {
  const std::string script =
      "annotation 0 10 wait | opened-at=/me/t.cpp(88): Train\n"
      "annotation 20 30 wait | opened-at=/me/t.cpp(188): Validate\n";
  EXPECT_EQ(WhereOpened(script, "wait"), ":0 wait ()");
}

// What happens inside a range does not happen at the line that opens it.
TEST(Openings, AreNoPlaceOfCalls) {
  const Trace trace = TraceFromScript(
      "thread 1\nannotation 0 100 forward | opened-at=/me/t.cpp(88): f\ncall 10 20 cudaMalloc | corr=1\n");
  const Site site = SiteFinder(trace).FindCall(Row{0});
  EXPECT_EQ(site.file, "");
  EXPECT_EQ(site.function, "forward");
}

}  // namespace
}  // namespace trainprof
