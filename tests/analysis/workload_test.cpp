#include "analysis/steps/workload.h"

#include <gtest/gtest.h>

#include "analysis/job/analysis.h"
#include "analysis/job/verdict.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

Workload Of(std::string_view events) {
  const Trace trace = TraceFromScript("thread 1\nstep 0 1000 step\n" + std::string(events) +
                                      "\ncall 1 5 cudaLaunchKernel | corr=1\n"
                                      "stream 0 7\nkernel 10 900 gemm | corr=1");
  return WorkloadOf(trace, FindSteps(trace));
}

TEST(Workload, ABackwardPassOrAnOptimizerIsTraining) {
  EXPECT_EQ(Of("op 0 10 aten::mm\nop 10 20 MmBackward0"), Workload::kTraining);
  EXPECT_EQ(Of("annotation 10 20 backward"), Workload::kTraining);
  EXPECT_EQ(Of("annotation 10 20 Optimizer.step#SGD.step"), Workload::kTraining);
  EXPECT_EQ(Of("op 0 10 vllm::unified_attention\nop 10 20 aten::mm_backward"),
            Workload::kTraining);  // a server within a loop of reinforcement learning
}

TEST(Workload, OperatorsWithoutABackwardPassAreInference) {
  EXPECT_EQ(Of("op 0 10 aten::mm"), Workload::kInference);
}

TEST(Workload, AServersOwnNamesAreInference) {
  EXPECT_EQ(Of("annotation 0 10 step[DECODE bs=8]"), Workload::kInference);
  EXPECT_EQ(Of("op 0 10 vllm::unified_attention"), Workload::kInference);
  EXPECT_EQ(Of("annotation 0 10 IExecutionContext::enqueueV3"), Workload::kInference);
}

TEST(Workload, AServersFunctionsAreInference) {
  EXPECT_EQ(Of("python 0 10 /sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py(9): run"),
            Workload::kInference);
  EXPECT_EQ(Of("python 0 10 vllm/v1/worker/gpu_model_runner.py(9): execute\n"
               "op 10 20 MmBackward0"),
            Workload::kTraining);
  // What an operator is called is looked at, though a function was met that is called so.
  EXPECT_EQ(Of("python 0 10 backward\nop 10 20 backward"), Workload::kTraining);
}

// SGLang copies to several tensors at once.
TEST(Workload, AKernelOfManyTensorsIsNoOptimizersWhereAServerRuns) {
  const auto of = [](std::string_view function) {
    const Trace trace =
        TraceFromScript("thread 1\nstep 0 1000 step\npython 0 900 " + std::string(function) +
                        "\ncall 1 5 cudaLaunchKernel | corr=1\nstream 0 7\n"
                        "kernel 10 900 multi_tensor_apply_kernel | corr=1");
    return WorkloadOf(trace, FindSteps(trace));
  };
  EXPECT_EQ(of("sglang/srt/model_executor/cuda_graph_runner.py(276): f"), Workload::kInference);
  EXPECT_EQ(of("train.py(276): f"), Workload::kTraining);
}

TEST(Workload, NamesTellTheServer) {
  const auto server = [](std::string_view name) {
    return ServerOf(
        TraceFromScript("thread 1\nop 0 10 vllm::rms_norm\nop 10 20 " + std::string(name)));
  };
  EXPECT_EQ(server("aten::mm"), Server::kVllm);
  EXPECT_EQ(server("sgl_kernel::rmsnorm"), Server::kSglang);  // which uses some of vLLM's kernels
  EXPECT_EQ(server("sglang/srt/managers/scheduler.py(9):_run"), Server::kSglang);
  EXPECT_EQ(ServerOf(TraceFromScript("thread 1\nop 0 10 aten::mm\npython 10 20 "
                                     "/envs/vllm/lib/python3.12/site-packages/torch/x.py(9): f")),
            Server::kNone);
}

TEST(Workload, WithNothingThatWouldShowItNothingIsKnown) {
  EXPECT_EQ(Of("annotation 0 10 forward"), Workload::kUnknown);
  const Trace trace = TraceFromScript("thread 1\nop 0 10 aten::mm");
  EXPECT_EQ(WorkloadOf(trace, FindSteps(trace)), Workload::kUnknown);
}

TEST(Workload, IsKnownWithoutSteps) {
  const RankAnalysis rank = Analyze(TraceFromScript(R"(
    thread 1
    op 0 10 aten::mm
    stream 0 7
    repeat 100 every 10
      kernel 10 20 gemm
    end)"));
  EXPECT_EQ(rank.workload, Workload::kInference);
  EXPECT_EQ(Verdict(rank).substr(0, 25), "inference: no steps found");
}

TEST(Workload, TheVerdictSaysSo) {
  const RankAnalysis rank = Analyze(TraceFromScript(R"(
    thread 1
    repeat 3 every 1000
      annotation 0 900 execute_context_0(0)_generation_8(8)
      call 10 15 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 3 every 1000
      kernel 20 890 gemm | corr=1
    end)"));
  EXPECT_EQ(Verdict(rank).substr(0, 23), "inference: median step ");
}

}  // namespace
}  // namespace trainprof
