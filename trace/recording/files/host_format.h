// The host sampler's file (host-<pid>-<start>.tph, FORMAT.md has its bytes): what the machine, its
// GPUs and the processes of the run did, some ten times a second. The writer stores what the kernel
// and NVML say, mostly ever-growing totals; the reader makes rates of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "trace/recording/wire/format.h"

namespace trainprof::recording {

inline constexpr uint64_t kHostMagic = 0x3130544C50485054;        // "TPHPLT01"
inline constexpr uint64_t kSealedHostMagic = 0x31304C5345485054;  // "TPHESL01"
inline constexpr uint32_t kHostVersion = 1;
inline constexpr char kHostPrefix[] = "host-";
inline constexpr char kStacksPrefix[] = "stacks-";  // the same bytes, other items: stack_format.h
inline constexpr char kHostSuffix[] = ".tph";
inline constexpr char kSealedHostSuffix[] = ".tphz";
// Bound of one supervisor's file; see HostBound().
inline constexpr uint64_t kMostHostBytes = uint64_t{64} << 20;

struct HostHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t ticks_per_second;  // unit of the CPU times: sysconf(_SC_CLK_TCK)
  int32_t rank;               // of the supervisor; -1: none
  int32_t pid;                // the supervisor's
  int32_t program_pid;
  uint32_t cores;  // CPUs of the machine that are online
  int64_t opened_monotonic_ns;
  int64_t opened_realtime_ns;
  char host[64];
  char boot_id[40];
  uint64_t check;  // CheckOf(everything above)
};
static_assert(sizeof(HostHeader) == 160);

// A frame: this header, then `bytes` of payload, a multiple of 8.
struct HostFrameHeader {
  static constexpr uint32_t kMagic = 0x4D465054;  // "TPFM"
  static constexpr uint8_t kDelta = 1;
  static constexpr uint8_t kKey = 2;  // restates everything: reading may begin here
  uint32_t magic;
  uint8_t kind;
  uint8_t stream;  // frames of one stream build on each other
  uint16_t reserved;
  uint32_t bytes;
  uint32_t check;  // low half of CheckOf(payload), with `kind`, `stream` and `bytes` mixed in
};
static_assert(sizeof(HostFrameHeader) == 16);
inline constexpr uint8_t kProcStream = 0;
inline constexpr uint8_t kNvmlStream = 1;
inline constexpr uint8_t kStackStream = 2;  // in a file of its own
inline constexpr uint8_t kHostStreams = 3;
inline constexpr uint32_t kMostFrameBytes = 4 << 20;

enum class HostItem : uint8_t { kPadding = 0, kDefine = 1, kEnd = 2, kValues = 3, kFact = 4 };

enum class HostEntityKind : uint8_t {
  kMachine = 1,
  kCores = 2,  // metric i is the busy time of core i, in ticks
  kDisk = 3,
  kProcess = 4,
  kCgroup = 5,  // of the program
  kGpu = 6,
};

// What is sampled. `start_ticks` tells processes apart that had one pid after another.
struct HostEntity {
  HostEntityKind kind = HostEntityKind::kMachine;
  int64_t number = 0;        // pid, index of a GPU
  int64_t parent = 0;        // a process's parent
  uint64_t start_ticks = 0;  // of a process, since boot
  std::string text = {};     // a disk's or command's name; a GPU's UUID and name

  bool operator==(const HostEntity&) const = default;
};

// How a stored integer becomes what is shown. Totals grow for ever: shown is their rate from one
// sample to the next. Values are shown as they are.
enum class HostUnit : uint8_t {
  kTicksOfCore,      // total of CPU time -> % of one core
  kTicksOfMachine,   // total of CPU time -> % of all cores
  kMicroseconds,     // total of time -> % of the time
  kMilliseconds,     // the same
  kEvents,           // total -> a second
  kBytes,            // total -> MB/s (10^6)
  kValue,            // as it is
  kThousandths,      // value / 1000
  kMebibytes,        // value in bytes -> MiB
  kKilobytesPerSec,  // value in KB/s -> MB/s
  kThrottleReasons,  // value: a set of bits -> one series of 0 and 1 for each of kThrottleReasons
};
constexpr bool IsTotal(HostUnit unit) { return unit <= HostUnit::kBytes; }

// One number of an entity. Those of one family are shown together, as the series of one counter;
// "{}" in a family's name stands for the disk's name or the GPU's index.
struct HostMetric {
  HostEntityKind kind;
  uint8_t id;  // bit in the masks of kValues; never given a second meaning
  const char* family;
  const char* series;
  HostUnit unit;
};

// All of them but those of kCores, by kind; the metrics of a family stand together.
std::span<const HostMetric> HostMetrics();

struct ThrottleReason {
  uint64_t bit;
  const char* name;
};
// Of NVML's clocks event reasons those that slow a GPU that has work: not idleness, not clocks that
// somebody set.
std::span<const ThrottleReason> ThrottleReasons();

enum class MachineMetric : uint8_t {
  kUser,
  kSystem,
  kIrq,
  kSteal,
  kIoWait,
  kRunning,
  kBlocked,
  kLoad1,
  kContextSwitches,
  kMemoryAvailable,
  kSwapUsed,
  kSwapIn,
  kSwapOut,
  kMajorFaults,
  kPressureCpu,
  kPressureMemorySome,
  kPressureMemoryFull,
  kPressureIoSome,
  kPressureIoFull,
};

enum class DiskMetric : uint8_t { kRead, kWritten, kBusy, kInFlight };

enum class ProcessMetric : uint8_t {
  kUser,
  kSystem,
  kThreads,
  kResident,
  kMinorFaults,
  kMajorFaults,
  kVoluntary,
  kInvoluntary,
  kReadStorage,
  kWrittenStorage,
  kReadAny,
};

enum class CgroupMetric : uint8_t {
  kUsage,
  kThrottled,
  kThrottledPeriods,
  kCpuLimit,
  kMemory,
  kMemoryLimit,
  kOomKills,
};

enum class GpuMetric : uint8_t {
  kUtilisation,
  kMemoryUtilisation,
  kMemoryUsed,
  kMemoryTotal,
  kSmClock,
  kMemoryClock,
  kSmClockMax,
  kThrottle,
  kPower,
  kPowerLimit,
  kTemperature,
  kPcieGeneration,
  kPcieWidth,
  kPcieGenerationMax,
  kPcieWidthMax,
  kPcieSent,
  kPcieReceived,
  kUsedByRun,
};

uint32_t FrameCheck(const HostFrameHeader& header, const void* payload);

// How large a supervisor's file may become, given the bound on all segments of the run.
constexpr uint64_t HostBound(uint64_t max_bytes) {
  return max_bytes / 16 < kMostHostBytes ? max_bytes / 16 : kMostHostBytes;
}

}  // namespace trainprof::recording
