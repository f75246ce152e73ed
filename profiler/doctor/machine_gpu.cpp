// What this machine can record: driver, CUPTI, privileges of GPU counters, WSL, MIG.
#include <dlfcn.h>
#include <stdio.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "collectors/cupti/hw_trace.h"
#include "collectors/cupti/library_answer.h"
#include "profiler/doctor/machine.h"
#include "profiler/doctor/machine_probe.h"
#include "profiler/doctor/machine_trial.h"
#include "profiler/process/inject.h"
#include "profiler/process/isolated.h"

namespace fs = std::filesystem;

namespace trainprof {
namespace {

constexpr char kNoDriver[] =
    "no NVIDIA driver: GPU work cannot run here; host phases can be recorded";

constexpr int kCapSysAdmin = 21;  // capability(7)

struct Driver {
  bool loaded = false;
  bool works = false;
  int cuda_version = 0;
};

std::string CudaVersion(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Asks libcuda.so.1 in this (forked) process: "<version>\n<text>".
std::string AskDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error("libcuda.so.1 is not installed");
  using GetVersion = int (*)(int*);
  using Init = int (*)(unsigned);
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(library, "cuDriverGetVersion"));
  const auto init = reinterpret_cast<Init>(dlsym(library, "cuInit"));
  const auto count_devices = reinterpret_cast<GetVersion>(dlsym(library, "cuDeviceGetCount"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) {
    throw std::runtime_error("libcuda.so.1 loads but does not tell its version");
  }
  // A collector of another tool must not wake up in our probe.
  unsetenv("CUDA_INJECTION64_PATH");
  const int status = init == nullptr ? -1 : init(0);
  int devices = 0;
  std::string text = "CUDA " + CudaVersion(version);
  if (status != 0) {
    text += fmt::format(", cuInit fails with error {}", status);
  } else if (count_devices != nullptr && count_devices(&devices) == 0) {
    text += fmt::format(", {} GPU{}", devices, devices == 1 ? "" : "s");
  }
  return fmt::format("{}\n{}", version, text);
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ..." -> "550.54.15".
std::string KernelModuleVersion(const fs::path& root) {
  std::istringstream words(ReadLine(root / "proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    const bool version =
        std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos;
    if (version) return word;
  }
  return {};
}

MachineCheck CheckDriver(const fs::path& root, SignalInbox& inbox, Driver& driver) {
  MachineCheck check{"gpu_driver", "GPU driver", CheckState::kMissing, "", ""};
  const IsolatedResult asked = RunIsolated(AskDriver, {kProbeLimit}, inbox);
  const std::string module = KernelModuleVersion(root);
  const std::string suffix = module.empty() ? "" : ", kernel module " + module;
  if (asked.ok) {
    const size_t line_end = asked.text.find('\n');
    driver.loaded = true;
    driver.cuda_version = std::atoi(asked.text.c_str());
    check.finding = asked.text.substr(line_end + 1) + suffix;
    driver.works = check.finding.find("fails") == std::string::npos;
    check.state = driver.works ? CheckState::kOk : CheckState::kMissing;
    if (!driver.works) check.fix = "nvidia-smi says why; in a container start it with --gpus all";
    return check;
  }
  check.finding = asked.text + suffix;
  check.fix = module.empty()
                  ? kNoDriver
                  : "the kernel module is there, its library is not: in a container start "
                    "it with --gpus all";
  return check;
}

// In the order in which the collector tries them (collectors/cupti/library.cpp), each file once.
std::vector<std::string> CuptiCandidates(const std::vector<fs::path>& package_folders) {
  if (const char* named = std::getenv("TRAINPROF_CUPTI"); named != nullptr && *named != '\0') {
    return {named};
  }
  std::vector<std::string> candidates;
  const auto add_existing = [&](const fs::path& folder) {
    std::error_code error;
    for (const char* name : collectors::kCuptiNames) {
      const fs::path path = fs::canonical(folder / name, error);
      if (error) continue;
      if (std::find(candidates.begin(), candidates.end(), path.string()) == candidates.end()) {
        candidates.push_back(path.string());
      }
    }
  };
  const auto add_toolkit = [&](const fs::path& home) {
    for (const char* folder : collectors::kCuptiToolkitFolders) add_existing(home / folder);
  };
  for (const fs::path& packages : package_folders) {
    for (const char* folder : collectors::kCuptiPackageFolders) add_existing(packages / folder);
  }
  candidates.insert(candidates.end(), std::begin(collectors::kCuptiNames),
                    std::end(collectors::kCuptiNames));
  for (const char* variable : collectors::kCudaHomeVariables) {
    const char* home = std::getenv(variable);
    if (home != nullptr && *home != '\0') add_toolkit(home);
  }
  for (const char* home : collectors::kCudaToolkits) add_toolkit(home);
  return candidates;
}

// A library and what it said.
struct CuptiAnswer {
  std::string library;
  collectors::LibraryAnswer answer;
};

// The first that can be used, else the first that is there and cannot, else nothing.
std::optional<CuptiAnswer> AskCupti(const fs::path& collector,
                                    const std::vector<std::string>& candidates) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::nanoseconds(collectors::kSearchLimitNs);
  std::optional<CuptiAnswer> first;
  for (const std::string& candidate : candidates) {
    if (Clock::now() >= end) break;
    const auto answer = collectors::AskLibrary(collector.c_str(), "libcuda.so.1", candidate.c_str(),
                                               collectors::kAnswerLimitNs);
    if (answer.report.verdict == collectors::LibraryVerdict::kUsable) {
      return CuptiAnswer{candidate, answer};
    }
    std::error_code error;
    const bool absent = answer.report.verdict == collectors::LibraryVerdict::kNotLoaded &&
                        (candidate.find('/') == std::string::npos || !fs::exists(candidate, error));
    if (!first && !absent) first = CuptiAnswer{candidate, answer};
  }
  return first;
}

// As the collector says it in the end card.
std::string WhyNotUsed(const fs::path& collector, const CuptiAnswer& asked) {
  char trouble[256] = "";
  if (collectors::DriverMayBeTheCause(asked.answer)) {
    collectors::AskDriverToStart(collector.c_str(), "libcuda.so.1", collectors::kAnswerLimitNs,
                                 trouble, sizeof trouble);
  }
  char text[1536];
  collectors::DescribeAnswer(asked.library.c_str(), asked.answer, trouble, text, sizeof text);
  return text;
}

MachineCheck CheckCupti(const std::vector<fs::path>& package_folders,
                        const IsolatedResult& collector_works, const Driver& driver,
                        std::string& path) {
  MachineCheck check{"cupti", "CUPTI", CheckState::kMissing, "", ""};
  const auto collector = FindCollector();
  if (!collector_works.ok || !collector.ok()) {
    check.finding = "not asked: " + collector_works.text;
    return check;
  }
  const auto asked = AskCupti(collector.value(), CuptiCandidates(package_folders));
  if (!asked) {
    check.finding = "not found in Python's packages, CUDA_HOME or the system";
    check.fix =
        "comes with torch for CUDA (nvidia-cuda-cupti) and with the CUDA toolkit (CUDA_HOME)";
    return check;
  }
  const collectors::LibraryReport& report = asked->answer.report;
  if (report.verdict == collectors::LibraryVerdict::kUsable) {
    path = report.path;
    check.state = CheckState::kOk;
    check.finding = fmt::format("libcupti {} at {}", CudaVersion(report.cupti_version), path);
    if (driver.loaded) check.finding += ", driver " + CudaVersion(driver.cuda_version);
    char hw_trace[256];
    if (collectors::DescribeHwTrace(report.cupti_version, hw_trace, sizeof hw_trace)) {
      check.finding += fmt::format("; {}", hw_trace);
    }
    return check;
  }
  check.finding = WhyNotUsed(collector.value(), *asked);
  const bool too_new = report.verdict == collectors::LibraryVerdict::kTooNew;
  check.fix = too_new ? "newer than the driver: update the driver, install torch for its CUDA "
                        "version, or name another libcupti in TRAINPROF_CUPTI"
              : driver.works ? "install another release of nvidia-cuda-cupti, or name its path in "
                               "TRAINPROF_CUPTI"
                             : "see GPU driver";
  return check;
}

MachineCheck CheckCounters(const fs::path& root) {
  MachineCheck check{"gpu_counters", "GPU counters", CheckState::kInfo, "", ""};
  const std::string params = ReadWhole(root / "proc/driver/nvidia/params");
  const size_t at = params.find("RmProfilingAdminOnly:");
  if (at == std::string::npos) {
    check.finding = "no /proc/driver/nvidia/params to ask";
  } else if (std::atoi(params.c_str() + at + sizeof "RmProfilingAdminOnly:" - 1) == 0) {
    check.state = CheckState::kOk;
    check.finding = "open to every user";
  } else if (HaveCapability(root, kCapSysAdmin)) {
    check.state = CheckState::kOk;
    check.finding = "for administrators, and this process is one";
  } else {
    check.state = CheckState::kMissing;
    check.finding = "for administrators only (RmProfilingAdminOnly: 1); the timeline needs none";
    check.fix =
        "run with --cap-add=SYS_ADMIN, or load the driver with "
        "NVreg_RestrictProfilingToAdminUsers=0";
  }
  return check;
}

// Slices that an administrator has made of a GPU.
std::optional<MachineCheck> CheckMig(const fs::path& root) {
  std::error_code error;
  for (const auto& gpu : fs::directory_iterator(root / "proc/driver/nvidia/capabilities", error)) {
    for (const auto& entry : fs::directory_iterator(gpu.path() / "mig", error)) {
      if (entry.path().filename().string().rfind("gi", 0) != 0) continue;
      return MachineCheck{"mig", "MIG", CheckState::kInfo,
                          gpu.path().filename().string() + " is cut into MIG slices",
                          "CUPTI before 13.3 update 1 gives slices wrong UUIDs and no names"};
    }
  }
  return std::nullopt;
}

// "" when our library is built to be loaded by the driver, else why not.
std::string AskCollector() {
  const auto path = FindCollector();
  if (!path.ok()) throw std::runtime_error(path.error());
  void* library = dlopen(path.value().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  if (dlsym(library, "InitializeInjection") == nullptr) {
    throw std::runtime_error("this trainprof was built without CUDA's headers");
  }
  return "";
}

// What of all this lets GPU work be recorded.
MachineCheck CheckRecording(const std::vector<MachineCheck>& checks, const std::string& cupti,
                            const IsolatedResult& collector_works, SignalInbox& inbox) {
  MachineCheck check{"gpu_recording", "GPU recording", CheckState::kMissing, "", ""};
  if (!collector_works.ok) {
    check.finding = collector_works.text;
    check.fix = "build it where the CUDA toolkit or pip's nvidia-cuda-cupti is";
    return check;
  }
  for (const MachineCheck& needed : checks) {
    const bool decides = needed.id == "gpu_driver" || needed.id == "cupti";
    if (!decides || needed.state == CheckState::kOk) continue;
    check.finding = "not here: see " + needed.title;
    return check;
  }
  if (const auto holder = InjectionHolder(kCudaInjectionVariable)) {
    check.finding = "not in this shell: CUDA injection is held by " + *holder;
    return check;
  }
  const auto trouble = TryToRecord(cupti, inbox);
  if (trouble && !trouble->empty()) {
    check.finding = *trouble;
    return check;
  }
  check.state = CheckState::kOk;
  check.finding = "kernels, copies, memory, synchronizations, and the stacks of blocking calls";
  return check;
}

std::optional<MachineCheck> CheckWsl(const fs::path& root) {
  std::string release = ReadLine(root / "proc/sys/kernel/osrelease");
  std::transform(release.begin(), release.end(), release.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (release.find("microsoft") == std::string::npos) return std::nullopt;
  return MachineCheck{"wsl", "WSL", CheckState::kInfo,
                      "CUPTI works in WSL 2 with NVIDIA's driver 525 or later",
                      "an older one is updated on Windows"};
}

}  // namespace

std::string DriverTrouble(SignalInbox& inbox) {
  Driver driver;
  const MachineCheck check = CheckDriver("/", inbox, driver);
  if (check.state == CheckState::kOk) return "";
  return check.fix == kNoDriver ? "no NVIDIA driver here; the host is recorded without it"
                                : check.finding + ": " + check.fix;
}

std::vector<MachineCheck> CheckGpu(const MachineOptions& options,
                                   const std::vector<fs::path>& package_folders,
                                   SignalInbox& inbox) {
  Driver driver;
  std::vector<MachineCheck> checks = {CheckDriver(options.root, inbox, driver)};
  std::string cupti;
  const IsolatedResult collector_works = RunIsolated(AskCollector, {kProbeLimit}, inbox);
  checks.push_back(CheckCupti(package_folders, collector_works, driver, cupti));
  checks.push_back(CheckCounters(options.root));
  if (auto wsl = CheckWsl(options.root)) checks.push_back(*wsl);
  if (auto mig = CheckMig(options.root)) checks.push_back(*mig);
  checks.push_back(CheckRecording(checks, cupti, collector_works, inbox));
  return checks;
}

}  // namespace trainprof
