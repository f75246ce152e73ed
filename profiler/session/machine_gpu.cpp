// What this machine can record: driver, CUPTI, privileges of GPU counters, WSL, MIG.
#include <dlfcn.h>
#include <stdio.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "collectors/cupti/versions.h"
#include "profiler/session/inject.h"
#include "profiler/session/isolated.h"
#include "profiler/session/machine.h"
#include "profiler/session/machine_probe.h"
#include "profiler/session/machine_trial.h"

namespace fs = std::filesystem;

namespace trainprof {
namespace {

// capability(7): bit of CAP_SYS_ADMIN in CapEff of /proc/self/status.
constexpr int kCapSysAdmin = 21;
constexpr const char* kCuptiNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                       "libcupti.so"};
constexpr const char* kCuptiPackageFolders[] = {"nvidia/cuda_cupti/lib", "nvidia/cu13/lib",
                                                "torch/lib"};
constexpr const char* kCuptiToolkitFolders[] = {"extras/CUPTI/lib64", "lib64", "lib"};

struct Driver {
  bool loaded = false;
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
    const bool works = check.finding.find("fails") == std::string::npos;
    check.state = works ? CheckState::kOk : CheckState::kMissing;
    if (!works) check.fix = "nvidia-smi says why; in a container start it with --gpus all";
    return check;
  }
  check.finding = asked.text + suffix;
  check.fix = module.empty()
                  ? "no NVIDIA driver: GPU work cannot run here; host phases can be recorded"
                  : "the kernel module is there, its library is not: in a container start "
                    "it with --gpus all";
  return check;
}

// In the order in which the collector tries them (collectors/cupti/library.cpp).
std::vector<std::string> CuptiCandidates(const std::vector<fs::path>& package_folders) {
  std::vector<std::string> candidates;
  const auto add_existing = [&](const fs::path& folder) {
    std::error_code error;
    for (const char* name : kCuptiNames) {
      if (fs::exists(folder / name, error)) candidates.push_back((folder / name).string());
    }
  };
  for (const fs::path& packages : package_folders) {
    for (const char* folder : kCuptiPackageFolders) add_existing(packages / folder);
  }
  if (const char* named = std::getenv("TRAINPROF_CUPTI"); named != nullptr && *named != '\0') {
    return {named};
  }
  candidates.insert(candidates.end(), std::begin(kCuptiNames), std::end(kCuptiNames));
  const char* toolkit = std::getenv("CUDA_HOME");
  const fs::path home = toolkit != nullptr && *toolkit != '\0' ? toolkit : "/usr/local/cuda";
  for (const char* folder : kCuptiToolkitFolders) add_existing(home / folder);
  return candidates;
}

// "<version>\n<path>" of the first CUPTI that loads, in the order in which recording tries them:
// the one that torch ships, the toolkit's, the system's.
std::string AskCupti(const std::vector<std::string>& candidates) {
  for (const std::string& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    using GetVersion = int (*)(uint32_t*);
    const auto get_version = reinterpret_cast<GetVersion>(dlsym(library, "cuptiGetVersion"));
    uint32_t version = 0;
    if (get_version == nullptr || get_version(&version) != 0) continue;
    Dl_info where = {};
    dladdr(reinterpret_cast<void*>(get_version), &where);
    return fmt::format("{}\n{}", version, where.dli_fname == nullptr ? candidate : where.dli_fname);
  }
  throw std::runtime_error("not found in Python's packages, CUDA_HOME or the system");
}

MachineCheck CheckCupti(const std::vector<fs::path>& package_folders, SignalInbox& inbox,
                        const Driver& driver, std::string& path) {
  MachineCheck check{"cupti", "CUPTI", CheckState::kMissing, "", ""};
  const auto candidates = CuptiCandidates(package_folders);
  const IsolatedResult asked =
      RunIsolated([&] { return AskCupti(candidates); }, {kProbeLimit}, inbox);
  if (!asked.ok) {
    check.finding = asked.text;
    check.fix =
        "comes with torch for CUDA (nvidia-cuda-cupti) and with the CUDA toolkit (CUDA_HOME)";
    return check;
  }
  const size_t line_end = asked.text.find('\n');
  const int version = std::atoi(asked.text.c_str());
  path = asked.text.substr(line_end + 1);
  const int cuda_version = collectors::CudaVersionOf(static_cast<uint32_t>(version));
  check.finding = fmt::format("libcupti {} at {}", CudaVersion(cuda_version), path);
  check.state = CheckState::kOk;
  if (!driver.loaded) return check;
  check.finding += ", driver " + CudaVersion(driver.cuda_version);
  if (cuda_version / 1000 > driver.cuda_version / 1000) {
    check.state = CheckState::kMissing;
    check.fix =
        "newer than the driver: update the driver, install torch for its CUDA version, or name "
        "another libcupti in TRAINPROF_CUPTI";
  }
  return check;
}

bool HaveSysAdmin(const fs::path& root) {
  std::istringstream status(ReadWhole(root / "proc/self/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) == 0) {
      return (std::strtoull(line.c_str() + 7, nullptr, 16) >> kCapSysAdmin & 1) != 0;
    }
  }
  return false;
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
  } else if (HaveSysAdmin(root)) {
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
                          "should CUPTI refuse a slice, record on a whole GPU"};
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
                            SignalInbox& inbox) {
  MachineCheck check{"gpu_recording", "GPU recording", CheckState::kMissing, "", ""};
  const IsolatedResult asked = RunIsolated(AskCollector, {kProbeLimit}, inbox);
  if (!asked.ok) {
    check.finding = asked.text;
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
  return MachineCheck{"wsl", "WSL", CheckState::kMissing,
                      "GPU counters are not supported by the driver under WSL",
                      "changing permissions will not help; the timeline is not affected"};
}

}  // namespace

std::string DriverTrouble(SignalInbox& inbox) {
  Driver driver;
  const MachineCheck check = CheckDriver("/", inbox, driver);
  return check.state == CheckState::kOk ? "" : check.finding + ": " + check.fix;
}

std::vector<MachineCheck> CheckGpu(const MachineOptions& options,
                                   const std::vector<fs::path>& package_folders,
                                   SignalInbox& inbox) {
  Driver driver;
  std::vector<MachineCheck> checks = {CheckDriver(options.root, inbox, driver)};
  std::string cupti;
  checks.push_back(CheckCupti(package_folders, inbox, driver, cupti));
  checks.push_back(CheckCounters(options.root));
  if (auto wsl = CheckWsl(options.root)) checks.push_back(*wsl);
  if (auto mig = CheckMig(options.root)) checks.push_back(*mig);
  checks.push_back(CheckRecording(checks, cupti, inbox));
  return checks;
}

}  // namespace trainprof
