// The proving ground: training loops with known habits, on the virtual GPU. A scenario draws its costs
// from a seed, runs a loop with each of its habits on or off, and says what a step took. What a
// profiler says of the loop can then be judged (score.py): the same loop without the habit is the truth.
//
//   const Registered item("item", "reads the loss in each step", [](Run& run) {
//     const cudaStream_t stream = NewStream();
//     const Net net({.device_us = run.Draw(1500, 4000)});
//     Habit& item = run.Has("item", "host-sync");
//     run.Steps(stream, [&](int64_t) {
//       net.Step(stream);
//       if (item) {
//         item.At();
//         Check(cudaStreamSynchronize(stream));
//       }
//     });
//   });
//
// All costs are drawn before the habit is asked about, so that on and off differ in the habit alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace scenarios {

// A line of the caller's source: std::source_location, which Clang 14 does not have.
struct SourceLine {
  const char* file;
  unsigned line;

  static constexpr SourceLine Here(const char* file = __builtin_FILE(),
                                   unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

// Ends the program where CUDA reports an error.
void Check(cudaError_t status, SourceLine here = SourceLine::Here());

// What the loop does needlessly.
class Habit {
 public:
  Habit(std::string name, std::string kind, std::string range, bool on)
      : name_(std::move(name)), kind_(std::move(kind)), range_(std::move(range)), on_(on) {}

  explicit operator bool() const { return on_; }
  // The habit's call stands in the lines that follow, within kLines.
  void At(SourceLine here = SourceLine::Here());
  std::string Json() const;

 private:
  static constexpr unsigned kLines = 5;

  std::string name_;
  std::string kind_;   // score.py knows which rules and classes may name it
  std::string range_;  // of the user, around it; may be empty
  std::string file_;   // of At()
  unsigned line_ = 0;
  bool on_;
};

struct Options {
  std::string scenario;
  std::vector<std::string> habits;  // that are on: names, or "on" for all; "off" is nobody's name
  uint64_t seed = 1;
  int64_t steps = 0;   // 0: the scenario's own number
  bool quiet = false;  // asks for a processor that nobody else gets (SCHED_FIFO)
  bool plain =
      false;  // without what a seed adds to any scenario: an "epoch" range, a logging thread
};

class Run {
 public:
  explicit Run(const Options& options);

  // Uniform in [least, greatest]; the same for a seed, whatever is on.
  double Draw(double least, double greatest);
  int64_t DrawInt(int64_t least, int64_t greatest);  // both included
  // For what comes every few steps: so many that the steps of a recording hold whole rounds of it, so that its
  // mean is that of all.
  int64_t DrawEvery(int64_t least, int64_t greatest);
  // A habit of this scenario, with its name for the command line.
  Habit& Has(const std::string& name, const std::string& kind, const std::string& range = "");
  // A setting of the virtual GPU (docs/virtual_gpu.md). Before the first CUDA call.
  void Machine(const char* setting, double value);
  // The scenario's own number of steps, where 60 do not show it.
  void Take(int64_t steps);
  // The loop does not repeat itself: its first steps are unlike the later ones.
  void IsUnsteady() { steady_ = false; }

  // Runs the loop: `step` in its NVTX range "step", numbered from 0. A step ends when what was issued to
  // `stream` in it has ended; the mean is of all steps but the first kLeadIn, by the device's clock.
  void Steps(cudaStream_t stream, const std::function<void(int64_t)>& step);

  // One line of JSON: who ran and what a step took.
  std::string Truth() const;

  static constexpr int64_t kLeadIn =
      10;  // queues fill; also what a recording sets aside as warm-up

 private:
  Options options_;
  std::mt19937_64 random_;
  std::deque<Habit> habits_;
  int64_t steps_ = 60;
  bool steady_ = true;
  bool has_epoch_ = false;
  bool has_logger_ = false;
  bool is_quiet_ = false;
  double mean_ms_ = 0;
  double host_mean_ms_ = 0;
  double kernel_ms_ = 0;
};

struct Scenario {
  std::string name;
  std::string what;  // it does, in a few words
  std::function<void(Run&)> run;
};

// In the order of names.
std::vector<Scenario>& AllScenarios();

struct Registered {
  Registered(const char* name, const char* what, std::function<void(Run&)> run);
};

}  // namespace scenarios
