// From a recording of 10 million events on disk (large_recording.h) to the first frame of its
// timeline, by stages.
//
//   cmake --preset release && cmake --build build/release --target viewer_open_benchmark
//   build/release/bin/viewer_open_benchmark       # two minutes, 1 GB of disk, 4 GB of memory
//
// The recording is sealed and in the page cache; of five openings the fastest counts, as other
// programs use the machine, too. What the first frame does not need, the analysis, is timed behind
// it; then the same events as a job of 64 ranks, until the first of them can be drawn.
// TRAINPROF_BENCHMARK_EVENTS sets the number of events. Exit status: 0 the gate holds, 1 it does
// not.
#include <fmt/format.h>
#include <malloc.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "tests/benchmarks/large_recording.h"
#include "tests/benchmarks/machine_unit.h"
#include "trace/base/parallel.h"
#include "trace/base/spare_blocks.h"
#include "trace/recording/read/reader.h"
#include "viewer/document/document.h"
#include "viewer/timeline/frame.h"
#include "viewer/timeline/lane_store.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

constexpr double kMostSeconds = 0.8;
constexpr size_t kVisibleLanes = 50;  // of 18 px on a screen of 900
constexpr int32_t kWidth = 1600;

class Stopwatch {
 public:
  // The seconds since the last call.
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// The lanes of the first lines, as many as a screen shows; each frame asks for them until they are there.
std::vector<FrameLane> FirstLanes(const Lines& lines, LaneStore& store) {
  uint32_t visible = 0;
  for (size_t lanes = 0; visible < lines.lines().size() && lanes < kVisibleLanes; ++visible) {
    lanes += lines.lines()[visible].lanes;
  }
  for (bool is_whole = false; !is_whole;) {
    is_whole = true;
    for (uint32_t line = 0; line < visible; ++line) is_whole = store.Ask(line) && is_whole;
    store.Trim(SIZE_MAX);
    if (!is_whole) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::vector<FrameLane> lanes;
  for (uint32_t line = 0; line < visible; ++line) {
    for (const Lane& lane : store.LanesOf(line)) lanes.push_back(&lane);
  }
  return lanes;
}

struct Opening {
  double reading = 0;
  double lines = 0;
  double lanes = 0;
  double frame = 0;
  double analysis = 0;
  double other_lanes = 0;
  size_t events = 0;
  size_t lane_bytes = 0;

  double ToFirstFrame() const { return reading + lines + lanes + frame; }
};

Opening Open(const fs::path& path) {
  Opening opening;
  Stopwatch watch;
  auto ranks = recording::ReadRecording(path);
  opening.reading = watch.Lap();
  if (!ranks.ok()) {
    fmt::print("{}\n", ranks.error());
    return opening;
  }
  const Trace& trace = ranks.value()[0].trace;
  const RankAnalysis none;
  const std::vector<DeviceAccount> no_accounts;  // as a document has them before its analysis
  const Lines lines({{&trace, &none, &no_accounts}});
  opening.lines = watch.Lap();
  LaneStore store(lines);
  const std::vector<FrameLane> lanes = FirstLanes(lines, store);
  opening.lanes = watch.Lap();
  Frame frame;
  BuildFrame(lanes, lines.extent(), kWidth, frame);
  opening.frame = watch.Lap();
  (void)Analyze(trace);
  opening.analysis = watch.Lap();
  for (uint32_t line = 0; line < lines.lines().size(); ++line) store.LanesOf(line);
  opening.other_lanes = watch.Lap();
  opening.events = trace.ranges.size() + trace.api.size() + trace.device_ops.size();
  opening.lane_bytes = store.size_bytes();
  return opening;
}

// The same as the window does it: until the first rank can be drawn, and until all is analysed.
std::pair<double, double> OpenDocument(const fs::path& path) {
  Stopwatch watch;
  Document document(path);
  while (!document.Update() && !document.progress().done) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const double to_first_lines = watch.Lap();
  while (!document.progress().done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return {to_first_lines, to_first_lines + watch.Lap()};
}

// From here on the highest memory is counted anew, without what writing the recording took.
void ForgetPeakMemory() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;
}

int64_t PeakMemoryBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib << 10;
  }
  return 0;
}

size_t WantedEvents() {
  const char* wanted = std::getenv("TRAINPROF_BENCHMARK_EVENTS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10'000'000;
}

bool Holds(RowOrder order, double most_seconds) {
  const LargeRecording recording(WantedEvents(), order);
  ForgetPeakMemory();
  constexpr int kOpenings = 5;
  Opening best = Open(recording.path());
  for (int i = 1; i < kOpenings; ++i) {
    const Opening opening = Open(recording.path());
    if (opening.ToFirstFrame() < best.ToFirstFrame()) best = opening;
  }
  const auto per_event = [&](size_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<size_t>(best.events, 1));
  };
  const bool holds = best.events > 0 && best.ToFirstFrame() <= most_seconds;
  fmt::print("{} events, rows {}: {:.2f} s to the first frame; gate {:.2f} s: {}\n", best.events,
             order == RowOrder::kAsInTables ? "in order" : "as collected", best.ToFirstFrame(),
             most_seconds, holds ? "holds" : "FAILS");
  fmt::print(
      "  reading {:.3f} s, lines {:.3f} s, lanes of the first screen {:.3f} s, frame {:.3f} s\n",
      best.reading, best.lines, best.lanes, best.frame);
  fmt::print("  behind it: analysis {:.3f} s, all other lanes {:.3f} s\n", best.analysis,
             best.other_lanes);
  fmt::print("  {:.2f} B/event on disk, {:.1f} B/event in all lanes; at most {} MB of memory\n",
             per_event(recording.Bytes()), per_event(best.lane_bytes), PeakMemoryBytes() >> 20);
  ForgetPeakMemory();
  std::pair<double, double> fastest = OpenDocument(recording.path());
  for (int i = 1; i < kOpenings; ++i) {
    fastest = std::min(fastest, OpenDocument(recording.path()));
  }
  const auto [to_first_lines, to_the_end] = fastest;
  fmt::print(
      "  as a document: {:.3f} s to the first lines, {:.3f} s until all is analysed; at most {} "
      "MB\n",
      to_first_lines, to_the_end, PeakMemoryBytes() >> 20);
  return holds;
}

void OpenManyRanks() {
  constexpr uint32_t kRanks = 64;
  const LargeRecording recording(WantedEvents(), RowOrder::kAsCollected, kRanks);
  std::pair<double, double> fastest = OpenDocument(recording.path());
  fastest = std::min(fastest, OpenDocument(recording.path()));
  fmt::print("{} ranks: {:.3f} s to the first one's lines, {:.3f} s until all are analysed\n",
             kRanks, fastest.first, fastest.second);
}

int Run() {
  const double most_seconds = kMostSeconds * Slowness();
  const bool in_order = Holds(RowOrder::kAsInTables, most_seconds);
  const bool as_collected = Holds(RowOrder::kAsCollected, most_seconds);
  OpenManyRanks();
  return in_order && as_collected ? 0 : 1;
}

}  // namespace
}  // namespace trainprof

int main() {
  trainprof::ShareOneHeap();
  trainprof::KeepSpareBlocks();  // as the viewer's
  return trainprof::Run();
}
