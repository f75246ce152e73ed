#include "tests/viewer/scenes.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/trace/recording/rows_of.h"
#include "tests/viewer/open_job.h"
#include "trace/recording/seal/sealer.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 20;

struct Shape {
  int step_us = 10'000;
  int wait_us = 0;         // for the loader
  int kernel_us = 250;     // eight of them, in three streams' worth of names
  int sync_us = 0;         // .item() at the end
  int all_reduced_us = 0;  // when the last rank's gradients are there; 0: no communication
};

// One rank's steps: wait, copy, forward, backward with an all-reduce beside it, optimizer, .item().
std::string ScriptOf(const Shape& shape) {
  std::string host = fmt::format("thread 1\nrepeat {} every {}\n", kSteps, shape.step_us);
  std::string device;
  host += fmt::format("  step 0 {} ProfilerStep#1\n", shape.step_us - 50);
  int at = 40;
  if (shape.wait_us > 0) {
    host += fmt::format(
        "  annotation {} {} enumerate(DataLoader)#_MultiProcessingDataLoaderIter."
        "__next__\n",
        at, at + shape.wait_us);
    at += shape.wait_us;
  }
  host += fmt::format("  op {} {} aten::copy_ | stack=train.py(41): step\n", at, at + 60);
  host += fmt::format("  call {} {} cudaMemcpyAsync | corr=1\n", at + 10, at + 40);
  device += fmt::format("  copy {} {} Memcpy HtoD (Pinned -> Device) | corr=1 bytes=4194304\n",
                        at + 45, at + 215);
  int ready = at + 220;
  at += 80;
  constexpr const char* kOps[] = {
      "aten::conv2d",    "aten::batch_norm",     "aten::relu",  "aten::linear",
      "LinearBackward0", "ConvolutionBackward0", "aten::addmm", "Optimizer.step#AdamW.step"};
  constexpr const char* kKernels[] = {"sm90_xmma_fprop_implicit_gemm_f32",
                                      "batch_norm_elementwise",
                                      "vectorized_elementwise_kernel",
                                      "ampere_sgemm_128x64_tn",
                                      "ampere_sgemm_128x64_nt",
                                      "sm90_xmma_dgrad_implicit_gemm_f32",
                                      "ampere_sgemm_64x64_nn",
                                      "multi_tensor_apply_kernel"};
  for (int i = 0; i < 8; ++i) {
    host +=
        fmt::format("  op {} {} {} | stack=model.py({}): forward\n", at, at + 90, kOps[i], 20 + i);
    host += fmt::format("  call {} {} cudaLaunchKernel | corr={}\n", at + 20, at + 60, 2 + i);
    const int begin = std::max(ready, at + 70);
    device += fmt::format("  kernel {} {} {} | corr={}\n", begin, begin + shape.kernel_us,
                          kKernels[i], 2 + i);
    ready = begin + shape.kernel_us + 3;
    at += 110;
  }
  if (shape.sync_us > 0) {
    const int end = std::max(at + shape.sync_us, ready);
    host += fmt::format("  op {} {} aten::item | stack=train.py(57): step\n", at, end + 10);
    host += fmt::format("  call {} {} cudaStreamSynchronize\n", at + 10, end);
  }
  std::string script = host + "end\n";
  script += fmt::format("stream 0 7\nrepeat {} every {}\n{}end\n", kSteps, shape.step_us, device);
  if (shape.all_reduced_us > 0) {
    script += fmt::format(
        "stream 0 20\nrepeat {} every {}\n  kernel {} {} ncclDevKernel_AllReduce_Sum_f32_RING\n"
        "end\n",
        kSteps, shape.step_us, ready - 2 * shape.kernel_us, shape.all_reduced_us);
  }
  return script;
}

fs::path Demo(const fs::path&) {
  return fs::path(TRAINPROF_SOURCE_DIR) / "samples" / "virtual_gpu_habits" / "recording";
}

// Rank 5 waits for its loader; the others wait for it in the all-reduce.
fs::path EightRanks(const fs::path& folder) {
  std::vector<std::string> scripts;
  for (int rank = 0; rank < 8; ++rank) {
    Shape shape;
    shape.step_us = 9'000;
    shape.wait_us = rank == 5 ? 2'800 : 300 + 60 * rank;
    shape.kernel_us = 600;
    shape.all_reduced_us = 8'800;
    scripts.push_back(ScriptOf(shape));
  }
  return WriteJob(folder, {scripts.begin(), scripts.end()});
}

fs::path NoGpuEvents(const fs::path&) {
  return fs::path(TRAINPROF_SOURCE_DIR) / "samples" / "trainer_cpu_workers0" / "recording";
}

// A trace whose writer was killed: its file ends in the middle of an event.
fs::path DroppedData(const fs::path& folder) {
  Shape shape;
  shape.wait_us = 2'000;
  const std::string script = ScriptOf(shape);
  const fs::path path = WriteJob(folder, {script});
  fs::resize_file(path, fs::file_size(path) * 3 / 4);
  return path;
}

fs::path NoFindings(const fs::path& folder) {
  Shape shape;
  shape.step_us = 9'300;
  shape.kernel_us = 1'120;
  const std::string script = ScriptOf(shape);
  return WriteJob(folder, {script});
}

fs::path TenMillionEvents(const fs::path& folder) {
  constexpr size_t kEvents = 10'000'000;
  constexpr uint32_t kThreads = 40;
  WriteBigRecording(folder / "run", kEvents, kThreads);
  return folder / "run";
}

constexpr Scene kScenes[] = {
    {"demo", Demo, -1, 1},
    {"eight_ranks", EightRanks, -1, 0},
    {"no_gpu_events", NoGpuEvents, -1, 0},
    {"dropped_data", DroppedData, -1, 0},
    {"no_findings", NoFindings, 12, 0},
    {"ten_million_events", TenMillionEvents, -1, 0},
};

// Of the big recording. What a thread does: a range, the call in it, the kernel.
constexpr size_t kEventsPerOperator = 3;
constexpr int64_t kOperatorNs = 12'000;
// All wait for the batch that the first thread loads, then each works through its operators.
constexpr size_t kOperatorsPerStep = 800;
constexpr int64_t kWaitNs = 1'400'000;

// When operator `i` of a thread begins.
int64_t BeginOf(size_t i) {
  const auto waits = static_cast<int64_t>(i / kOperatorsPerStep + 1);
  return static_cast<int64_t>(i) * kOperatorNs + waits * kWaitNs + 1000;
}

void BeginStep(SegmentWriter& writer, size_t first_operator) {
  const auto at = static_cast<uint64_t>(BeginOf(first_operator));
  if (first_operator > 0) writer.Pop(at - kWaitNs - 500);
  writer.Push("step", at - kWaitNs);
  writer.Push("data_wait", at - kWaitNs + 100);
  writer.Pop(at - 500);
}

void WriteThread(SegmentWriter& writer, uint32_t thread, size_t operators) {
  const uint32_t call_name = writer.String("cudaLaunchKernel");
  const uint32_t kernel_name = writer.String("gemm_kernel");
  for (size_t i = 0; i < operators; ++i) {
    if (thread == 0 && i % kOperatorsPerStep == 0) BeginStep(writer, i);
    const int64_t at = BeginOf(i);
    const auto correlation = static_cast<uint32_t>(thread * operators + i + 1);
    writer.Push("aten::mm", static_cast<uint64_t>(at));
    writer.Pop(static_cast<uint64_t>(at + 9000));
    writer.Row(CallOf(at + 2000, at + 5000, correlation, call_name, 100 + thread));
    const auto length = static_cast<int64_t>(4000 + i * 7919 % 6000);
    recording::DeviceRow kernel =
        RowOf(recording::DeviceRowType::kKernel, at + 6000, at + 6000 + length, correlation);
    kernel.name = kernel_name;
    kernel.stream = 7 + thread;
    writer.Row(kernel);
  }
  if (thread == 0 && operators > 0) writer.Pop(static_cast<uint64_t>(BeginOf(operators)));
}

// On the clock of SegmentWriter, which is not this machine's.
void MakeRun(const fs::path& run) {
  (void)recording::CreateRun(run, recording::RunDescription{}).ok();
  const recording::ClockSample created = SegmentWriter::Sample(0);
  std::fstream control(run / recording::kControlFile, std::ios::in | std::ios::out);
  control.seekp(offsetof(recording::RunControl, created));
  control.write(reinterpret_cast<const char*>(&created), sizeof created);
}

}  // namespace

std::span<const Scene> Scenes() { return kScenes; }

void WriteBigRecording(const fs::path& run, size_t events, uint32_t threads) {
  MakeRun(run);
  SegmentWriter writer(run / "rank-00000");
  const size_t operators = events / kEventsPerOperator / threads;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    const std::string name = thread == 0 ? "main" : fmt::format("worker {}", thread);
    writer.BeginWriter(thread, 100 + thread, name.c_str());
    WriteThread(writer, thread, operators);
  }
  writer.Finish();
  recording::RunDescription ended;
  ended.exit_code = 0;
  (void)recording::SealRecording(run, ended,
                                 std::chrono::steady_clock::now() + std::chrono::hours(1))
      .ok();
}

}  // namespace trainprof::testing
