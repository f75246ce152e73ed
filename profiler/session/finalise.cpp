// What happens between the program's end and ours: seal the recording, ask for the verdict.
//
// Both run in a forked process (isolated.h): sealing meets full disks and dying file systems, and
// the analysis meets every input there is. A crash, a hang or a hunger for memory there must cost
// neither the program's exit code nor more than the time granted; a thread or running it last could
// promise neither.
#include "profiler/session/finalise.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "collectors/salvage/salvage.h"
#include "collectors/salvage/slot_files.h"
#include "profiler/doctor/gpu_state.h"
#include "trace/recording/files/host_file.h"
#include "trace/recording/files/run_lock.h"
#include "trace/recording/files/stack_file.h"
#include "trace/recording/wire/facts.h"

namespace trainprof {
namespace {

using Clock = std::chrono::steady_clock;

// Added to the deadline that SealRecording keeps by itself before it is killed.
constexpr std::chrono::milliseconds kSealGrace{400};
// Of the stack sampler's file: a tenth of a second. The report tells of a longer one.
constexpr uint64_t kMostToReadForCard = 32 << 20;
// The second Ctrl-C: the first one was the program's.
constexpr int kInterruptsThatSkipSealing = 2;

RecordingFacts FactsOf(const recording::RecordingSummary& summary, int own_rank) {
  RecordingFacts facts;
  std::set<int> ranks;
  for (const recording::ProcessSummary& process : summary.processes) {
    if (process.rank >= 0) ranks.insert(process.rank);
    const bool ours = own_rank < 0 || process.rank == own_rank;
    facts.running += ours && !process.ended ? 1 : 0;
    facts.events += process.events;
    facts.thinned += process.dropped_detail;
    facts.dropped += process.dropped_all;
    if (!process.failure.empty()) {
      ++facts.failed_processes;
      if (facts.failure.empty()) facts.failure = process.failure;
    }
  }
  facts.ranks = ranks.size();
  facts.processes = summary.processes.size();
  facts.bytes = summary.total_bytes;
  facts.dropped += summary.lost_events;
  facts.failed_processes += summary.failed_processes;
  facts.left_raw = summary.left_raw;
  if (facts.failure.empty()) facts.failure = summary.failure;
  return facts;
}

// What crosses from the process that seals.
template <class Facts, class Do>
void ForEachField(Facts& facts, Do with) {
  with("ranks", facts.ranks);
  with("processes", facts.processes);
  with("running", facts.running);
  with("events", facts.events);
  with("bytes", facts.bytes);
  with("thinned", facts.thinned);
  with("dropped", facts.dropped);
  with("dropped_by_cupti", facts.dropped_by_cupti);
  with("left_raw", facts.left_raw);
  with("failed_processes", facts.failed_processes);
  with("gpu_trouble", facts.gpu_trouble);
  with("gpu_memory", facts.gpu_memory);
  with("failure", facts.failure);
  with("without_hooks", facts.without_hooks);
}

std::string ToText(const RecordingFacts& facts) {
  nlohmann::json json;
  ForEachField(facts, [&](const char* name, const auto& field) { json[name] = field; });
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

RecordingFacts FromText(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  RecordingFacts facts;
  ForEachField(facts, [&](const char* name, auto& field) { json.at(name).get_to(field); });
  return facts;
}

class HookFacts : public recording::StackSink {
 public:
  void OnKey() override {}
  void OnProcess(const recording::HostEntity&) override {}
  void OnThread(uint32_t, int64_t, std::string_view) override {}
  void OnFrame(std::string_view, std::string_view, int64_t) override {}
  void OnStack(uint32_t, uint32_t) override {}
  void OnSample(const Sample&) override {}
  void OnFact(std::string_view key, std::string_view text) override {
    if (key.starts_with(fact::kNoHooks)) texts[std::string(key)] = text;
  }
  // By process. Empty: taken back.
  std::map<std::string, std::string> texts;
};

std::vector<std::string> WithoutHooks(const std::vector<std::filesystem::path>& sampler_files,
                                      Clock::time_point deadline) {
  HookFacts facts;
  for (const std::filesystem::path& path : sampler_files) {
    std::error_code error;
    const bool has_stacks = path.filename().string().starts_with(recording::kStacksPrefix);
    if (!has_stacks || std::filesystem::file_size(path, error) > kMostToReadForCard) continue;
    if (error || Clock::now() > deadline) continue;
    const auto file = recording::ReadHostFile(path);
    if (file.ok()) (void)recording::DecodeStackFrames(file.value().frames, facts);
  }
  std::vector<std::string> texts;
  for (auto& [key, text] : facts.texts) {
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

SealOutcome Seal(const RunPlace& place, const recording::RunDescription& run,
                 const std::vector<std::filesystem::path>& sampler_files, int interrupts,
                 SignalInbox& inbox) {
  const Clock::time_point deadline = Clock::now() + kSealLimit;
  const auto work = [&]() -> std::string {
    // Supervisors of several ranks share a folder; one seals at a time.
    if (!recording::LockRun(place.directory, deadline)) {
      throw std::runtime_error("another rank is still sealing it");
    }
    collectors::SalvageSlots(place.directory, deadline);
    collectors::RemoveStrandedSlots();
    const GpuState gpu = ReadGpuState(place.directory);
    auto summary = recording::SealRecording(place.directory, run, deadline);
    if (!summary.ok()) throw std::runtime_error(summary.error());
    RecordingFacts facts = FactsOf(summary.value(), place.rank);
    facts.without_hooks = WithoutHooks(sampler_files, deadline);
    for (const std::filesystem::path& file : sampler_files) {
      if (Clock::now() < deadline) (void)recording::SealHostFile(file).ok();  // raw reads as well
    }
    facts.gpu_trouble = gpu.trouble;
    facts.gpu_memory = gpu.memory;
    facts.dropped_by_cupti = gpu.lost;
    return ToText(facts);
  };
  IsolatedLimits limits{kSealLimit + kSealGrace};
  limits.interrupts = kInterruptsThatSkipSealing - interrupts;
  const IsolatedResult result = RunIsolated(work, limits, inbox);
  SealOutcome outcome;
  outcome.sealed = result.ok;
  outcome.interrupted = result.interrupted;
  if (result.ok) {
    outcome.facts = FromText(result.text);
  } else {
    outcome.error = result.text;
  }
  return outcome;
}

IsolatedResult AskVerdict(const VerdictRenderer& renderer, const std::filesystem::path& run_dir,
                          std::chrono::milliseconds limit, SignalInbox& inbox) {
  const auto work = [&]() -> std::string {
    auto verdict = renderer(run_dir);
    if (!verdict.ok()) throw std::runtime_error(verdict.error());
    return verdict.value();
  };
  IsolatedLimits limits{limit};
  limits.memory_bytes = kVerdictMemoryBytes;
  return RunIsolated(work, limits, inbox);
}

}  // namespace trainprof
