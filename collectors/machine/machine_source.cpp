#include "collectors/machine/machine_source.h"

#include <unistd.h>

#include <fstream>

#include "trace/recording/wire/facts.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using recording::DiskMetric;
using recording::HostEncoder;
using recording::HostEntityKind;
using recording::MachineMetric;

// With more cores than this each core is sampled less often: bytes, not time, are the reason.
constexpr size_t kFewCores = 32;
constexpr uint32_t kManyCoresEvery = 5;
constexpr uint64_t kSectorBytes = 512;  // of /proc/diskstats, whatever the disk's own are

}  // namespace

MachineSource::MachineSource(const fs::path& root)
    : processor_(root / "proc/cpuinfo"),
      stat_(root / "proc/stat"),
      load_(root / "proc/loadavg"),
      vmstat_(root / "proc/vmstat"),
      meminfo_(root / "proc/meminfo"),
      pressure_cpu_(root / "proc/pressure/cpu"),
      pressure_memory_(root / "proc/pressure/memory"),
      pressure_io_(root / "proc/pressure/io"),
      page_bytes_(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))) {}

uint32_t MachineSource::Id(HostEncoder& out) {
  if (!machine_) machine_ = out.Add({.kind = HostEntityKind::kMachine});
  return *machine_;
}

// "model name\t: AMD EPYC 7763 64-Core Processor", of the first core: the file has a part for each.
void MachineSource::Describe(HostEncoder& out) const {
  std::ifstream file(processor_);
  std::string line;
  while (std::getline(file, line) && !line.empty()) {
    if (!line.starts_with("model name")) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) out.Fact(fact::kProcessor, line.substr(begin));
    return;
  }
}

// "cpu3 user nice system idle iowait irq softirq steal ...": old kernels end earlier.
void MachineSource::ObserveCpuLine(std::string_view line, HostEncoder& out) {
  Words words(line);
  const std::string_view name = words.Next();
  const uint64_t user = words.Number() + words.Number();
  const uint64_t system = words.Number();
  words.Skip(1);  // idle
  const uint64_t io_wait = words.Number();
  const uint64_t interrupts = words.Number() + words.Number();
  const uint64_t steal = words.Number();
  if (name == "cpu") {
    out.Observe(Id(out), MachineMetric::kUser, user);
    out.Observe(Id(out), MachineMetric::kSystem, system);
    out.Observe(Id(out), MachineMetric::kIrq, interrupts);
    out.Observe(Id(out), MachineMetric::kSteal, steal);
    out.Observe(Id(out), MachineMetric::kIoWait, io_wait);
    return;
  }
  const auto core = FirstNumber(name.substr(3));
  if (!core || *core >= 8192) return;
  const bool many = *core >= kFewCores && samples_ % kManyCoresEvery != 0;
  if (many) return;
  if (!cores_) cores_ = out.Add({.kind = HostEntityKind::kCores});
  out.Observe(*cores_, static_cast<uint32_t>(*core), user + system + interrupts + steal);
}

void MachineSource::SampleCpu(HostEncoder& out) {
  if (samples_ == 0) Describe(out);
  if (const auto text = stat_.Read(buffer_)) {
    ForEachLine(*text, [&](std::string_view line) {
      if (line.starts_with("cpu")) ObserveCpuLine(line, out);
    });
    const auto observe = [&](const char* key, MachineMetric metric) {
      if (const auto value = NumberAfter(*text, key)) out.Observe(Id(out), metric, *value);
    };
    observe("ctxt", MachineMetric::kContextSwitches);
    observe("procs_running", MachineMetric::kRunning);
    observe("procs_blocked", MachineMetric::kBlocked);
  }
  ++samples_;
  if (const auto text = load_.Read(buffer_)) {
    // "0.52 ...": two decimals.
    Words words(*text);
    const std::string_view load = words.Next();
    const size_t dot = load.find('.');
    const uint64_t whole = FirstNumber(load).value_or(0);
    const uint64_t hundredths =
        dot == std::string_view::npos ? 0 : FirstNumber(load.substr(dot + 1)).value_or(0);
    out.Observe(Id(out), MachineMetric::kLoad1, whole * 1000 + hundredths * 10);
  }
}

void MachineSource::SampleMemory(HostEncoder& out) {
  if (const auto text = vmstat_.Read(buffer_)) {
    const auto observe = [&](const char* key, MachineMetric metric, uint64_t scale) {
      if (const auto value = NumberAfter(*text, key)) out.Observe(Id(out), metric, *value * scale);
    };
    observe("pswpin", MachineMetric::kSwapIn, page_bytes_);
    observe("pswpout", MachineMetric::kSwapOut, page_bytes_);
    observe("pgmajfault", MachineMetric::kMajorFaults, 1);
  }
  if (const auto text = meminfo_.Read(buffer_)) {
    if (const auto available = NumberAfter(*text, "MemAvailable")) {
      out.Observe(Id(out), MachineMetric::kMemoryAvailable, *available << 10);
    }
    const auto swap = NumberAfter(*text, "SwapTotal");
    const auto free = NumberAfter(*text, "SwapFree");
    if (swap && free && *swap >= *free) {
      out.Observe(Id(out), MachineMetric::kSwapUsed, (*swap - *free) << 10);
    }
  }
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" (microseconds), and "full ..." the same.
void MachineSource::ObservePressure(ProcFile& file, std::optional<MachineMetric> some,
                                    std::optional<MachineMetric> full, HostEncoder& out) {
  const auto text = file.Read(buffer_);
  if (!text) return;
  ForEachLine(*text, [&](std::string_view line) {
    const auto metric = line.starts_with("some ") ? some : full;
    const size_t total = line.find(" total=");
    if (!metric || total == std::string_view::npos) return;
    if (const auto value = FirstNumber(line.substr(total + 7))) {
      out.Observe(Id(out), *metric, *value);
    }
  });
}

void MachineSource::SamplePressure(HostEncoder& out) {
  ObservePressure(pressure_cpu_, MachineMetric::kPressureCpu, std::nullopt, out);
  ObservePressure(pressure_memory_, MachineMetric::kPressureMemorySome,
                  MachineMetric::kPressureMemoryFull, out);
  ObservePressure(pressure_io_, MachineMetric::kPressureIoSome, MachineMetric::kPressureIoFull,
                  out);
}

DiskSource::DiskSource(const fs::path& root)
    : blocks_(root / "sys/block"), stats_(root / "proc/diskstats") {}

bool DiskSource::IsDisk(const std::string& name) const {
  for (const char* of_memory : {"loop", "ram", "zram", "fd", "sr"}) {
    if (name.starts_with(of_memory)) return false;
  }
  std::error_code error;
  if (!fs::is_directory(blocks_, error)) return true;  // cannot be told: better twice than never
  std::string folder = name;
  for (char& c : folder) c = c == '/' ? '!' : c;
  return fs::exists(blocks_ / folder, error);
}

// "259 0 nvme0n1 reads merged sectors ms writes merged sectors ms in-flight busy-ms ...".
void DiskSource::Sample(HostEncoder& out) {
  const auto text = stats_.Read(buffer_);
  if (!text) return;
  ForEachLine(*text, [&](std::string_view line) {
    Words words(line);
    words.Skip(2);
    const std::string_view name = words.Next();
    const uint64_t reads = words.Number();
    words.Skip(1);
    const uint64_t read = words.Number() * kSectorBytes;
    words.Skip(1);
    const uint64_t writes = words.Number();
    words.Skip(1);
    const uint64_t written = words.Number() * kSectorBytes;
    words.Skip(1);
    const uint64_t in_flight = words.Number();
    const std::string_view busy = words.Next();
    // Kernels before 2.6.25 wrote four fields for a partition. A disk that nobody uses is no news.
    if (busy.empty() || reads + writes == 0) return;
    auto known = known_.find(name);
    if (known == known_.end()) {
      const std::string text_name(name);
      std::optional<uint32_t> id;
      if (IsDisk(text_name)) id = out.Add({.kind = HostEntityKind::kDisk, .text = text_name});
      known = known_.emplace(text_name, id).first;
    }
    if (!known->second) return;
    out.Observe(*known->second, DiskMetric::kRead, read);
    out.Observe(*known->second, DiskMetric::kWritten, written);
    out.Observe(*known->second, DiskMetric::kBusy, FirstNumber(busy).value_or(0));
    out.Observe(*known->second, DiskMetric::kInFlight, in_flight);
  });
}

}  // namespace trainprof
