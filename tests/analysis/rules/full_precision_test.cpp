#include <gtest/gtest.h>

#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// Steps of 1 ms on a GPU of that major compute capability: a kernel of that name for 0.8 of it, and another.
std::string StepsWith(std::string_view kernel, int compute_major) {
  return fmt::format(R"(
    device 0 108 {}
    thread 1
    repeat 12 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaLaunchKernel | corr=2
      call 5 995 cudaDeviceSynchronize
    end
    stream 0 7
    repeat 12 every 1000
      kernel 10 810 {} | corr=1
      kernel 811 990 elementwise | corr=2
    end)",
                     compute_major, kernel);
}

const Finding* FindingIn(const RankAnalysis& analysis) {
  for (const Finding& finding : analysis.findings) {
    if (finding.rule == "full-precision") return &finding;
  }
  return nullptr;
}

// A half of it at least, 15 of 16 at most, less what runs differ by.
TEST(FullPrecision, ProductsOnCudaCoresGainWhatTensorCoresAreFaster) {
  const RankAnalysis analysis =
      Analyze(TraceFromScript(StepsWith("cutlass_80_simt_sgemm_256x128_8x4_nt_align1", 9)));
  const Finding* const finding = FindingIn(analysis);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kWarning);
  EXPECT_NEAR(analysis.PerStepMs(finding->cost), 0.8, 1e-9);
  EXPECT_NEAR(finding->gain.low_ms_per_step, 0.4, 0.02);
  EXPECT_NEAR(finding->gain.high_ms_per_step, 0.75, 0.02);
  EXPECT_GT(finding->gain.expected_ms_per_step, 0.5);
  EXPECT_NE(finding->title.find("0.80 ms/step on CUDA cores, 82 % of"), std::string::npos)
      << finding->title;
  EXPECT_NE(finding->fix.find("bfloat16"), std::string::npos);
}

// It ended the report.
TEST(FullPrecision, OfAProductWhoseCallIsMissingNothingSaysWhereItWasLaunched) {
  std::string script = StepsWith("ampere_sgemm_128x64_tn", 8);
  const std::string call = "call 1 2 cudaLaunchKernel | corr=1";
  script.replace(script.find(call), call.size(), "");
  const RankAnalysis analysis = Analyze(TraceFromScript(script));
  const Finding* const finding = FindingIn(analysis);
  ASSERT_NE(finding, nullptr);
  EXPECT_TRUE(finding->where.empty());
}

TEST(FullPrecision, WhatUsesTensorCoresIsFine) {
  for (const std::string_view kernel :
       {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw",
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz",
        "sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc",
        "ampere_fp16_sgemm_fp16_128x32_nn", "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4",
        "ampere_bf16_s16816gemm_bf16_128x64_tn"}) {
    EXPECT_EQ(OutcomeOf("full-precision", StepsWith(kernel, 8)), "passed") << kernel;
  }
}

TEST(FullPrecision, OlderGpusHaveNoneAndVoltaHasThemForFloat16) {
  EXPECT_EQ(OutcomeOf("full-precision", StepsWith("maxwell_sgemm_128x64_nn", 6)), "passed");
  const RankAnalysis analysis =
      Analyze(TraceFromScript(StepsWith("volta_scudnn_128x64_relu_small_nn_v1", 7)));
  const Finding* const finding = FindingIn(analysis);
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->fix.find("float16"), std::string::npos);
  EXPECT_EQ(finding->fix.find("bfloat16"), std::string::npos);
  EXPECT_EQ(OutcomeOf("full-precision", StepsWith("ampere_sgemm_128x64_nn", 0)),
            "skipped: the trace does not say what GPU it is of");
}

TEST(FullPrecision, AFewOfThemMayBeSoForAReason) {
  EXPECT_EQ(OutcomeOf("full-precision", R"(
    device 0 108 8
    thread 1
    repeat 12 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaLaunchKernel | corr=2
    end
    stream 0 7
    repeat 12 every 1000
      kernel 10 100 ampere_sgemm_32x32_sliced1x4_tn | corr=1
      kernel 101 1000 ampere_bf16_s16816gemm_bf16_128x64_tn | corr=2
    end)"),
            "passed");
}

// Where the GPU waits for its input, faster kernels give next to nothing.
TEST(FullPrecision, ItIsWorthNothingWhereTheLoaderIsLate) {
  const RankAnalysis analysis = Analyze(TraceFromScript(R"(
    device 0 108 8
    thread 1
    repeat 12 every 10000
      step 0 10000 step
      annotation 0 9000 enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
      call 9001 9002 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 12 every 10000
      kernel 9010 9990 ampere_sgemm_128x64_nn | corr=1
    end)"));
  const Finding* const finding = FindingIn(analysis);
  ASSERT_NE(finding, nullptr);  // its cost is worth a note
  EXPECT_EQ(finding->severity, Severity::kNote);
  EXPECT_LT(finding->gain.expected_ms_per_step, 0.1);
  EXPECT_NE(analysis.findings.front().rule, "full-precision");
}

TEST(FullPrecision, OfAModelAtWorkNoLossIsSpokenOf) {
  for (const int major : {7, 9}) {
    std::string script = StepsWith("ampere_sgemm_128x64_tn", major);
    script.insert(script.find("call 1 2"), "op 0 3 vllm::rms_norm\n");
    const RankAnalysis analysis = Analyze(TraceFromScript(script));
    const Finding* const finding = FindingIn(analysis);
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->advice.find("loss"), std::string::npos);
    EXPECT_NE(finding->advice.find(major == 7 ? "in float16:" : "in bfloat16:"), std::string::npos)
        << finding->advice;
    EXPECT_EQ(finding->fix.find("criterion"), std::string::npos);
    EXPECT_NE((finding->advice + finding->fix).find("output = model(batch)"), std::string::npos);
  }
}

}  // namespace
}  // namespace trainprof
