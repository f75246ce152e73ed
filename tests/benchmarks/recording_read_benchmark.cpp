// Reading a recording: raw and sealed segments of ranges, and of calls and kernels, to a Trace;
// what sealing costs and saves.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/trace/recording/rows_of.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/seal/sealer.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 200'000;  // of five ranges
constexpr uint32_t kLaunches = 500'000;
constexpr uint32_t kKernels = 200;  // of a training step

enum class Content { kRanges, kRows };

// A run of one dead process: steps of data, forward, backward and optimizer; or launches on four
// streams, of one kernel after the other.
class Run {
 public:
  explicit Run(Content content) {
    std::string pattern = (fs::temp_directory_path() / "trainprof-benchmark-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    recording::RunDescription description;
    (void)recording::CreateRun(path(), description).ok();
    testing::SegmentWriter writer(path() / "rank-00000");
    writer.BeginWriter(0, 100);
    content == Content::kRanges ? WriteRanges(writer) : WriteRows(writer);
    writer.Finish();
  }
  ~Run() { fs::remove_all(folder_); }
  fs::path path() const { return folder_ / "run"; }
  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(path() / "rank-00000")) {
      bytes += entry.file_size();
    }
    return bytes;
  }

  void Seal() const {
    (void)recording::SealRecording(path(), {},
                                   std::chrono::steady_clock::now() + std::chrono::hours(1))
        .ok();
  }

 private:
  static void WriteRanges(testing::SegmentWriter& writer) {
    uint64_t ticks = 1'000'000;
    for (int64_t step = 0; step < kSteps; ++step) {
      writer.Push("step", ticks += 100);
      for (const char* phase : {"data", "forward", "backward", "optimizer"}) {
        writer.Push(phase, ticks += 500 + static_cast<uint64_t>(step * 7919 % 1000));
        writer.Pop(ticks += 5000 + static_cast<uint64_t>(step * 104729 % 3000));
      }
      writer.Pop(ticks += 100);
    }
  }

  static void WriteRows(testing::SegmentWriter& writer) {
    const uint32_t call = writer.String("cudaLaunchKernel");
    for (uint32_t i = 0; i < kLaunches; ++i) {
      const int64_t at = int64_t{i} * 8000;
      writer.Row(testing::CallOf(at, at + 3000 + i * 7919 % 2000, i + 1, call, 100 + i % 2));
      recording::DeviceRow kernel = testing::RowOf(recording::DeviceRowType::kKernel, at + 6000,
                                                   at + 9000 + i * 104729 % 20'000, i + 1);
      const uint32_t number = i % kKernels;
      kernel.name = writer.String("kernel " + std::to_string(number));
      kernel.stream = 7 + number % 4;
      kernel.kernel.grid[0] = 1 + number * number;
      kernel.kernel.registers_per_thread = static_cast<uint16_t>(24 + number % 64);
      writer.Row(kernel);
    }
  }

  fs::path folder_;
};

void Read(benchmark::State& state, Content content, bool sealed) {
  const Run run(content);
  if (sealed) run.Seal();
  size_t events = 0;
  for (auto _ : state) {
    auto ranks = recording::ReadRecording(run.path());
    if (!ranks.ok()) return state.SkipWithError(ranks.error().c_str());
    const Trace& trace = ranks.value()[0].trace;
    events = trace.ranges.size() + trace.api.size() + trace.device_ops.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(events));
  state.counters["bytes_per_event"] =
      static_cast<double>(run.Bytes()) / static_cast<double>(std::max<size_t>(events, 1));
}
BENCHMARK_CAPTURE(Read, ranges_raw, Content::kRanges, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Read, ranges_sealed, Content::kRanges, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Read, rows_raw, Content::kRows, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Read, rows_sealed, Content::kRows, true)->Unit(benchmark::kMillisecond);

void Seal(benchmark::State& state, Content content) {
  uint64_t bytes = 0;
  std::optional<Run> run;
  for (auto _ : state) {
    state.PauseTiming();
    run.emplace(content);
    bytes += run->Bytes();
    state.ResumeTiming();
    run->Seal();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK_CAPTURE(Seal, ranges, Content::kRanges)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Seal, rows, Content::kRows)->Unit(benchmark::kMillisecond);

// The gate: opening reads headers, whatever the size.
void Summarize(benchmark::State& state) {
  const Run run(Content::kRows);
  run.Seal();
  for (auto _ : state) {
    benchmark::DoNotOptimize(recording::SummarizeRecording(run.path()).ok());
  }
}
BENCHMARK(Summarize)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace trainprof

BENCHMARK_MAIN();
