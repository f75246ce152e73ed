// From a recording of 10 million events on disk to the first frame of its timeline, by stages: 40
// threads that run operators, each of which launches a kernel on the thread's own stream.
//
//   cmake --preset release && cmake --build build/release --target viewer_open_benchmark
//   build/release/bin/viewer_open_benchmark       # a minute, 1 GB of disk, 4 GB of memory
//
// The recording is sealed and in the page cache. What the first frame does not need, the analysis,
// is timed behind it. TRAINPROF_BENCHMARK_EVENTS sets the number of events. Exit status: 0 the
// gate holds, 1 it does not.
#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>

#include "tests/trace/recording/rows_of.h"
#include "trace/recording/reader.h"
#include "trace/recording/sealer.h"
#include "viewer/timeline/frame.h"
#include "viewer/timeline/lane_store.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

constexpr double kMostSeconds = 1;
constexpr uint32_t kThreads = 40;
constexpr size_t kVisibleLanes = 50;  // of 18 px on a screen of 900
constexpr int32_t kWidth = 1600;

// What a thread does: a range, the call in it, the kernel.
constexpr size_t kEventsPerOperator = 3;

class Recording {
 public:
  explicit Recording(size_t events) {
    std::string pattern = (fs::temp_directory_path() / "trainprof-benchmark-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    (void)recording::CreateRun(path(), recording::RunDescription{}).ok();
    testing::SegmentWriter writer(path() / "rank-00000");
    const size_t operators = events / kEventsPerOperator / kThreads;
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      writer.BeginWriter(thread, 100 + thread);
      WriteThread(writer, thread, operators);
    }
    writer.Finish();
    (void)recording::SealRecording(path(), {},
                                   std::chrono::steady_clock::now() + std::chrono::hours(1))
        .ok();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { fs::remove_all(folder_); }
  fs::path path() const { return folder_ / "run"; }

 private:
  static void WriteThread(testing::SegmentWriter& writer, uint32_t thread, size_t operators) {
    const uint32_t call_name = writer.String("cudaLaunchKernel");
    const uint32_t kernel_name = writer.String("gemm_kernel");
    for (size_t i = 0; i < operators; ++i) {
      const auto at = static_cast<int64_t>(i) * 12'000 + 1000;
      const auto correlation = static_cast<uint32_t>(thread * operators + i + 1);
      writer.Push("aten::mm", static_cast<uint64_t>(at));
      writer.Pop(static_cast<uint64_t>(at + 9000));
      writer.Row(testing::CallOf(at + 2000, at + 5000, correlation, call_name, 100 + thread));
      const auto length = static_cast<int64_t>(4000 + i * 7919 % 6000);
      recording::DeviceRow kernel = testing::RowOf(recording::DeviceRowType::kKernel, at + 6000,
                                                   at + 6000 + length, correlation);
      kernel.name = kernel_name;
      kernel.stream = 7 + thread;
      writer.Row(kernel);
    }
  }

  fs::path folder_;
};

class Stopwatch {
 public:
  // Prints and returns the seconds since the last call.
  double Lap(const char* what) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    fmt::print("  {:<32} {:7.3f} s\n", what, seconds);
    last_ = std::chrono::steady_clock::now();
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// The lanes of the first lines, as many as a screen shows.
std::vector<const Lane*> FirstLanes(const Lines& lines, LaneStore& store) {
  std::vector<const Lane*> lanes;
  for (uint32_t line = 0; line < lines.lines().size() && lanes.size() < kVisibleLanes; ++line) {
    for (const Lane& lane : store.LanesOf(line)) lanes.push_back(&lane);
  }
  return lanes;
}

int Run() {
  const char* wanted = std::getenv("TRAINPROF_BENCHMARK_EVENTS");
  const Recording recording(wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10'000'000);
  (void)recording::ReadRecording(recording.path()).ok();  // into the page cache
  Stopwatch watch;
  auto ranks = recording::ReadRecording(recording.path());
  if (!ranks.ok()) {
    fmt::print("{}\n", ranks.error());
    return 1;
  }
  const Trace& trace = ranks.value()[0].trace;
  double seconds = watch.Lap("reading");
  const RankAnalysis none;
  const Lines lines({{&trace, &none}});
  seconds += watch.Lap("lines");
  LaneStore store(lines);
  const std::vector<const Lane*> lanes = FirstLanes(lines, store);
  seconds += watch.Lap("lanes of the first screen");
  Frame frame;
  BuildFrame(lanes, lines.extent(), kWidth, frame);
  seconds += watch.Lap("frame");
  const size_t events = trace.ranges.size() + trace.api.size() + trace.device_ops.size();
  const bool holds = seconds <= kMostSeconds;
  fmt::print(
      "{} events, {} lines, {} lanes of {} MB, {} rects: {:.2f} s to the first frame; "
      "gate {} s: {}\n",
      events, lines.lines().size(), lanes.size(), store.size_bytes() >> 20, frame.rects.size(),
      seconds, kMostSeconds, holds ? "holds" : "FAILS");
  watch = Stopwatch();
  (void)Analyze(trace);
  watch.Lap("analysis, behind the first frame");
  for (uint32_t line = 0; line < lines.lines().size(); ++line) store.LanesOf(line);
  watch.Lap("all other lanes");
  fmt::print("{:.1f} B/event in all lanes\n",
             static_cast<double>(store.size_bytes()) / static_cast<double>(events));
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace trainprof

int main() { return trainprof::Run(); }
