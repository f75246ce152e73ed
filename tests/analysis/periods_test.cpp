// Steps that nobody named: what is an iteration of a loop, and what is a layer of a model.
#include "analysis/steps/periods.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/steps/steps.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// `iterations` of so many layers of three kernels; between them what an iteration has and a layer
// has not, where `frame` says so: an embedding, and a copy of the result to the host.
std::string Model(int iterations, int layers, bool frame, int layer_us = 100) {
  std::string host = "thread 1\n";
  std::string device = "stream 0 7\n";
  int at = 100;
  int id = 1;
  const auto launch = [&](std::string_view kind, std::string_view name, int us) {
    host += fmt::format("call {} {} {} | corr={}\n", at - 50, at - 48,
                        kind == "copy" ? "cudaMemcpyAsync" : "cudaLaunchKernel", id);
    device += fmt::format("{} {} {} {} | corr={}\n", kind, at, at + us, name, id++);
    at += us;
  };
  for (int i = 0; i < iterations; ++i) {
    if (frame) launch("kernel", "embedding", 10);
    for (int layer = 0; layer < layers; ++layer) {
      launch("kernel", "norm", layer_us / 10);
      launch("kernel", "attention", layer_us / 2);
      launch("kernel", "scores", layer_us / 10);
      launch("kernel", "mlp", layer_us / 4);
    }
    if (frame) launch("copy", "Memcpy DtoH (Device -> Pageable)", 5);
  }
  return host + device;
}

TEST(Periods, AnIterationOfAModelIsAStep) {
  const Steps steps = FindSteps(TraceFromScript(Model(8, 12, true)));
  EXPECT_EQ(steps.source, StepSource::kInferred);
  ASSERT_EQ(steps.count(), 7u);
  EXPECT_EQ(steps.Median(), Microseconds(10 + 12 * 95 + 5));
}

TEST(Periods, LayersOfOneIterationAreNone) {
  EXPECT_EQ(FindSteps(TraceFromScript(Model(1, 32, true))).source, StepSource::kNone);
  EXPECT_EQ(FindSteps(TraceFromScript(Model(1, 32, false))).source, StepSource::kNone);
}

TEST(Periods, LayersOfTooFewIterationsToTellAreNone) {
  EXPECT_EQ(FindSteps(TraceFromScript(Model(2, 32, true))).source, StepSource::kNone);
}

// Of a server whose iterations differ in length, the layers alone recur.
TEST(Periods, LayersOfIterationsThatDifferAreNone) {
  std::string script;
  std::string host = "thread 1\n";
  std::string device = "stream 0 7\n";
  int at = 100;
  int id = 1;
  for (const int layers : {30, 7, 12, 28, 3, 19}) {
    for (int kernel = 0; kernel < 4 * layers; ++kernel) {
      host += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", at - 50, at - 48, id);
      device += fmt::format("kernel {} {} k{} | corr={}\n", at, at + 10, kernel % 4, id++);
      at += 10;
    }
    host += fmt::format("call {} {} cudaMemcpyAsync | corr={}\n", at - 50, at - 48, id);
    device +=
        fmt::format("copy {} {} Memcpy DtoH (Device -> Pageable) | corr={}\n", at, at + 5, id++);
    at += 2000;
  }
  EXPECT_EQ(FindSteps(TraceFromScript(host + device)).source, StepSource::kNone);
}

// As in a trace of which some part recurs: no step of 0.25 ms in a decode of 465 ms.
TEST(Periods, WhatIsASmallPartOfTheTraceIsNone) {
  std::string script = Model(6, 1, true);
  script += "kernel 100000 200000 other\n";
  EXPECT_EQ(FindSteps(TraceFromScript(script)).source, StepSource::kNone);
}

// `forwards` of so many layers that wait for the host each, to route to experts.
std::string Routed(int forwards, int layers) {
  std::string host = "thread 1\n";
  std::string device = "stream 0 7\n";
  int at = 100;
  int id = 1;
  const auto launch = [&](std::string_view kind, std::string_view name) {
    host += fmt::format("call {} {} {} | corr={}\n", at - 10, at - 8,
                        kind == "copy" ? "cudaMemcpyAsync" : "cudaLaunchKernel", id);
    device += fmt::format("{} {} {} {} | corr={}\n", kind, at, at + 10, name, id++);
    at += 10;
  };
  for (int i = 0; i < forwards; ++i) {
    launch("kernel", "embedding");
    for (int layer = 0; layer < layers; ++layer) {
      for (const char* kernel : {"norm", "attention", "gate", "experts"}) launch("kernel", kernel);
      launch("copy", "Memcpy DtoH (Device -> Pageable)");
    }
    launch("kernel", "head");
    launch("copy", "Memcpy DtoH (Device -> Pageable)");
    at += 300;
  }
  return host + device;
}

TEST(Periods, LayersThatWaitForTheHostAreNone) {
  EXPECT_EQ(FindSteps(TraceFromScript(Routed(1, 35))).source, StepSource::kNone);
  EXPECT_EQ(FindSteps(TraceFromScript(Routed(2, 35))).source, StepSource::kNone);
}

TEST(Periods, ThreeLongIterationsAreSteps) {
  const Steps steps = FindSteps(TraceFromScript(Routed(3, 35)));
  EXPECT_EQ(steps.source, StepSource::kInferred);
  ASSERT_EQ(steps.count(), 2u);
  EXPECT_EQ(steps.steps[0].range.Length(), Microseconds(10 * (3 + 35 * 5) + 300));
}

// As of a denoiser that never waits for the device.
TEST(Periods, WhatHoldsLayersItselfIsAStep) {
  std::string script = Model(8, 24, true);
  for (size_t at = 0; (at = script.find("copy ", at)) != std::string::npos;) {
    script.replace(at, 5, "kernel ");
  }
  for (size_t at = 0;
       (at = script.find("Memcpy DtoH (Device -> Pageable)", at)) != std::string::npos;) {
    script.replace(at, 32, "head");
  }
  EXPECT_EQ(FindSteps(TraceFromScript(script)).count(), 7u);
}

TEST(Periods, AWaitOfTheHostInEachShowsALoop) {
  const std::string loop = R"(
    thread 1
    repeat 6 every 100
      call 0 2 cudaLaunchKernel | corr=1
      call 2 4 cudaLaunchKernel | corr=2
      call 4 6 cudaLaunchKernel | corr=3
      call 6 8 cudaLaunchKernel | corr=4
      WAIT
    end
    stream 0 7
    repeat 6 every 100
      kernel 10 30 a | corr=1
      kernel 30 50 b | corr=2
      kernel 50 70 a | corr=3
      kernel 70 80 c | corr=4
    end)";
  const auto with = [&](std::string_view wait) {
    std::string script = loop;
    return FindSteps(TraceFromScript(script.replace(script.find("WAIT"), 4, wait)));
  };
  EXPECT_EQ(with("call 9 90 cudaStreamSynchronize").source, StepSource::kInferred);
  EXPECT_EQ(with("call 9 90 cudaFuncGetAttributes").source, StepSource::kNone);
}

// A graph that is launched once: the layers in it recur, the host does not.
TEST(Periods, WhatOneLaunchOfAGraphDoesIsNoLoop) {
  EXPECT_EQ(FindSteps(TraceFromScript(R"(
    thread 1
    call 0 5 cudaGraphLaunch | corr=1
    stream 0 7
    repeat 20 every 100
      kernel 10 40 a
      kernel 40 60 b
      copy 60 70 Memcpy HtoD (Pinned -> Device) | bytes=64
      kernel 70 100 d
    end
    kernel 3000 3001 last | corr=1)"))
                .source,
            StepSource::kInferred);  // without launches nothing is said against it
  std::string script = "thread 1\ncall 0 5 cudaGraphLaunch | corr=1\nstream 0 7\n";
  for (int i = 0; i < 20; ++i) {
    const int at = 10 + 100 * i;
    script += fmt::format(
        "kernel {} {} a | corr=1\nkernel {} {} b | corr=1\ncopy {} {} Memcpy HtoD (Pinned -> "
        "Device) | corr=1 bytes=64\nkernel {} {} d | corr=1\n",
        at, at + 30, at + 30, at + 50, at + 50, at + 60, at + 60, at + 90);
  }
  EXPECT_EQ(FindSteps(TraceFromScript(script)).source, StepSource::kNone);
}

}  // namespace
}  // namespace trainprof
