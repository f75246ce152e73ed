// What this machine can record: all groups of checks, and the host's own.
#include "profiler/doctor/machine.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "collectors/stacks/remote_memory.h"
#include "profiler/doctor/machine_probe.h"
#include "profiler/process/inject.h"
#include "profiler/process/isolated.h"
#include "profiler/report/text.h"

namespace fs = std::filesystem;

namespace trainprof {
namespace {

// The default size bound of a recording; with less room it ends early.
constexpr uint64_t kWantedFreeBytes = uint64_t{2} << 30;
constexpr uint64_t kNeededFreeBytes = uint64_t{64} << 20;

// Loads the collector as NVTX would and looks for the entry that NVTX calls.
std::string LoadCollector(const fs::path& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  if (dlsym(library, "InitializeInjectionNvtx2") == nullptr) {
    throw std::runtime_error("it lacks InitializeInjectionNvtx2");
  }
  return path.string();
}

MachineCheck Collector(SignalInbox& inbox) {
  MachineCheck check{"nvtx_collector", "NVTX collector", CheckState::kFailed, "", ""};
  const auto path = FindCollector();
  if (!path.ok()) {
    check.finding = "not found";
    check.fix = path.error();
    return check;
  }
  const IsolatedResult loaded =
      RunIsolated([&] { return LoadCollector(path.value()); }, {kProbeLimit}, inbox);
  check.state = loaded.ok ? CheckState::kOk : CheckState::kFailed;
  check.finding = loaded.ok ? loaded.text : "does not load: " + loaded.text;
  if (!loaded.ok) check.fix = "reinstall trainprof for this system's C library";
  return check;
}

MachineCheck InjectionSlot() {
  if (const auto holder = InjectionHolder()) {
    return {"nvtx_injection", "NVTX injection", CheckState::kFailed, "held by " + *holder,
            "unset NVTX_INJECTION64_PATH, or end that tool"};
  }
  if (InsideAnotherRun()) {
    return {"nvtx_injection", "NVTX injection", CheckState::kInfo,
            "this shell runs inside a trainprof run, which records it", ""};
  }
  return {"nvtx_injection", "NVTX injection", CheckState::kOk, "free", ""};
}

MachineCheck CudaInjectionSlot() {
  if (const auto holder = InjectionHolder(kCudaInjectionVariable)) {
    return {"cuda_injection", "CUDA injection", CheckState::kMissing, "held by " + *holder,
            "unset CUDA_INJECTION64_PATH, or end that tool: GPU work is not recorded beside it"};
  }
  return {"cuda_injection", "CUDA injection", CheckState::kOk, "free", ""};
}

MachineCheck Clock(const fs::path& root) {
  const std::string source =
      ReadLine(root / "sys/devices/system/clocksource/clocksource0/current_clocksource");
  const std::string cpu = ReadWhole(root / "proc/cpuinfo");
  const bool invariant =
      cpu.find("constant_tsc") != std::string::npos && cpu.find("nonstop_tsc") != std::string::npos;
  const std::string name = source.empty() ? "unknown clock source" : "clock source " + source;
  if (invariant) {
    return {"clock", "Clock", CheckState::kOk, name + ", invariant TSC: ~10 ns a time stamp", ""};
  }
  return {"clock", "Clock", CheckState::kInfo,
          name + ", no invariant TSC: time stamps by clock_gettime, ~20 to 50 ns", ""};
}

// Python stacks are read from outside the process (collectors/stacks), which Yama and containers'
// rules may forbid.
MachineCheck Stacks(const fs::path& root) {
  constexpr int kCapSysPtrace = 19;  // capability(7)
  MachineCheck check{"python_stacks", "Python stacks", CheckState::kOk, "may be read", ""};
  // Where a container's rules refuse it, they refuse it to all.
  const char here = 1;
  char copy = 0;
  RemoteMemory memory(getpid());
  if (!memory.Read(reinterpret_cast<uintptr_t>(&here), copy)) {
    check.state = CheckState::kMissing;
    check.finding = "may not be read: process_vm_readv and /proc/PID/mem: " +
                    std::string(strerror(memory.error()));
    check.fix = "allow process_vm_readv in the container's seccomp rules";
    return check;
  }
  const int scope = std::atoi(ReadLine(root / "proc/sys/kernel/yama/ptrace_scope").c_str());
  if (scope == 0 || (scope < 3 && HaveCapability(root, kCapSysPtrace))) return check;
  // Processes with our hooks hand in their memory (collectors/stacks/given_memory.h).
  check.state = CheckState::kInfo;
  check.finding = fmt::format("of {}processes that use torch alone (ptrace_scope {})",
                              scope == 1 ? "the program itself, and of " : "", scope);
  check.fix = scope == 3
                  ? "start the machine with kernel.yama.ptrace_scope=0"
                  : "sudo sysctl kernel.yama.ptrace_scope=0, or docker run --cap-add SYS_PTRACE";
  return check;
}

MachineCheck Disk(const fs::path& output) {
  MachineCheck check{"disk", "Output folder", CheckState::kOk, "", ""};
  std::error_code error;
  fs::path folder = fs::absolute(output, error).lexically_normal();
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  struct statvfs room = {};
  if (!fs::is_directory(folder, error) || access(folder.c_str(), W_OK | X_OK) != 0 ||
      statvfs(folder.c_str(), &room) != 0 || (room.f_flag & ST_RDONLY) != 0) {
    check.state = CheckState::kFailed;
    check.finding = folder.string() + " cannot be written";
    check.fix = "go to a folder of yours, or name one with trainprof run -o";
    return check;
  }
  const uint64_t free_bytes = static_cast<uint64_t>(room.f_bavail) * room.f_frsize;
  check.finding = fmt::format("{}, {} free", folder.string(), HumanBytes(free_bytes));
  if (free_bytes >= kWantedFreeBytes) return check;
  check.state = free_bytes < kNeededFreeBytes ? CheckState::kFailed : CheckState::kInfo;
  check.fix = "a recording takes up to 2 GiB: make room, or set trainprof run --max-size";
  return check;
}

}  // namespace

std::string ReadWhole(const fs::path& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string ReadLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool HaveCapability(const fs::path& root, int number) {
  std::istringstream status(ReadWhole(root / "proc/self/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) == 0) {
      return (std::strtoull(line.c_str() + 7, nullptr, 16) >> number & 1) != 0;
    }
  }
  return false;
}

std::vector<MachineCheck> CheckHost(const MachineOptions& options, SignalInbox& inbox) {
  return {Collector(inbox),    InjectionSlot(),      CudaInjectionSlot(),
          Clock(options.root), Stacks(options.root), Disk(options.output)};
}

std::vector<MachineCheck> CheckMachine(const MachineOptions& options, SignalInbox& inbox) {
  std::vector<MachineCheck> checks = CheckHost(options, inbox);
  const PythonChecks python = CheckPython(inbox);
  checks.insert(checks.end(), python.checks.begin(), python.checks.end());
  const auto gpu = CheckGpu(options, python.package_folders, inbox);
  checks.insert(checks.end(), gpu.begin(), gpu.end());
  checks.push_back(CheckNvml(inbox));
  return checks;
}

bool CanRecord(const std::vector<MachineCheck>& checks) {
  return std::none_of(checks.begin(), checks.end(),
                      [](const MachineCheck& check) { return check.state == CheckState::kFailed; });
}

}  // namespace trainprof
