// What this machine can record: each thing that recording depends on, looked at once, with its fix.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "profiler/process/signals.h"

namespace trainprof {

enum class CheckState {
  kOk,       // works
  kMissing,  // absent or blocked: that feature is off, others work
  kInfo,     // a fact, neither good nor bad
  kFailed,   // without it `trainprof run` records nothing
};

struct MachineCheck {
  std::string id;     // "gpu_driver": stable, for scripts
  std::string title;  // "GPU driver"
  CheckState state = CheckState::kInfo;
  std::string finding;  // what was found
  std::string fix;      // what to do, empty when nothing needs doing
};

struct MachineOptions {
  std::filesystem::path root = "/";    // /proc and /sys are read below it (tests use a fake one)
  std::filesystem::path output = ".";  // where recordings would go
};

// Looks at driver, CUPTI, privileges, WSL, Python, torch, our collector, clock and disk. Libraries
// of others are loaded in forked processes with a time limit: at most some seconds in all.
std::vector<MachineCheck> CheckMachine(const MachineOptions& options, SignalInbox& inbox);

// False when a check failed: `trainprof run` would record nothing.
bool CanRecord(const std::vector<MachineCheck>& checks);

// The groups that CheckMachine puts together.
struct PythonChecks {
  std::vector<MachineCheck> checks;
  std::vector<std::filesystem::path> package_folders;  // sys.path of the active Python
};
PythonChecks CheckPython(SignalInbox& inbox);
std::vector<MachineCheck> CheckHost(const MachineOptions& options, SignalInbox& inbox);
std::vector<MachineCheck> CheckGpu(const MachineOptions& options,
                                   const std::vector<std::filesystem::path>& package_folders,
                                   SignalInbox& inbox);

// Why no program can use a GPU here, and what to do; "" when the driver works. Asked in a forked
// process with a time limit.
std::string DriverTrouble(SignalInbox& inbox);

MachineCheck CheckNvml(SignalInbox& inbox);

}  // namespace trainprof
