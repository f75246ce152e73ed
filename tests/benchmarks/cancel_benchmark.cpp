// How soon loading ends when it is cancelled: a recording of 10 million events and a JSON trace of
// 500 MB, each cancelled at moments spread evenly over its loading; the worst moment of each stage
// counts. A program that quits, and a window in which another file is opened, wait as long.
//
//   cmake --preset release && cmake --build build/release --target cancel_benchmark
//   build/release/bin/cancel_benchmark            # two minutes, 1 GB of disk, 2 GB of memory
//
// TRAINPROF_BENCHMARK_EVENTS and TRAINPROF_BENCHMARK_MB set the sizes. Exit status: 0 the gate
// holds, 1 it does not.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "tests/benchmarks/large_recording.h"
#include "tests/benchmarks/machine_unit.h"
#include "tests/benchmarks/repeated_trace.h"
#include "viewer/document/document.h"

namespace trainprof {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMoments = 60;
constexpr double kMostMilliseconds = 250;  // a wait that nobody takes for a hang

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double LoadingTime(const std::filesystem::path& path) {
  const Clock::time_point begin = Clock::now();
  const Document document(path);
  while (!document.progress().done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return MillisecondsSince(begin);
}

// Of a document that is loaded: what its memory costs.
double ClosingTime(const std::filesystem::path& path) {
  auto document = std::make_unique<Document>(path);
  while (!document->progress().done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  document->Update();
  const Clock::time_point begin = Clock::now();
  document.reset();
  return MillisecondsSince(begin);
}

struct Worst {
  double to_end = 0;   // until the threads have ended, ms
  double to_free = 0;  // until the memory is given back, too
  int times = 0;
};

// What is going on, in a word: "reading run.json: 42 %, ..." -> "reading".
std::string StageOf(const LoadProgress& progress) {
  if (progress.done) return "done";
  return progress.text.substr(0, progress.text.find_first_of(" :"));
}

bool Holds(const std::filesystem::path& path, const std::string& what, double most_ms) {
  LoadingTime(path);
  const double whole = LoadingTime(path);
  std::map<std::string, Worst> worst_of;
  for (int moment = 0; moment < kMoments; ++moment) {
    auto document = std::make_unique<Document>(path);
    std::this_thread::sleep_for(
        std::chrono::duration<double, std::milli>(whole * moment / kMoments));
    Worst& worst = worst_of[StageOf(document->progress())];
    const Clock::time_point begin = Clock::now();
    document->Cancel();
    while (!document->Stopped()) std::this_thread::yield();
    worst.to_end = std::max(worst.to_end, MillisecondsSince(begin));
    document.reset();
    worst.to_free = std::max(worst.to_free, MillisecondsSince(begin));
    ++worst.times;
  }
  fmt::print("{}, loaded in {:.2f} s; closed then, {:.0f} ms; cancelled while\n", what,
             whole / 1000, ClosingTime(path));
  bool holds = true;
  for (const auto& [stage, worst] : worst_of) {
    if (stage == "done") continue;
    fmt::print("  {:10} {:2} times: ends after at most {:.0f} ms, memory free after {:.0f} ms\n",
               stage, worst.times, worst.to_end, worst.to_free);
    holds = holds && worst.to_end <= most_ms;
  }
  fmt::print("  gate {:.0f} ms: {}\n", most_ms, holds ? "holds" : "FAILS");
  return holds;
}

int Run() {
  const char* wanted = std::getenv("TRAINPROF_BENCHMARK_EVENTS");
  const size_t events = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10'000'000;
  setenv("TRAINPROF_BENCHMARK_MB", "500", 0);
  const double most_ms = kMostMilliseconds * Slowness();
  bool holds = true;
  {
    const LargeRecording recording(events, RowOrder::kAsCollected);
    holds = Holds(recording.path(), fmt::format("a recording of {} events", events), most_ms);
  }
  const RepeatedTrace json;
  return Holds(json.path(), "a JSON trace", most_ms) && holds ? 0 : 1;
}

}  // namespace
}  // namespace trainprof

int main() { return trainprof::Run(); }
