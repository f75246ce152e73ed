// What recording costs the thread that launches kernels, on the virtual GPU: with nothing injected,
// with the least CUPTI client there can be (the same records, thrown away), and with our library.
// The gate of the project: at most 300 ns a launch beyond that client, in the first ten seconds too, in
// which our library looks at launches by callbacks. And how many bytes an event takes. With the path of
// another build of the library that one is measured.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/benchmarks/machine_unit.h"
#include "tests/virtual_gpu/vgpu.h"
#include "trace/recording/seal/sealer.h"
#include "trace/recording/wire/layout.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

constexpr long kLaunches = 100'000;
constexpr int kRuns = 12;
constexpr int kFirstSeconds = 12;  // kFirstLaunchesNs of collectors/cupti/control.cpp, and a little
constexpr double kGateNs = 300;
constexpr double kGateRawBytes = 72;     // a launch is two events, 136 bytes of rows, and headers
constexpr double kGateSealedBytes = 12;  // half of what gzipped Chrome JSON takes
constexpr double kMebibyte = 1 << 20;

double CpuNs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// CPU time of the launching thread, of the fastest run: what else the machine does can only add.
double LaunchNs(int wait_seconds) {
  VgpuKernelSpec spec = {};
  spec.name = "_Z6kernelPf";
  spec.least_ns = 1000;
  const void* kernel = vgpuDeclareKernel(nullptr, &spec);
  void* arguments[1] = {nullptr};
  if (wait_seconds > 0) {
    cudaLaunchKernel(kernel, dim3(1), dim3(32), arguments, 0, nullptr);
    sleep(static_cast<unsigned>(wait_seconds));
  }
  double fastest = 1e12;
  for (int run = 0; run < kRuns; ++run) {
    const double begin = CpuNs();
    for (long i = 0; i < kLaunches; ++i) {
      if (cudaLaunchKernel(kernel, dim3(1), dim3(32), arguments, 0, nullptr) != cudaSuccess)
        return -1;
    }
    fastest = std::min(fastest, (CpuNs() - begin) / kLaunches);
    cudaDeviceSynchronize();
  }
  return fastest;
}

// The median of single launches and waits whose thread has used its caches for something else meanwhile, as programs
// do: what of recording is in a step. Wall clock.
struct Cold {
  double launch_ns = -1;
  double wait_ns = -1;  // beyond what the device takes; longer than what a stack is taken from
};

Cold ColdNs() {
  constexpr int kCalls = 3000;
  constexpr size_t kWords =
      96 * 1024;  // 768 KiB: more than a core's own caches hold beside our data
  std::vector<uint64_t> memory(kWords, 1);
  VgpuKernelSpec spec = {};
  spec.name = "_Z4coldPf";
  spec.least_ns = 60'000;
  const void* kernel = vgpuDeclareKernel(nullptr, &spec);
  void* arguments[1] = {nullptr};
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto ns = [](auto time) { return std::chrono::duration<double, std::nano>(time).count(); };
  std::vector<double> launches;
  std::vector<double> steps;
  for (int i = 0; i < kCalls; ++i) {
    for (uint64_t& word : memory) word = word * 3 + 1;
    const auto begin = now();
    cudaLaunchKernel(kernel, dim3(1), dim3(32), arguments, 0, nullptr);
    launches.push_back(ns(now() - begin));
    cudaStreamSynchronize(nullptr);
    steps.push_back(ns(now() - begin));
  }
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + kCalls / 2, values.end());
    return values[kCalls / 2];
  };
  const double launch = median(launches);
  return {launch, median(steps) - launch};
}

// The least client: a buffer a request, given back unread.
constexpr size_t kBufferBytes = 256 * 1024;
void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* size, size_t* most) {
  *buffer = static_cast<uint8_t*>(malloc(kBufferBytes));
  *size = kBufferBytes;
  *most = 0;
}
void CUPTIAPI TakeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) { free(buffer); }

void StartLeastClient() {
  cuptiActivityRegisterCallbacks(GiveBuffer, TakeBuffer);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1);
  cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1);
}

struct Figures {
  double launch_ns = -1;  // or of a cold one
  double wait_ns = -1;    // of a cold one
  double peak_mib = -1;
};

// LaunchNs(), or ColdNs() where wait_seconds is kCold, in a fresh process; `client`: "none", "least" or our library's
// path.
constexpr int kCold = -1;
Figures Measure(const std::string& client, const std::string& run_directory, int wait_seconds) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    if (wait_seconds != kCold) setenv("VGPU_SETTINGS", "scale=0", 1);
    setenv("LD_LIBRARY_PATH", BENCHMARK_VIRTUAL_GPU, 1);
    if (client[0] == '/') {
      setenv("CUDA_INJECTION64_PATH", client.c_str(), 1);
      setenv(recording::kEnvRunDirectory, run_directory.c_str(), 1);
      setenv(recording::kEnvOptions, "full=1", 1);
    }
    dup2(ends[1], STDOUT_FILENO);
    execl("/proc/self/exe", "cupti_overhead_benchmark", "--measure", client.c_str(),
          std::to_string(wait_seconds).c_str(), static_cast<char*>(nullptr));
    _exit(1);
  }
  close(ends[1]);
  char text[64] = {};
  const ssize_t n = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  rusage usage{};
  int status = 0;
  wait4(child, &status, 0, &usage);
  if (n <= 0 || status != 0) return {};
  Figures figures{.peak_mib = static_cast<double>(usage.ru_maxrss) * 1024 / kMebibyte};
  std::sscanf(text, "%lf %lf", &figures.launch_ns, &figures.wait_ns);
  return figures;
}

uint64_t BytesOf(const fs::path& folder, const char* suffix) {
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == suffix) bytes += entry.file_size();
  }
  return bytes;
}

const char* Verdict(bool kept) { return kept ? "kept" : "BROKEN"; }

struct Recorded {
  Figures figures;
  double raw_bytes = 0;  // an event
  double sealed_bytes = 0;
  uint64_t slot_bytes = 0;
};

Result<Recorded> MeasureRecorded(const std::string& library, int wait_seconds) {
  std::string pattern = (fs::temp_directory_path() / "trainprof-benchmark-XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  const fs::path run = folder / "run";
  recording::RunDescription description;
  description.max_bytes = UINT64_MAX;
  if (auto made = recording::CreateRun(run, description); !made.ok()) return Error{made.error()};
  Recorded recorded;
  recorded.figures = Measure(library, run.string(), wait_seconds);
  constexpr double kEvents = 2.0 * kLaunches * kRuns;
  recorded.raw_bytes = static_cast<double>(BytesOf(run, recording::kSegmentSuffix)) / kEvents;
  recorded.slot_bytes = BytesOf(run, ".slots");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  (void)recording::SealRecording(run, description, deadline);
  recorded.sealed_bytes = static_cast<double>(BytesOf(run, recording::kSealedSuffix)) / kEvents;
  fs::remove_all(folder);
  return recorded;
}

// Whether the gate is kept.
bool PrintLaunch(const char* when, const Figures& ours, const Figures& least, double gate_ns) {
  const double beyond = ours.launch_ns - least.launch_ns;
  const bool kept = ours.launch_ns > 0 && least.launch_ns > 0 && beyond <= gate_ns;
  std::printf("  recorded, %-22s %7.0f ns   %+.0f ns beyond it, gate %.0f: %s\n", when,
              ours.launch_ns, beyond, gate_ns, Verdict(kept));
  return kept;
}

int Compare(const std::string& library) {
  const Figures alone = Measure("none", "", 0);
  const Figures least = Measure("least", "", 0);
  const Result<Recorded> first = MeasureRecorded(library, 0);
  const Result<Recorded> then = MeasureRecorded(library, kFirstSeconds);
  const Figures cold_alone = Measure("none", "", kCold);
  const Result<Recorded> cold = MeasureRecorded(library, kCold);
  for (const Result<Recorded>* recorded : {&first, &then, &cold}) {
    if (recorded->ok()) continue;
    std::fprintf(stderr, "%s\n", recorded->error().c_str());
    return 1;
  }
  std::printf(
      "one launch on the virtual GPU (simulated): CPU time of the launching thread, fastest "
      "of %d runs of %ld\n",
      kRuns, kLaunches);
  std::printf("  nothing injected                 %7.0f ns\n", alone.launch_ns);
  std::printf("  the least CUPTI client           %7.0f ns\n", least.launch_ns);
  const double gate_ns = kGateNs * Slowness();
  bool kept = PrintLaunch("first 10 seconds", first.value().figures, least, gate_ns);
  kept &= PrintLaunch("then", then.value().figures, least, gate_ns);
  std::printf("a launch between other work          %7.0f ns   recorded %+.0f ns\n",
              cold_alone.launch_ns, cold.value().figures.launch_ns - cold_alone.launch_ns);
  std::printf("a wait of 60 us, with its stack      %7.0f ns   recorded %+.0f ns\n",
              cold_alone.wait_ns, cold.value().figures.wait_ns - cold_alone.wait_ns);
  const double raw = first.value().raw_bytes;
  const double sealed = first.value().sealed_bytes;
  kept &= raw > 0 && raw <= kGateRawBytes && sealed > 0 && sealed <= kGateSealedBytes;
  std::printf("bytes an event, raw                %7.1f      gate %.0f: %s\n", raw, kGateRawBytes,
              Verdict(raw > 0 && raw <= kGateRawBytes));
  std::printf("bytes an event, sealed             %7.1f      gate %.0f: %s\n", sealed,
              kGateSealedBytes, Verdict(sealed > 0 && sealed <= kGateSealedBytes));
  std::printf("buffers' file %.1f MiB, peak memory %.0f MiB, without us %.0f MiB\n",
              static_cast<double>(first.value().slot_bytes) / kMebibyte,
              first.value().figures.peak_mib, alone.peak_mib);
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace trainprof

int main(int argc, char** argv) {
  if (argc > 3 && std::string(argv[1]) == "--measure") {
    if (std::string(argv[2]) == "least") trainprof::StartLeastClient();
    const int wait = std::atoi(argv[3]);
    const trainprof::Cold cold =
        wait == trainprof::kCold ? trainprof::ColdNs() : trainprof::Cold{trainprof::LaunchNs(wait)};
    std::printf("%.3f %.3f\n", cold.launch_ns, cold.wait_ns);
    return 0;
  }
  const std::string library = argc > 1 ? argv[1] : BENCHMARK_LIBRARY;
  if (access(library.c_str(), R_OK) != 0) {
    std::fprintf(stderr, "%s cannot be read: give the path of libtrainprof_injection.so\n",
                 library.c_str());
    return 2;
  }
  return trainprof::Compare(std::filesystem::absolute(library).string());
}
