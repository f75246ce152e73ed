#include "profiler/doctor/machine_trial.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "profiler/doctor/gpu_state.h"
#include "profiler/doctor/machine_probe.h"
#include "profiler/process/inject.h"
#include "profiler/process/isolated.h"
#include "trace/recording/seal/sealer.h"

namespace fs = std::filesystem;

namespace trainprof {
namespace {

// A folder for temporary files, removed with all in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "trainprof-doctor-XXXXXX").string();
    if (!error && mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }  // empty: there is none

 private:
  fs::path path_;
};

// In a process of its own: cuInit loads the collector, which sets CUPTI up.
std::string SetCudaUp(const fs::path& run, const std::string& collector, const std::string& cupti) {
  // What a library prints is no part of the report.
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
  setenv(recording::kEnvRunDirectory, run.c_str(), 1);
  setenv(kCudaInjectionVariable, collector.c_str(), 1);
  if (!cupti.empty()) setenv("TRAINPROF_CUPTI", cupti.c_str(), 1);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) throw std::runtime_error("libcuda.so.1 is not installed");
  using Init = int (*)(unsigned);
  const auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  if (init == nullptr) throw std::runtime_error("libcuda.so.1 has no cuInit");
  init(0);  // whether it succeeds is another check's question
  return "";
}

}  // namespace

std::optional<std::string> TryToRecord(const std::string& cupti, SignalInbox& inbox) {
  const auto collector = FindCollector();
  const TemporaryFolder folder;
  if (!collector.ok() || folder.path().empty()) return std::nullopt;
  const fs::path run = folder.path() / "run";
  if (!recording::CreateRun(run, {}).ok()) return std::nullopt;
  const IsolatedResult trial = RunIsolated(
      [&] { return SetCudaUp(run, collector.value().string(), cupti); }, {kProbeLimit}, inbox);
  if (!trial.ok) return "a trial ended badly: " + trial.text;
  return ReadGpuState(run).trouble;
}

}  // namespace trainprof
