// Reading a recording: raw and sealed segments to a Trace, and what sealing costs and saves.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/trace/recording/segment_writer.h"
#include "trace/recording/reader.h"
#include "trace/recording/sealer.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 200'000;  // of five ranges

// A run of one dead process: steps of data, forward, backward and optimizer.
class Run {
 public:
  Run() {
    std::string pattern = (fs::temp_directory_path() / "trainprof-benchmark-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    recording::RunDescription description;
    (void)recording::CreateRun(path(), description).ok();
    testing::SegmentWriter writer(path() / "rank-00000");
    writer.BeginWriter(0, 100);
    uint64_t ticks = 1'000'000;
    for (int64_t step = 0; step < kSteps; ++step) {
      writer.Push("step", ticks += 100);
      for (const char* phase : {"data", "forward", "backward", "optimizer"}) {
        writer.Push(phase, ticks += 500 + static_cast<uint64_t>(step * 7919 % 1000));
        writer.Pop(ticks += 5000 + static_cast<uint64_t>(step * 104729 % 3000));
      }
      writer.Pop(ticks += 100);
    }
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

 private:
  fs::path folder_;
};

void Read(benchmark::State& state, bool sealed) {
  const Run run;
  if (sealed) {
    (void)recording::SealRecording(run.path(), {},
                                   std::chrono::steady_clock::now() + std::chrono::hours(1))
        .ok();
  }
  size_t ranges = 0;
  for (auto _ : state) {
    auto ranks = recording::ReadRecording(run.path());
    if (!ranks.ok()) return state.SkipWithError(ranks.error().c_str());
    ranges = ranks.value()[0].trace.ranges.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(ranges));
  state.counters["bytes_per_range"] =
      static_cast<double>(run.Bytes()) / static_cast<double>(std::max<size_t>(ranges, 1));
}
BENCHMARK_CAPTURE(Read, raw, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Read, sealed, true)->Unit(benchmark::kMillisecond);

// The gate: opening reads headers, whatever the size.
void Summarize(benchmark::State& state) {
  const Run run;
  (void)recording::SealRecording(run.path(), {},
                                 std::chrono::steady_clock::now() + std::chrono::hours(1))
      .ok();
  for (auto _ : state) {
    benchmark::DoNotOptimize(recording::SummarizeRecording(run.path()).ok());
  }
}
BENCHMARK(Summarize)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace trainprof

BENCHMARK_MAIN();
