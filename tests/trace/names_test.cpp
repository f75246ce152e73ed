// What names mean: tables of real names of torch, CUDA, ROCm and of users' ranges, with the answer.
#include "trace/base/names.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "trace/base/kernel_names.h"

namespace trainprof {
namespace {

TEST(Names, KnowsStepsWithAndWithoutACounter) {
  for (const char* name :
       {"step", "step 12", "step#12", "step_7", "step:3", "ProfilerStep#12", "PROFILERSTEP#0",
        "train_step", "training step 4", "Iteration 9", "iter-3", "train:#step_num=12,_r=1#"}) {
    EXPECT_TRUE(IsStepName(name)) << name;
  }
}

TEST(Names, DoesNotTakeOtherRangesForSteps) {
  for (const char* name : {"", "12", "#12", "Optimizer.step#SGD.step", "optimizer step", "steps",
                           "step 1 of 10", "ProfilerStep", "footstep", "stepper 3", "step 12 ",
                           "train:#step=1#", "XlaModule:#hlo_module=jit_step,program_id=1#"}) {
    EXPECT_EQ(IsStepName(name), std::string_view(name) == "ProfilerStep") << name;
  }
}

TEST(Names, KnowsThePhasesOfTorchAnnotations) {
  EXPECT_EQ(PhaseOfTorchName("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
            Phase::kInputWait);
  EXPECT_EQ(PhaseOfTorchName("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
            Phase::kInputWait);
  EXPECT_EQ(PhaseOfTorchName("Optimizer.step#AdamW.step"), Phase::kOptimizer);
  EXPECT_EQ(PhaseOfTorchName("Optimizer.step#AdamW.step (2)"), Phase::kOptimizer);
  EXPECT_EQ(PhaseOfTorchName("GradScaler.unscale_"), Phase::kOptimizer);
  EXPECT_EQ(PhaseOfTorchName("Queue.get"), Phase::kInputWait);
  EXPECT_EQ(PhaseOfUserName("Queue.put"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName("Event.wait"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName("worker waits for indices"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName("_MapDatasetFetcher.fetch"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName("collate"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName("validation"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName("before forward"), Phase::kNone);
  EXPECT_EQ(PhaseOfTorchName("ReluBackward1"), Phase::kBackward);
  EXPECT_EQ(PhaseOfTorchName("MaxPool2DWithIndicesBackward"), Phase::kBackward);
  EXPECT_EQ(PhaseOfTorchName("torch::autograd::AccumulateGrad"), Phase::kBackward);
  EXPECT_EQ(PhaseOfTorchName("aten::nll_loss_backward"), Phase::kNone);
  EXPECT_EQ(PhaseOfTorchName("Before Backward"), Phase::kNone);
  EXPECT_EQ(PhaseOfTorchName("next batch (own code)"), Phase::kInputWait);
  EXPECT_EQ(PhaseOfTorchName("c10d::all_reduce"), Phase::kRankWait);
  EXPECT_EQ(PhaseOfTorchName("c10d::all_reduce (DistributedDataParallel)"), Phase::kRankWait);
  EXPECT_EQ(PhaseOfTorchName("c10d::allreduce_"), Phase::kNone)
      << "torch's operator only starts it";
  EXPECT_EQ(PhaseOfTorchName("Optimizer.zero_grad#SGD.zero_grad"), Phase::kOptimizer);
  EXPECT_EQ(PhaseOfTorchName("autograd::engine::evaluate_function: AddmmBackward0"),
            Phase::kBackward);
  EXPECT_EQ(PhaseOfTorchName("aten::mm"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName("## forward ##"), Phase::kForward);
  EXPECT_EQ(PhaseOfTorchName("forward"), Phase::kNone);
}

TEST(Names, KnowsThePhasesOfUsersRanges) {
  EXPECT_EQ(PhaseOfUserName("data_wait"), Phase::kInputWait);
  EXPECT_EQ(PhaseOfUserName("Data Loading 3"), Phase::kInputWait);
  EXPECT_EQ(PhaseOfUserName("h2d"), Phase::kCopy);
  EXPECT_EQ(PhaseOfUserName("to_device"), Phase::kCopy);
  EXPECT_EQ(PhaseOfUserName("Forward"), Phase::kForward);
  EXPECT_EQ(PhaseOfUserName("backward_2"), Phase::kBackward);
  EXPECT_EQ(PhaseOfUserName("optimizer"), Phase::kOptimizer);
  EXPECT_EQ(PhaseOfUserName("Optimizer.step#SGD.step"), Phase::kOptimizer);
  EXPECT_EQ(PhaseOfUserName("attention"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName("database"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName(""), Phase::kNone);
}

TEST(Names, KnowsLoadingByManyNames) {
  for (const char* name : {"fetch",
                           "fetch_data",
                           "fetch data 12",
                           "FetchData",
                           "get batch",
                           "get_batch",
                           "Get Batch #3",
                           "getBatch",
                           "get-batch",
                           "get_next_batch",
                           "get_batch()",
                           "load",
                           "Load 7",
                           "load()",
                           "loading",
                           "load_batch",
                           "load data",
                           "load image",
                           "LOAD_DATA",
                           "prefetch",
                           "Prefetch_3",
                           "prefetch next batch",
                           "iter_next",
                           "iterNext",
                           "iterator.get_next",
                           "next batch",
                           "next-batch",
                           "nextBatch:2",
                           "next(loader)",
                           "next(iter(train_loader))",
                           "batch = next(loader)",
                           "dataloader",
                           "DataLoader",
                           "data loader 1/100",
                           "DataLoader.__next__",
                           "train_loader",
                           "val-dataloader",
                           "train/data_wait",
                           "trainer::next_batch",
                           "wait for data",
                           "waiting for the next batch",
                           "data_wait",
                           "batch wait",
                           "input",
                           "data",
                           "## data ##",
                           "batch-generator",
                           "batch_input",
                           "data_time",
                           "data iter",
                           "read_batch"}) {
    EXPECT_EQ(PhaseOfUserName(name), Phase::kInputWait) << name;
  }
}

// A name that only looks like one would turn work into a loader's wait.
TEST(Names, DoesNotTakeOtherRangesForLoading) {
  for (const char* name : {"load_state_dict",
                           "load checkpoint",
                           "load_model",
                           "load weights",
                           "load_dataset",
                           "torch.load",
                           "pickle.load",
                           "loaded",
                           "reload",
                           "preload",
                           "payload",
                           "overload",
                           "workload",
                           "load_balance",
                           "load_balancing_loss",
                           "download",
                           "downloading data",
                           "upload",
                           "unload",
                           "prefetch_to_device",
                           "prefetch to gpu",
                           "fetch_sub_module",
                           "fetch params",
                           "all_gather_prefetch",
                           "get_train_dataloader",
                           "build_dataloader",
                           "init data loader",
                           "get",
                           "get_lr",
                           "get samples",
                           "get_logits",
                           "sample",
                           "next",
                           "next token",
                           "next_iteration",
                           "iter",
                           "iteration",
                           "train_iter",
                           "batch",
                           "batch 12",
                           "train_batch",
                           "micro batch 3",
                           "batch_norm",
                           "minibatch",
                           "batch_time",
                           "train data",
                           "test_data",
                           "dataset",
                           "database",
                           "metadata",
                           "data_parallel",
                           "DataParallel.forward",
                           "data augmentation",
                           "update",
                           "wait",
                           "wait_stream",
                           "wait all_reduce",
                           "read",
                           "thread",
                           "spread",
                           "readout",
                           "input_projection",
                           "input_layernorm",
                           "inputs embedding",
                           "queue",
                           "test",
                           "validation",
                           "the",
                           "loader\xc3\xa9",
                           "load2go"}) {
    EXPECT_NE(PhaseOfUserName(name), Phase::kInputWait) << name;
  }
}

TEST(Names, OfOtherPhasesAreKnownWithAnySeparators) {
  EXPECT_EQ(PhaseOfUserName("h2d-copy 3"), Phase::kCopy);
  EXPECT_EQ(PhaseOfUserName("Batch To Device"), Phase::kCopy);
  EXPECT_EQ(PhaseOfUserName("forward-pass"), Phase::kForward);
  EXPECT_EQ(PhaseOfUserName("loss.backward()"), Phase::kBackward);
  EXPECT_EQ(PhaseOfUserName("OptimizerStep"), Phase::kOptimizer);
  EXPECT_EQ(PhaseOfUserName("d2h"), Phase::kNone);
  EXPECT_EQ(PhaseOfUserName("feed_forward"), Phase::kNone);
}

TEST(Names, ACallSaysWhatTheHostWaitsFor) {
  const std::pair<const char*, HostWait> known[] = {
      {"cudaStreamSynchronize", HostWait::kStream},
      {"cuStreamSynchronize_ptsz", HostWait::kStream},
      {"cudaEventSynchronize_v3020", HostWait::kEvent},
      {"hipEventSynchronize", HostWait::kEvent},
      {"cudaDeviceSynchronize", HostWait::kContext},
      {"cuCtxSynchronize_v2", HostWait::kContext},
      {"cudaFree", HostWait::kContext},
      {"cuMemFree_v2", HostWait::kContext},
      {"cudaFreeHost", HostWait::kContext},
      {"cudaFreeAsync_ptsz_v11020", HostWait::kNone},
      {"cuMemRelease", HostWait::kNone},
      {"cudaHostUnregister", HostWait::kNone},
      {"cudaMemcpy", HostWait::kItsCopy},
      {"cuMemcpyDtoH_v2", HostWait::kItsCopy},
      {"hipMemcpyWithStream", HostWait::kItsCopy},
      {"cudaMemcpyAsync_ptsz_v7000", HostWait::kNone},
      {"cudaMemcpy3DPeerAsync", HostWait::kNone},
      {"cudaStreamWaitEvent", HostWait::kNone},
      {"cudaMalloc", HostWait::kNone},
      {"cudaLaunchKernel", HostWait::kNone},
      {"aten::copy_", HostWait::kNone},
      {"", HostWait::kNone},
  };
  for (const auto& [name, wait] : known) {
    EXPECT_EQ(static_cast<int>(HostWaitOf(name)), static_cast<int>(wait)) << name;
  }
}

struct NamedCall {
  const char* name;
  ApiKind kind;
};

class NamesOfCalls : public ::testing::TestWithParam<NamedCall> {};

TEST_P(NamesOfCalls, AreUnderstood) {
  EXPECT_EQ(static_cast<int>(ApiKindOf(GetParam().name)), static_cast<int>(GetParam().kind))
      << GetParam().name;
}

constexpr NamedCall kCalls[] = {
    {"cudaLaunchKernel", ApiKind::kLaunch},
    {"cudaStreamSynchronize_ptsz_v7000", ApiKind::kSync},
    {"cudaLaunchKernel_v7000", ApiKind::kLaunch},
    {"cudaLaunchKernelExC_v11060", ApiKind::kLaunch},
    {"cudaLaunchCooperativeKernel", ApiKind::kLaunch},
    {"cuLaunchKernel", ApiKind::kLaunch},
    {"cuLaunchKernelEx", ApiKind::kLaunch},
    {"hipLaunchKernel", ApiKind::kLaunch},
    {"hipExtModuleLaunchKernel", ApiKind::kLaunch},
    {"hipExtLaunchKernel", ApiKind::kLaunch},
    {"hipModuleLaunchKernel", ApiKind::kLaunch},
    {"hipHccModuleLaunchKernel", ApiKind::kLaunch},
    {"cudaLaunchHostFunc", ApiKind::kOther},
    {"cudaGraphLaunch", ApiKind::kGraphLaunch},
    {"cudaGraphLaunch_v10000", ApiKind::kGraphLaunch},
    {"hipGraphLaunch", ApiKind::kGraphLaunch},
    {"cudaMemcpyAsync", ApiKind::kCopy},
    {"cudaMemcpy", ApiKind::kCopy},
    {"cudaMemcpy2DAsync", ApiKind::kCopy},
    {"cuMemcpyHtoDAsync_v2", ApiKind::kCopy},
    {"hipMemcpyWithStream", ApiKind::kCopy},
    {"cudaMemsetAsync", ApiKind::kMemset},
    {"cuMemsetD32Async", ApiKind::kMemset},
    {"cudaDeviceSynchronize", ApiKind::kSync},
    {"cudaStreamSynchronize", ApiKind::kSync},
    {"cudaStreamSynchronize_v3020", ApiKind::kSync},
    {"cudaEventSynchronize", ApiKind::kSync},
    {"cuStreamSynchronize_ptsz", ApiKind::kSync},
    {"cuCtxSynchronize", ApiKind::kSync},
    {"cuCtxSynchronize_v2", ApiKind::kSync},
    {"hipDeviceSynchronize", ApiKind::kSync},
    {"hipStreamSynchronize", ApiKind::kSync},
    {"cudaStreamWaitEvent", ApiKind::kStreamWait},
    {"hipStreamWaitEvent", ApiKind::kStreamWait},
    {"cudaEventQuery", ApiKind::kQuery},
    {"cudaStreamQuery", ApiKind::kQuery},
    {"cudaMalloc", ApiKind::kAllocate},
    {"cudaMallocAsync_v11020", ApiKind::kAllocate},
    {"cudaMallocHost", ApiKind::kAllocate},
    {"cudaHostAlloc", ApiKind::kAllocate},
    {"cudaHostRegister", ApiKind::kAllocate},
    {"cuMemAlloc_v2", ApiKind::kAllocate},
    {"cuMemCreate", ApiKind::kAllocate},
    {"cuMemHostAlloc", ApiKind::kAllocate},
    {"cuMemHostRegister_v2", ApiKind::kAllocate},
    {"hipHostMalloc", ApiKind::kAllocate},
    {"hipExtMallocWithFlags", ApiKind::kAllocate},
    {"cudaFree", ApiKind::kFree},
    {"cudaFreeHost", ApiKind::kFree},
    {"cudaHostUnregister", ApiKind::kFree},
    {"cuMemFree_v2", ApiKind::kFree},
    {"cuMemFreeHost", ApiKind::kFree},
    {"cuMemHostUnregister", ApiKind::kFree},
    {"cuMemRelease", ApiKind::kFree},
    {"hipHostFree", ApiKind::kFree},
    {"cudaEventRecord", ApiKind::kOther},
    {"cudaMemGetInfo", ApiKind::kOther},
    {"cudaGetDevice", ApiKind::kOther},
    {"cudaStreamIsCapturing", ApiKind::kOther},
    {"aten::copy_", ApiKind::kOther},
    {"cublasLtMatmul", ApiKind::kOther},
    {"cu", ApiKind::kOther},
    {"cuda", ApiKind::kOther},
    {"", ApiKind::kOther},
};

INSTANTIATE_TEST_SUITE_P(Names, NamesOfCalls, ::testing::ValuesIn(kCalls), [](const auto& info) {
  const std::string name = info.param.name;
  std::string id = std::to_string(info.index) + "_";
  for (char c : name) id += std::isalnum(c) ? c : '_';
  return id;
});

TEST(Names, TellsCommunicationKernels) {
  EXPECT_TRUE(IsCommunicationKernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"));
  EXPECT_TRUE(IsCommunicationKernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"));
  EXPECT_TRUE(IsCommunicationKernel("void vllm::cross_device_reduce_1stage<__half, 2>(...)"));
  for (
      const char* name :
      {"void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int, int)",
       "kuserbuffers_pullsend(int, int)", "barrier_all_on_stream_kernel_threadgroup",
       "void deep_ep::intranode::dispatch<8, 768>(int4*, float*)",
       "void deep_ep::internode_ll::combine<true, 7168>(void*)",
       "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16>(...)",
       "void c10d::symmetric_memory::(anonymous namespace)::two_shot_all_reduce_kernel<float>(float*)",
       "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<2>(...)",
       "void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>(...)", "mscclpp::allreduce7",
       "void quickreduce::allreduce_prototype_twoshot<int>(...)",
       "void rccl_main_kernel<false>(ncclDevComm*)",
       "void dpsk::ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 24>(int4*, float*)",
       "void uccl::intranode::(anonymous namespace)::dispatch<8>(int4*)",
       "EpDispatchInterNodeV1Kernel_bf16", "void mori::moe::EpCombineIntraNodeKernel<float>(int)",
       "kernel_dispatch_token_intra_node", "void a2a_kernels::a2a_dispatch_send_kernel<true, 16>()",
       "void tensorrt_llm::kernels::moe_comm::moeA2ACombineKernel<__half, 8>(int)"}) {
    EXPECT_TRUE(IsCommunicationKernel(name)) << name;
  }
  EXPECT_FALSE(IsCommunicationKernel("ampere_sgemm_128x64_tn"));
  EXPECT_FALSE(
      IsCommunicationKernel("void reduce_kernel<512, 1, ReduceOp<float, all_reduce_tag>>(int)"));
  EXPECT_FALSE(IsCommunicationKernel(
      "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>(float*)"));
  EXPECT_FALSE(IsCommunicationKernel("void split_k_all_reduce_epilogue<float, 4>(float*)"));
  EXPECT_FALSE(IsCommunicationKernel("gemm_all_reduce_kernel_bf16"));
  EXPECT_FALSE(IsCommunicationKernel("void dispatch_kernel<internode::Meta>(internode::Meta*)"));
  EXPECT_FALSE(IsCommunicationKernel("void moe::combine_kernel<float>(float*)"));
  EXPECT_FALSE(IsCommunicationKernel(""));
}

TEST(Names, TellsAKernelsFunctionFromWhatStandsAroundIt) {
  EXPECT_EQ(FunctionOf("void vllm::cross_device_reduce_1stage<__half, 2>(vllm::Data*)"),
            "cross_device_reduce_1stage");
  EXPECT_EQ(FunctionOf("void at::native::(anonymous namespace)::CatArray<float>(a::B<c>)"),
            "CatArray");
  EXPECT_EQ(FunctionOf("add((anonymous namespace)::Scale)"), "add");
  EXPECT_EQ(FunctionOf("ampere_sgemm_128x64_tn"), "ampere_sgemm_128x64_tn");
  EXPECT_EQ(QualifiedNameOf("void a::(anonymous namespace)::b<c::D>(e::F)"),
            "a::(anonymous namespace)::b");
  EXPECT_EQ(QualifiedNameOf("(anonymous namespace)"), "(anonymous namespace)");
  EXPECT_EQ(QualifiedNameOf(""), "");
}

TEST(Names, FunctionsWithoutCodeLoseTheAddressOfTheirObject) {
  EXPECT_EQ(WithoutAddress("<built-in method randn of type object at 0x7ba0d98e4b40>"), "randn");
  EXPECT_EQ(WithoutAddress("<built-in function _cuda_synchronize>"), "_cuda_synchronize");
  // As long as torch lets a name be.
  EXPECT_EQ(WithoutAddress("<built-in method matmul of pybind11_builtins.pybind11_detail_fu"),
            "matmul");
  EXPECT_EQ(WithoutAddress("<built-in method matm"), "matm");
  for (const char* name : {"train.py(1): <module>", "<built-in method  of x>", "", "<built-in "}) {
    EXPECT_EQ(WithoutAddress(name), name);
  }
}

TEST(Names, KnowsTheCallsThatPutAHostFunctionIntoAStream) {
  for (const char* call : {"cudaLaunchHostFunc", "cuLaunchHostFunc", "cudaLaunchHostFunc_v10000",
                           "hipLaunchHostFunc", "cudaStreamAddCallback"}) {
    EXPECT_TRUE(LaunchesHostFunction(call)) << call;
  }
  EXPECT_FALSE(LaunchesHostFunction("cudaLaunchKernel"));
}

TEST(Names, TellsTheDirectionOfCopies) {
  const auto direction = [](const char* name) { return static_cast<int>(CopyDirectionOf(name)); };
  EXPECT_EQ(direction("Memcpy HtoD (Pageable -> Device)"), int(CopyDirection::kHostToDevice));
  EXPECT_EQ(direction("Memcpy DtoH (Device -> Pinned)"), int(CopyDirection::kDeviceToHost));
  EXPECT_EQ(direction("Memcpy DtoD (Device -> Device)"), int(CopyDirection::kDeviceToDevice));
  EXPECT_EQ(direction("Memcpy PtoP (Device -> Device)"), int(CopyDirection::kPeer));
  EXPECT_EQ(direction("Memcpy HtoH (Pinned -> Pageable)"), int(CopyDirection::kHostToHost));
  EXPECT_EQ(direction("CopyHostToDevice"), int(CopyDirection::kHostToDevice));
  EXPECT_EQ(direction("CopyDeviceToHost"), int(CopyDirection::kDeviceToHost));
  EXPECT_EQ(direction("Memcpy Unknown"), int(CopyDirection::kUnknown));
}

// Any bytes may be a name: prefixes and parts of real ones come closest to the edges.
TEST(Names, SurviveAnyBytes) {
  const std::string seeds[] = {"cudaMemcpyAsync",
                               "hip",
                               "step 12",
                               "Memcpy HtoD (Pageable",
                               "enumerate(DataLoader)#",
                               "cuStreamSynchronize_v3020"};
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string name = seeds[random() % std::size(seeds)];
    name.resize(random() % (name.size() + 3), static_cast<char>(random()));
    if (!name.empty()) name[random() % name.size()] = static_cast<char>(random());
    const bool is_step = IsStepName(name);
    EXPECT_FALSE(is_step && PhaseOfUserName(name) != Phase::kNone) << name;
    (void)ApiKindOf(name);
    (void)CopyDirectionOf(name);
    (void)IsCommunicationKernel(name);
  }
}

}  // namespace
}  // namespace trainprof
