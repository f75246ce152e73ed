#include "tests/scenarios/scenario.h"

#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "tests/scenarios/vocabulary.h"
#include "tests/virtual_gpu/vgpu.h"

namespace scenarios {
namespace {

const char* Json(bool value) { return value ? "true" : "false"; }

template <class... Values>
std::string Format(const char* format, Values... values) {
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, format, values...)), '\0');
  std::snprintf(text.data(), text.size() + 1, format, values...);
  return text;
}

// Each scenario has draws of its own: FNV-1a of its name, then the seed.
uint64_t SeedOf(const Options& options) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : options.scenario) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash + options.seed;
}

// A processor that slept takes up to 0.1 ms to wake; where a run is recorded it sleeps less, and the run is the faster by
// that. None sleeps as long as this process lives, where that is allowed.
void KeepProcessorsAwake() {
  const int file = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
  const int32_t most_us = 0;
  if (file >= 0 && write(file, &most_us, sizeof most_us) != sizeof most_us) close(file);
}

// Threads made later inherit it.
bool AskForQuiet() {
  KeepProcessorsAwake();
  sched_param parameter{};
  parameter.sched_priority = kQuietPriority;
  return pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter) == 0;
}

}  // namespace

void Check(cudaError_t status, SourceLine here) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s:%u: %s\n", here.file, here.line, cudaGetErrorString(status));
  std::exit(1);
}

void Habit::At(SourceLine here) {
  file_ = here.file;
  line_ = here.line;
}

std::string Habit::Json() const {
  return Format(
      R"({"name": "%s", "kind": "%s", "on": %s, "range": "%s", "file": "%s", "lines": [%u, %u]})",
      name_.c_str(), kind_.c_str(), scenarios::Json(on_), range_.c_str(), file_.c_str(), line_,
      line_ + kLines);
}

Run::Run(const Options& options) : options_(options), random_(SeedOf(options)) {
  Machine("seed", Draw(1, 1e6));
  // Drawn in any case: what follows must not depend on it.
  const bool epoch = Draw(0, 1) < 0.3;
  const bool logger = Draw(0, 1) < 0.3;
  has_epoch_ = epoch && !options.plain;
  has_logger_ = logger && !options.plain;
  is_quiet_ = options.quiet && AskForQuiet();
}

double Run::Draw(double least, double greatest) {
  constexpr double kUnit = 1.0 / (1ULL << 53);
  return least + (greatest - least) * static_cast<double>(random_() >> 11) * kUnit;
}

int64_t Run::DrawInt(int64_t least, int64_t greatest) {
  const auto end = static_cast<double>(greatest + 1);
  return std::min(greatest, static_cast<int64_t>(Draw(static_cast<double>(least), end)));
}

int64_t Run::DrawEvery(int64_t least, int64_t greatest) {
  constexpr int64_t kRecorded = 30;  // behind the first kLeadIn
  std::vector<int64_t> possible;
  for (int64_t every = least; every <= greatest; ++every) {
    if (kRecorded % every == 0 && (steps_ - kLeadIn) % every == 0) possible.push_back(every);
  }
  return possible.at(static_cast<size_t>(DrawInt(0, static_cast<int64_t>(possible.size()) - 1)));
}

Habit& Run::Has(const std::string& name, const std::string& kind, const std::string& range) {
  const bool on = std::any_of(options_.habits.begin(), options_.habits.end(),
                              [&](const std::string& h) { return h == name || h == "on"; });
  return habits_.emplace_back(name, kind, range, on);
}

void Run::Machine(const char* setting, double value) {
  if (vgpuSet(setting, value, value) != 0) throw std::invalid_argument(setting);
}

void Run::Take(int64_t steps) { steps_ = steps; }

void Run::Steps(cudaStream_t stream, const std::function<void(int64_t)>& step) {
  if (options_.steps > 0) steps_ = options_.steps;
  if (steps_ <= kLeadIn) throw std::invalid_argument("a run has more steps than those left out");
  const std::unique_ptr<Logger> logger = has_logger_ ? std::make_unique<Logger>() : nullptr;
  const std::unique_ptr<Range> epoch = has_epoch_ ? std::make_unique<Range>("epoch") : nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  Check(cudaEventCreate(&begin));
  Check(cudaEventCreate(&end));
  VgpuCounts before{};
  std::chrono::steady_clock::time_point host_begin;
  for (int64_t i = 0; i < steps_; ++i) {
    if (i == kLeadIn) {
      Check(cudaEventRecord(begin, stream));
      vgpuGetCounts(&before);
      host_begin = std::chrono::steady_clock::now();
    }
    const Range range("step");
    step(i);
  }
  Check(cudaEventRecord(end, stream));
  Check(cudaEventSynchronize(end));
  const std::chrono::duration<double, std::milli> host =
      std::chrono::steady_clock::now() - host_begin;
  VgpuCounts after{};
  vgpuGetCounts(&after);
  float elapsed_ms = 0;
  Check(cudaEventElapsedTime(&elapsed_ms, begin, end));
  const auto counted = static_cast<double>(steps_ - kLeadIn);
  mean_ms_ = elapsed_ms / counted;
  host_mean_ms_ = host.count() / counted;
  kernel_ms_ = static_cast<double>(after.kernel_ns - before.kernel_ns) * 1e-6 / counted;
}

std::string Run::Truth() const {
  std::string habits;
  for (const Habit& habit : habits_) habits += (habits.empty() ? "" : ", ") + habit.Json();
  return Format(
             R"({"scenario": "%s", "seed": %llu, "steps": %lld, "lead_in": %lld, "mean_ms": %.6f, )"
             R"("host_mean_ms": %.6f, "kernel_ms": %.6f, "steady": %s, "quiet": %s, )"
             R"("epoch": %s, "logger": %s, "habits": [)",
             options_.scenario.c_str(), static_cast<unsigned long long>(options_.seed),
             static_cast<long long>(steps_), static_cast<long long>(kLeadIn), mean_ms_,
             host_mean_ms_, kernel_ms_, Json(steady_), Json(is_quiet_), Json(has_epoch_),
             Json(has_logger_)) +
         habits + "]}";
}

std::vector<Scenario>& AllScenarios() {
  static std::vector<Scenario> all;
  return all;
}

Registered::Registered(const char* name, const char* what, std::function<void(Run&)> run) {
  AllScenarios().push_back({name, what, std::move(run)});
}

}  // namespace scenarios
