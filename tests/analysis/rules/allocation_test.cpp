#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

std::string AllocationAdviceOf(std::string_view script) {
  for (const Finding& finding : Analyze(TraceFromScript(script)).findings) {
    if (finding.rule == "allocation") return finding.advice;
  }
  return "";
}

TEST(Allocation, MemoryOfTheDriverInEachStep) {
  constexpr char kEachStep[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 0 200 cudaMalloc | corr=9
      call 210 220 cudaLaunchKernel | corr=1
      call 700 990 cudaFree
    end
    stream 0 7
    repeat 5 every 1000
      kernel 225 700 gemm | corr=1
    end)";
  // Of the first of the five steps too little is known, the second may be what start-up asks for; behind the last kernel nothing counts.
  EXPECT_EQ(OutcomeOf("allocation", kEachStep).substr(0, 24), "error count=6 cost=0.236");
  EXPECT_NE(AllocationAdviceOf(kEachStep).find("Allocate once before the loop"), std::string::npos);
}

TEST(Allocation, WhatTheFirstStepAsksForIsStartUp) {
  EXPECT_EQ(OutcomeOf("allocation", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 210 220 cudaLaunchKernel | corr=1
    end
    call 0 200 cudaMalloc
    call 1000 1200 cudaMalloc
    stream 0 7
    repeat 5 every 1000
      kernel 225 1000 gemm | corr=1
    end)"),
            "passed");
}

TEST(Allocation, ABurstOfFreesWithAnAllocationBehindIsARetry) {
  const std::string advice = AllocationAdviceOf(R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 0 100 cudaFree
      call 100 200 cudaFree
      call 210 290 cudaMalloc
      call 300 310 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 1000
      kernel 315 1000 gemm | corr=1
    end)");
  EXPECT_NE(advice.find("4 times the allocator gave its cached blocks back and asked again"),
            std::string::npos)
      << advice;
}

TEST(Allocation, EmptyCacheAndPinnedMemoryAreNamed) {
  const std::string advice = AllocationAdviceOf(R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      python 0 200 torch/cuda/memory.py(200): empty_cache
      call 0 190 cudaFree
      call 200 290 cudaHostAlloc
      call 300 310 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 1000
      kernel 315 1000 gemm | corr=1
    end)");
  EXPECT_NE(advice.find("empty_cache() gives cached memory back"), std::string::npos) << advice;
  EXPECT_NE(advice.find("Pinned memory is slow to make"), std::string::npos) << advice;
}

TEST(Allocation, WithoutStepsItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("allocation", R"(
    thread 1
    call 0 200 cudaMalloc
    call 210 220 cudaLaunchKernel | corr=1
    stream 0 7
    kernel 225 700 gemm | corr=1)"),
            "skipped: no steps were found: what start-up allocates looks the same");
}

}  // namespace
}  // namespace trainprof
