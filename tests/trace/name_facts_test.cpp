#include "trace/tables/name_facts.h"

#include <gtest/gtest.h>

#include <thread>

namespace trainprof {
namespace {

TEST(NameFacts, SayWhatNamesSay) {
  EXPECT_TRUE(NameFactsOf("step 12").is_step);
  EXPECT_TRUE(NameFactsOf("prof.step()").is_profiler_step);
  EXPECT_TRUE(NameFactsOf("torch/serialization.py(620): save").is_io);
  EXPECT_TRUE(NameFactsOf("save_checkpoint").is_io);
  EXPECT_TRUE(NameFactsOf("SummaryWriter.add_scalar").is_io);
  EXPECT_TRUE(NameFactsOf("wandb.log").is_io);
  EXPECT_TRUE(NameFactsOf("mlflow.log_metrics").is_io);
  EXPECT_TRUE(NameFactsOf("logging.FileHandler.emit").is_io);
  EXPECT_FALSE(NameFactsOf("logging.config").is_io);
  EXPECT_FALSE(NameFactsOf("torch/utils/checkpoint.py(493): checkpoint").is_io);
  EXPECT_TRUE(NameFactsOf("gc.collect").is_garbage_collection);
  EXPECT_TRUE(NameFactsOf("ncclDevKernel_AllReduce_Sum_f32_RING_LL").is_communication);
  EXPECT_TRUE(NameFactsOf("Optimizer.zero_grad#SGD.zero_grad").clears_gradients);
  EXPECT_EQ(NameFactsOf("forward").user_phase, Phase::kForward);
  EXPECT_EQ(NameFactsOf("forward").torch_phase, Phase::kNone);
  EXPECT_EQ(NameFactsOf("Optimizer.step#SGD.step").torch_phase, Phase::kOptimizer);
  EXPECT_EQ(NameFactsOf("cudaMemcpyAsync").api, ApiKind::kCopy);
  EXPECT_EQ(NameFactsOf("cudaEventQuery").api, ApiKind::kQuery);
  EXPECT_EQ(NameFactsOf("Memcpy HtoH").direction, CopyDirection::kHostToHost);
  EXPECT_TRUE(NameFactsOf("enumerate(DataLoader)#x.__next__").IsTorchAnnotation());
  EXPECT_FALSE(NameFactsOf("aten::mm").IsTorchAnnotation());
}

TEST(NameFacts, ANameThatCameLaterIsKnownToo) {
  StringTable strings;
  NameFactsTable facts;
  const StringId early = strings.Intern("step");
  facts.Cover(strings);
  const StringId late = strings.Intern("backward");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(facts.Of(strings, early).is_step);
    EXPECT_EQ(facts.Of(strings, late).user_phase, Phase::kBackward);
  }
  facts.Cover(strings);
  EXPECT_TRUE(facts.Of(strings, early).is_step);
  EXPECT_EQ(facts.Of(strings, late).user_phase, Phase::kBackward);
}

TEST(NameFacts, ThreadsThatAskAtOnceFindTheSame) {
  StringTable strings;
  constexpr uint32_t kNames = 1000;
  for (uint32_t i = 1; i <= kNames; ++i) strings.Intern("step " + std::to_string(i));
  NameFactsTable facts;
  facts.Cover(strings);
  std::vector<std::thread> threads;
  std::vector<uint32_t> steps(4, 0);
  for (uint32_t& count : steps) {
    threads.emplace_back([&] {
      for (uint32_t i = 1; i <= kNames; ++i) count += facts.Of(strings, StringId{i}).is_step;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const uint32_t count : steps) EXPECT_EQ(count, kNames);
}

}  // namespace
}  // namespace trainprof
