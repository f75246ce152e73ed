// What happens between the program's end and ours: seal the recording, ask for the verdict.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "profiler/process/isolated.h"
#include "profiler/process/signals.h"
#include "profiler/session/naming.h"
#include "profiler/session/run_session.h"
#include "trace/recording/seal/sealer.h"

namespace trainprof {

// All that the supervisor does after the program's end when somebody waits for it to leave: a
// cancelled job is killed 2 to 5 s after the request (srt-slurm#418).
inline constexpr std::chrono::milliseconds kFinaliseLimit{1900};
// Of that, sealing; what is not sealed by then stays raw, and readable.
inline constexpr std::chrono::milliseconds kSealLimit{1400};
// For the verdict of a program that ended by itself.
inline constexpr std::chrono::milliseconds kVerdictLimit{8000};
inline constexpr uint64_t kVerdictMemoryBytes = uint64_t{4} << 30;
// A larger recording is not analysed for the card: the card names the command that does it.
inline constexpr uint64_t kVerdictMaxRecordingBytes = uint64_t{256} << 20;

// The recording in numbers, as the card shows them.
struct RecordingFacts {
  uint64_t ranks = 0;
  uint64_t processes = 0;
  // Still recording when the program ended: orphans, left unsealed. With a supervisor a rank, those
  // of our rank: the others are not ours to seal.
  uint64_t running = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;
  uint64_t thinned = 0;           // detail left out as the size bound came near
  uint64_t dropped = 0;           // not recorded at all
  uint64_t dropped_by_cupti = 0;  // lost before we got them
  uint64_t left_raw = 0;
  uint64_t failed_processes = 0;
  std::string gpu_trouble;  // why GPU work is missing, "" when it is not
  std::string gpu_memory;   // what CUPTI may take of it; "" where it does not record
  std::string failure;      // first cause of a loss that is not the size bound
  // What the stack sampler said of processes that use torch without our hooks.
  std::vector<std::string> without_hooks;
};

struct SealOutcome {
  bool sealed = false;
  bool interrupted = false;
  std::string error;  // when not sealed, why
  RecordingFacts facts;
};

// `interrupts`: SIGINTs so far; the second one ends the sealing.
// `sampler_files`: of our own sampler, which has ended.
SealOutcome Seal(const RunPlace& place, const recording::RunDescription& run,
                 const std::vector<std::filesystem::path>& sampler_files, int interrupts,
                 SignalInbox& inbox);

// The verdict's text, or why there is none. Never fails otherwise, whatever the analysis does.
IsolatedResult AskVerdict(const VerdictRenderer& renderer, const std::filesystem::path& run_dir,
                          std::chrono::milliseconds limit, SignalInbox& inbox);

}  // namespace trainprof
