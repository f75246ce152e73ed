#include "trace/recording/files/host_format.h"

namespace trainprof::recording {
namespace {

template <class Id>
constexpr HostMetric Metric(Id id, const char* family, const char* series, HostUnit unit) {
  HostEntityKind kind = HostEntityKind::kMachine;
  if constexpr (std::is_same_v<Id, DiskMetric>) kind = HostEntityKind::kDisk;
  if constexpr (std::is_same_v<Id, ProcessMetric>) kind = HostEntityKind::kProcess;
  if constexpr (std::is_same_v<Id, CgroupMetric>) kind = HostEntityKind::kCgroup;
  if constexpr (std::is_same_v<Id, GpuMetric>) kind = HostEntityKind::kGpu;
  return {kind, static_cast<uint8_t>(id), family, series, unit};
}

using M = MachineMetric;
using D = DiskMetric;
using P = ProcessMetric;
using C = CgroupMetric;
using G = GpuMetric;
using U = HostUnit;

constexpr HostMetric kMetrics[] = {
    Metric(M::kUser, "CPU % of all cores", "user", U::kTicksOfMachine),
    Metric(M::kSystem, "CPU % of all cores", "system", U::kTicksOfMachine),
    Metric(M::kIrq, "CPU % of all cores", "interrupts", U::kTicksOfMachine),
    Metric(M::kSteal, "CPU % of all cores", "stolen", U::kTicksOfMachine),
    Metric(M::kIoWait, "CPU % of all cores", "waiting for I/O", U::kTicksOfMachine),
    Metric(M::kRunning, "Run queue", "running", U::kValue),
    Metric(M::kBlocked, "Run queue", "blocked", U::kValue),
    Metric(M::kLoad1, "Run queue", "load of 1 min", U::kThousandths),
    Metric(M::kContextSwitches, "Context switches/s", "all", U::kEvents),
    Metric(M::kMemoryAvailable, "Memory MiB", "available", U::kMebibytes),
    Metric(M::kSwapUsed, "Memory MiB", "swap used", U::kMebibytes),
    Metric(M::kSwapIn, "Swap MB/s", "in", U::kBytes),
    Metric(M::kSwapOut, "Swap MB/s", "out", U::kBytes),
    Metric(M::kMajorFaults, "Major page faults/s", "major", U::kEvents),
    Metric(M::kPressureCpu, "Stalled on CPU %", "some", U::kMicroseconds),
    Metric(M::kPressureMemorySome, "Stalled on memory %", "some", U::kMicroseconds),
    Metric(M::kPressureMemoryFull, "Stalled on memory %", "all", U::kMicroseconds),
    Metric(M::kPressureIoSome, "Stalled on I/O %", "some", U::kMicroseconds),
    Metric(M::kPressureIoFull, "Stalled on I/O %", "all", U::kMicroseconds),
    Metric(D::kRead, "Disk {} MB/s", "read", U::kBytes),
    Metric(D::kWritten, "Disk {} MB/s", "written", U::kBytes),
    Metric(D::kBusy, "Disk {} busy %", "busy", U::kMilliseconds),
    Metric(D::kInFlight, "Disk {} queue", "in flight", U::kValue),
    Metric(P::kUser, "CPU % of one core", "user", U::kTicksOfCore),
    Metric(P::kSystem, "CPU % of one core", "system", U::kTicksOfCore),
    Metric(P::kThreads, "Threads", "threads", U::kValue),
    Metric(P::kResident, "Resident MiB", "resident", U::kMebibytes),
    Metric(P::kMinorFaults, "Page faults/s", "minor", U::kEvents),
    Metric(P::kMajorFaults, "Page faults/s", "major", U::kEvents),
    Metric(P::kVoluntary, "Main thread's context switches/s", "voluntary", U::kEvents),
    Metric(P::kInvoluntary, "Main thread's context switches/s", "involuntary", U::kEvents),
    Metric(P::kReadStorage, "Files MB/s", "read from storage", U::kBytes),
    Metric(P::kWrittenStorage, "Files MB/s", "written to storage", U::kBytes),
    Metric(P::kReadAny, "Files MB/s", "read, caches too", U::kBytes),
    Metric(C::kUsage, "cgroup CPU %", "used", U::kMicroseconds),
    Metric(C::kThrottled, "cgroup CPU %", "throttled", U::kMicroseconds),
    Metric(C::kThrottledPeriods, "cgroup throttled periods/s", "periods", U::kEvents),
    Metric(C::kCpuLimit, "cgroup CPU limit, cores", "limit", U::kThousandths),
    Metric(C::kMemory, "cgroup memory MiB", "used", U::kMebibytes),
    Metric(C::kMemoryLimit, "cgroup memory MiB", "limit", U::kMebibytes),
    Metric(C::kOomKills, "cgroup out-of-memory kills", "kills", U::kValue),
    Metric(G::kUtilisation, "GPU {} utilisation %", "gpu", U::kValue),
    Metric(G::kMemoryUtilisation, "GPU {} utilisation %", "memory", U::kValue),
    Metric(G::kMemoryUsed, "GPU {} memory MiB", "used", U::kMebibytes),
    Metric(G::kMemoryTotal, "GPU {} memory MiB", "total", U::kMebibytes),
    Metric(G::kSmClock, "GPU {} clock MHz", "SM", U::kValue),
    Metric(G::kMemoryClock, "GPU {} clock MHz", "memory", U::kValue),
    Metric(G::kSmClockMax, "GPU {} clock MHz", "SM at most", U::kValue),
    Metric(G::kThrottle, "GPU {} throttled", "", U::kThrottleReasons),
    Metric(G::kPower, "GPU {} power W", "power", U::kThousandths),
    Metric(G::kPowerLimit, "GPU {} power W", "limit", U::kThousandths),
    Metric(G::kTemperature, "GPU {} temperature C", "temperature", U::kValue),
    Metric(G::kPcieGeneration, "GPU {} PCIe link", "generation", U::kValue),
    Metric(G::kPcieWidth, "GPU {} PCIe link", "lanes", U::kValue),
    Metric(G::kPcieGenerationMax, "GPU {} PCIe link", "generation at most", U::kValue),
    Metric(G::kPcieWidthMax, "GPU {} PCIe link", "lanes at most", U::kValue),
    Metric(G::kPcieSent, "GPU {} PCIe sent MB/s", "sent", U::kKilobytesPerSec),
    Metric(G::kPcieReceived, "GPU {} PCIe received MB/s", "received", U::kKilobytesPerSec),
    Metric(G::kUsedByRun, "GPU {} used by this run", "used", U::kValue),
};

// nvmlClocksEventReasons of nvml.h.
constexpr ThrottleReason kReasons[] = {
    {0x004, "SW power cap"},          {0x008, "HW slowdown"},         {0x010, "sync boost"},
    {0x020, "SW thermal slowdown"},   {0x040, "HW thermal slowdown"}, {0x080, "HW power brake"},
    {0x100, "display clock setting"},
};

}  // namespace

std::span<const HostMetric> HostMetrics() { return kMetrics; }
std::span<const ThrottleReason> ThrottleReasons() { return kReasons; }

uint32_t FrameCheck(const HostFrameHeader& header, const void* payload) {
  const uint64_t mixed = uint64_t{header.bytes} << 16 | header.kind << 8 | header.stream;
  return static_cast<uint32_t>((CheckOf(payload, header.bytes) ^ mixed) * 0x9E3779B97F4A7C15 >> 32);
}

}  // namespace trainprof::recording
