// How the parts of one profiled run find each other: the environment that `trainprof run` hands to
// the profiled process, and the names of the files in the run directory. The supervisor
// (profiler/session), the in-process collectors and the reader all take these names from here.
// Header-only and free of the C++ runtime's heavier parts: the in-process library includes it.
#pragma once

#include <atomic>
#include <cstdint>

namespace trainprof::recording {

// Environment of the profiled process tree.
inline constexpr char kEnvRunDirectory[] = "TRAINPROF_DIR";  // absolute path; it exists
inline constexpr char kEnvOptions[] = "TRAINPROF_OPTIONS";   // see CollectorOptions
// The abstract socket at which processes hand in a descriptor of their own memory, where the
// supervisor may not read it otherwise (collectors/core/own_memory.h).
inline constexpr char kEnvMemory[] = "TRAINPROF_MEMORY";

// Run directory:
//   manifest.json              written when the run ends (and, thinner, when it starts)
//   run.ctl                    RunControl, mapped by every process of the run
//   clock.tpc                  clock samples of the supervisor (ClockLog)
//   rank-00012/ or pid-1234-<place>/   one folder a rank (RANK is known) or a process without one
//     <pid>-<start>-<place>.tps   raw segment: what one process recorded (FORMAT.md)
//     <pid>-<start>-<place>.tpz   the same, sealed: by SealRecording once the process is dead
inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kControlFile[] = "run.ctl";
inline constexpr char kClockFile[] = "clock.tpc";
inline constexpr char kSegmentSuffix[] = ".tps";
inline constexpr char kSealedSuffix[] = ".tpz";

// The environment variables that name a process's rank, in the order of trust.
inline constexpr const char* kRankVariables[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
                                                 "PMI_RANK"};

// Default bound on all segments of a run together: 2 GiB, as in docs/usage.md.
inline constexpr uint64_t kDefaultMaxBytes = uint64_t{2} << 30;

// One instant on three clocks. `ticks` is what events are stamped with (ClockKind of the segment);
// the other two are CLOCK_MONOTONIC and CLOCK_REALTIME in ns. The clocks were read between two
// readings of the ticks, `bracket_ticks` apart: half of it bounds the error of the triple.
struct ClockSample {
  uint64_t ticks;
  int64_t monotonic_ns;
  int64_t realtime_ns;
  uint64_t bracket_ticks;
};
static_assert(sizeof(ClockSample) == 32);

enum class ClockKind : uint32_t {
  kNone = 0,
  kMonotonic = 1,  // ticks are CLOCK_MONOTONIC nanoseconds
  kTsc = 2,        // ticks are the invariant time stamp counter (x86)
};

// Shared by the supervisor and every recording process of a run, mapped from run.ctl. The
// supervisor creates it (CreateRun) before the profiled program starts; `used_bytes` is added to
// before a chunk is claimed, so that all processes together stay below `max_bytes`.
struct RunControl {
  static constexpr uint64_t kMagic = 0x4C54435250545254;  // "TRTPRCTL"
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kFailureBytes = 384;

  uint64_t magic;
  uint32_t version;
  ClockKind clock_kind;  // of `created`
  uint64_t max_bytes;    // UINT64_MAX: no bound
  std::atomic<uint64_t> used_bytes;
  ClockSample created;  // when the supervisor made this file
  // What happened to processes that could not even open a segment.
  std::atomic<uint32_t> failed_processes;
  std::atomic<uint32_t> failure_written;  // 1: `failure` is being written, 2: it may be read
  std::atomic<uint64_t> lost_events;
  char failure[kFailureBytes];  // the first one's cause, in words, zero-terminated
};
static_assert(sizeof(RunControl) == 464);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// TRAINPROF_OPTIONS holds "key=value" pairs joined by ';', in any order, unknown keys ignored:
//   steps=100:110      record only steps [100, 110) of each process, counted from 0
//   delay_ms=N         record nothing before N ms after the process's first event
//   duration_ms=N      record N ms from there; the program itself runs on
//   capture=NAME       record only while an NVTX range of this name is open
//   full=1             GPU detail throughout, and no thinning as the size bound comes near (the
//   bound
//                      itself is lifted by the supervisor, in RunControl)
//   gpu=off            no GPU recording
//   buffers=FOLDER     CUPTI's buffers lie there, not where the collector would put them
//   graphs=graph       a CUDA graph's launch is one row; else (node) each of its nodes is
//   command=off        the program's name is stored, not its arguments
//   clock=monotonic    stamp events with CLOCK_MONOTONIC even where the TSC is good
// steps, delay_ms, duration_ms and capture together: recorded is what all of them allow. The steps
// window closes where step B begins. Names of threads, domains and categories are always recorded.

}  // namespace trainprof::recording
