// What this machine can record: driver, CUPTI, privileges of GPU counters, WSL.
#include <dlfcn.h>
#include <stdio.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "profiler/session/isolated.h"
#include "profiler/session/machine.h"
#include "profiler/session/machine_probe.h"

namespace fs = std::filesystem;

namespace trainprof {
namespace {

// capability(7): bit of CAP_SYS_ADMIN in CapEff of /proc/self/status.
constexpr int kCapSysAdmin = 21;
// From CUDA 13.0 on cuptiGetVersion is major * 10000 + minor * 100; before, a running number.
constexpr int kFirstReadableCupti = 130000;
constexpr const char* kCuptiNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                       "libcupti.so"};
constexpr const char* kCuptiPackageFolders[] = {"nvidia/cuda_cupti/lib", "nvidia/cu13/lib"};
constexpr const char* kCuptiToolkitFolders[] = {"extras/CUPTI/lib64", "lib64"};

struct Driver {
  bool loaded = false;
  int cuda_major = 0;
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
    driver.cuda_major = std::atoi(asked.text.c_str()) / 1000;
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
  const char* toolkit = std::getenv("CUDA_HOME");
  const fs::path home = toolkit != nullptr && *toolkit != '\0' ? toolkit : "/usr/local/cuda";
  for (const char* folder : kCuptiToolkitFolders) add_existing(home / folder);
  candidates.insert(candidates.end(), std::begin(kCuptiNames), std::end(kCuptiNames));
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

// The CUDA major version that a CUPTI belongs to: by its number, else by its file's name.
int CuptiMajor(int version, const std::string& path) {
  if (version >= kFirstReadableCupti) return version / 10000;
  std::error_code error;
  const std::string name = fs::canonical(path, error).filename().string();
  const std::string_view prefix = "libcupti.so.";
  return name.rfind(prefix, 0) == 0 ? std::atoi(name.c_str() + prefix.size()) : 0;
}

MachineCheck CheckCupti(const std::vector<fs::path>& package_folders, SignalInbox& inbox,
                        const Driver& driver) {
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
  const std::string path = asked.text.substr(line_end + 1);
  const int major = CuptiMajor(version, path);
  const std::string number = version >= kFirstReadableCupti
                                 ? fmt::format("{}.{}", version / 10000, version % 10000 / 100)
                                 : fmt::format("API {}", version);
  check.finding = fmt::format("libcupti {} at {}", number, path);
  check.state = CheckState::kOk;
  if (driver.loaded && major > driver.cuda_major) {
    check.state = CheckState::kMissing;
    check.finding += fmt::format(", driver for CUDA {}", driver.cuda_major);
    check.fix = "newer than the driver: update the driver, or install torch for its CUDA version";
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

std::vector<MachineCheck> CheckGpu(const MachineOptions& options,
                                   const std::vector<fs::path>& package_folders,
                                   SignalInbox& inbox) {
  Driver driver;
  std::vector<MachineCheck> checks = {CheckDriver(options.root, inbox, driver)};
  checks.push_back(CheckCupti(package_folders, inbox, driver));
  checks.push_back(CheckCounters(options.root));
  if (auto wsl = CheckWsl(options.root)) checks.push_back(*wsl);
  checks.push_back({"gpu_recording", "GPU recording", CheckState::kMissing,
                    "this version records NVTX ranges of the host; it has no GPU collector",
                    "record GPU work with torch.profiler and give its file to trainprof analyze"});
  return checks;
}

}  // namespace trainprof
