// Phases by the functions of torch on sampled stacks.
#include "analysis/account/sampled_phases.h"

#include <gtest/gtest.h>

#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

constexpr char kTorchsFolder[] = "/env/lib/python3.11/site-packages/torch/";

// Innermost first; files are torch's, where they do not begin with '/'.
StackId StackOfTorch(TraceBuilder& builder,
                     std::vector<std::pair<std::string, std::string>> functions_and_files) {
  StackId stack = kNoStack;
  for (size_t i = functions_and_files.size(); i-- > 0;) {
    const auto& [function, file] = functions_and_files[i];
    const std::string path = file.starts_with('/') ? file : kTorchsFolder + file;
    stack = builder.AddStack(builder.AddFrame({function, path, 1, {}, 0}), stack);
  }
  return stack;
}

Phase PhaseOfFrames(std::vector<std::pair<std::string, std::string>> functions_and_files) {
  TraceBuilder builder;
  const StackId stack = StackOfTorch(builder, std::move(functions_and_files));
  return PhaseOfStack(std::move(builder).Build(), stack);
}

const std::pair<std::string, std::string> kLoaderNext{"_BaseDataLoaderIter.__next__",
                                                      "utils/data/dataloader.py"};
const std::pair<std::string, std::string> kModuleCall{"Module._call_impl", "nn/modules/module.py"};
const std::pair<std::string, std::string> kBackwardCall{"backward", "autograd/__init__.py"};
const std::pair<std::string, std::string> kOptimizerStep{"Adam.step", "optim/adam.py"};
const std::pair<std::string, std::string> kUsersLine{"main", "/me/train.py"};

TEST(SampledPhases, AreThoseOfTorchsFunctions) {
  EXPECT_EQ(PhaseOfFrames({{"get", "/me/data.py"}, kLoaderNext, kUsersLine}), Phase::kInputWait);
  EXPECT_EQ(PhaseOfFrames({{"forward", "/me/model.py"}, kModuleCall, kUsersLine}), Phase::kForward);
  EXPECT_EQ(PhaseOfFrames({{"cross_entropy", "nn/functional.py"}, kUsersLine}), Phase::kForward);
  EXPECT_EQ(PhaseOfFrames({kBackwardCall, {"Tensor.backward", "_tensor.py"}, kUsersLine}),
            Phase::kBackward);
  EXPECT_EQ(PhaseOfFrames({kOptimizerStep, kUsersLine}), Phase::kOptimizer);
  EXPECT_EQ(PhaseOfFrames(
                {{"step", "/me/my_optimizer.py"}, {"wrapper", "optim/optimizer.py"}, kUsersLine}),
            Phase::kOptimizer);
  EXPECT_EQ(PhaseOfFrames({{"all_reduce", "distributed/distributed_c10d.py"}, kUsersLine}),
            Phase::kRankWait);
}

TEST(SampledPhases, AreNoneOfWhatOnlyLooksLikeThem) {
  EXPECT_EQ(PhaseOfFrames({kUsersLine}), Phase::kNone);
  EXPECT_EQ(PhaseOfFrames({}), Phase::kNone);
  EXPECT_EQ(PhaseOfFrames({{"LRScheduler.step", "optim/lr_scheduler.py"}, kUsersLine}),
            Phase::kNone);
  EXPECT_EQ(PhaseOfFrames({{"Optimizer.zero_grad", "optim/optimizer.py"}, kUsersLine}),
            Phase::kNone);
  EXPECT_EQ(PhaseOfFrames({{"Adam.step", "/me/mytorch/optim/adam.py"}, kUsersLine}), Phase::kNone);
  EXPECT_EQ(PhaseOfFrames({{"init_process_group", "distributed/distributed_c10d.py"}}),
            Phase::kNone);
  // A worker was forked within the loader's __iter__.
  EXPECT_EQ(
      PhaseOfFrames({{"get", "/me/data.py"},
                     {"BaseProcess._bootstrap", "/usr/lib/python3.11/multiprocessing/process.py"},
                     {"DataLoader.__iter__", "utils/data/dataloader.py"},
                     kUsersLine}),
      Phase::kNone);
}

TEST(SampledPhases, CountWhatIsDoneForOnce) {
  EXPECT_EQ(PhaseOfFrames({kModuleCall, kLoaderNext, kUsersLine}),
            Phase::kInputWait);  // a transform that is a module
  EXPECT_EQ(PhaseOfFrames({kModuleCall, kBackwardCall, kUsersLine}),
            Phase::kBackward);  // of a checkpoint
  EXPECT_EQ(PhaseOfFrames({kModuleCall, {"closure", "/me/train.py"}, kOptimizerStep, kUsersLine}),
            Phase::kForward);
  EXPECT_EQ(PhaseOfFrames({kBackwardCall, {"closure", "/me/train.py"}, kOptimizerStep, kUsersLine}),
            Phase::kBackward);
}

// A process that trains, in 10 ms samples from 0 on, and a worker that was busier.
class SampledJob {
 public:
  SampledJob() {
    training_ = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
    worker_ = builder.FindOrAddThread(builder.FindOrAddProcess(2), 2);
  }
  void Next(std::vector<std::pair<std::string, std::string>> functions_and_files) {
    Add(training_, std::move(functions_and_files));
    Add(worker_, {{"get", "/me/data.py"}});
    at_ms_ += 10;
  }
  TrackId training() const { return training_; }
  TraceBuilder builder;

 private:
  void Add(TrackId track, std::vector<std::pair<std::string, std::string>> functions_and_files) {
    const TraceTime time{at_ms_ * 1'000'000};
    builder.AddRow(builder.trace().samples,
                   Event{.begin = time, .end = time, .name = kEmptyString, .track = track},
                   kEmptyString, ThreadState::kRunning,
                   StackOfTorch(builder, std::move(functions_and_files)), 10'000'000);
  }
  int64_t at_ms_ = 0;
  TrackId training_;
  TrackId worker_;
};

TEST(SampledPhases, AreTheAccountWhereNothingNamesOne) {
  SampledJob samples;
  for (int i = 0; i < 3; ++i) {
    samples.Next({kLoaderNext, kUsersLine});
    samples.Next({kModuleCall, kUsersLine});
    samples.Next({kBackwardCall, kUsersLine});
    samples.Next({kUsersLine});
  }
  const Trace trace = std::move(samples.builder).Build();
  Steps steps;
  steps.window = IntervalSet::Union({{TraceTime{0}, TraceTime{120'000'000}}});
  const HostAccount account = AccountHost(trace, steps);
  EXPECT_EQ(account.sampled_thread, samples.training());
  EXPECT_EQ(account.Of(HostClass::kInputWait), Milliseconds(30));
  EXPECT_EQ(account.Of(HostClass::kForward), Milliseconds(30));
  EXPECT_EQ(account.Of(HostClass::kBackward), Milliseconds(30));
  EXPECT_EQ(account.Of(HostClass::kOther), Milliseconds(30));
  const auto part = account.Within({TraceTime{0}, TraceTime{25'000'000}});
  EXPECT_EQ(part[static_cast<size_t>(HostClass::kBackward)], Milliseconds(5));
}

TEST(SampledPhases, CountNotWhereOneIsNamed) {
  SampledJob samples;
  samples.Next({kModuleCall, kUsersLine});
  samples.builder.AddRange({.begin = TraceTime{0},
                            .end = TraceTime{4'000'000},
                            .name = samples.builder.Intern("backward"),
                            .track = samples.training()},
                           RangeKind::kUserAnnotation);
  const Trace trace = std::move(samples.builder).Build();
  Steps steps;
  steps.thread = samples.training();
  steps.window = IntervalSet::Union({{TraceTime{0}, TraceTime{10'000'000}}});
  const HostAccount account = AccountHost(trace, steps);
  EXPECT_EQ(account.sampled_thread, kNoTrack);
  EXPECT_EQ(account.Of(HostClass::kForward), Duration{});
}

}  // namespace
}  // namespace trainprof
