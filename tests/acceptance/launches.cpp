// A CUDA program that counts its own launches: what a recording must show, known beforehand. It needs no toolkit (the
// driver's API, its kernels in PTX), and the virtual GPU runs it, too.
//
// usage: launches STEPS [SECONDS]     SECONDS: behind the steps, a kernel that lasts so long, which it waits for
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/virtual_gpu/vgpu.h"

namespace {

constexpr char kKernels[] = R"(
.address_size 64
.visible .entry brief(.param .u64 unused) { ret; }
.visible .entry spin(.param .u64 lasts_ns) {
  .reg .pred %again;
  .reg .u64 %t<5>;
  ld.param.u64 %t1, [lasts_ns];
  mov.u64 %t2, %globaltimer;
around:
  mov.u64 %t3, %globaltimer;
  sub.u64 %t4, %t3, %t2;
  setp.lt.u64 %again, %t4, %t1;
  @%again bra around;
  ret;
}
)";
constexpr const char* kTargets[] = {"sm_75", "sm_60", "sm_52"};  // the oldest that a driver takes
constexpr int kBrief = 10;                                       // of a step
constexpr int kSpins = 3;
constexpr uint64_t kSpinNs = 50'000;
constexpr size_t kBytes = 16 * 1024;

void* g_driver;

template <class... Arguments>
void Call(const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(g_driver, name));
  const int result = function == nullptr ? -1 : function(arguments...);
  if (result == 0) return;
  std::fprintf(stderr, "launches: %s gives %d\n", name, result);
  std::exit(3);
}

using Handle = void*;

// A virtual GPU compiles nothing: it is told what there is.
void DeclareToVirtualGpu() {
  auto* const declare =
      reinterpret_cast<decltype(&vgpuDeclareKernel)>(dlsym(RTLD_DEFAULT, "vgpuDeclareKernel"));
  if (declare == nullptr) return;
  VgpuKernelSpec spec{};
  spec.name = "brief";
  spec.least_ns = 2'000;
  declare(nullptr, &spec);
  spec.name = "spin";
  spec.least_ns = static_cast<double>(kSpinNs);
  declare(nullptr, &spec);
}

Handle LoadKernels() {
  auto* const load =
      reinterpret_cast<int (*)(Handle*, const void*)>(dlsym(g_driver, "cuModuleLoadData"));
  for (const char* target : kTargets) {
    Handle module = nullptr;
    const std::string text = std::string(".version 6.3\n.target ") + target + kKernels;
    if (load != nullptr && load(&module, text.c_str()) == 0) return module;
  }
  std::fprintf(stderr, "launches: the driver takes none of the kernels\n");
  std::exit(3);
}

class Program {
 public:
  Program() : host_(kBytes) {
    int device = 0;
    Handle context = nullptr;
    Call("cuInit", 0U);
    Call("cuDeviceGet", &device, 0);
    Call("cuDevicePrimaryCtxRetain", &context, device);
    Call("cuCtxSetCurrent", context);
    DeclareToVirtualGpu();
    module_ = LoadKernels();
    Call("cuModuleGetFunction", &brief_, module_, "brief");
    Call("cuModuleGetFunction", &spin_, module_, "spin");
    for (Handle& stream : streams_) Call("cuStreamCreate", &stream, 1U);
    Call("cuMemAlloc_v2", &memory_, kBytes);
  }

  void Step() {
    Call("cuMemcpyHtoDAsync_v2", memory_, static_cast<const void*>(host_.data()), kBytes,
         streams_[0]);
    Call("cuMemsetD8Async", memory_, static_cast<unsigned char>(1), kBytes, streams_[1]);
    for (int i = 0; i < kBrief; ++i) Launch(brief_, 0, static_cast<unsigned>(1 + i % 2));
    for (int i = 0; i < kSpins; ++i) Launch(spin_, kSpinNs, 1);
    Call("cuMemcpyDtoHAsync_v2", static_cast<void*>(host_.data()), memory_, kBytes, streams_[0]);
    Call("cuCtxSynchronize");
    copies_ += 2;
    ++memsets_;
  }

  void Spin(double seconds) {
    const auto next = reinterpret_cast<decltype(&vgpuNextKernelTakes)>(
        dlsym(RTLD_DEFAULT, "vgpuNextKernelTakes"));
    if (next != nullptr) next(seconds * 1e9);
    Launch(spin_, static_cast<uint64_t>(seconds * 1e9), 1);
    std::printf("spinning\n");
    std::fflush(stdout);
    Call("cuCtxSynchronize");
  }

  void TellTruth() const {
    std::printf("device did %lld kernels, %lld copies, %lld memsets\n", kernels_, copies_,
                memsets_);
  }

 private:
  void Launch(Handle kernel, uint64_t argument, unsigned grid) {
    void* arguments[] = {&argument};
    Call("cuLaunchKernel", kernel, grid, 1U, 1U, 32U, 1U, 1U, 0U, streams_[kernels_ % 2],
         static_cast<void**>(arguments), static_cast<void**>(nullptr));
    ++kernels_;
  }

  Handle module_ = nullptr;
  Handle brief_ = nullptr;
  Handle spin_ = nullptr;
  Handle streams_[2] = {};
  unsigned long long memory_ = 0;
  std::vector<char> host_;
  long long kernels_ = 0;
  long long copies_ = 0;
  long long memsets_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const long steps = argc > 1 ? std::atol(argv[1]) : 100;
  g_driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (g_driver == nullptr) {
    std::fprintf(stderr, "launches: %s\n", dlerror());
    return 3;
  }
  Program program;
  const auto begin = std::chrono::steady_clock::now();
  for (long i = 0; i < steps; ++i) program.Step();
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (argc > 2) program.Spin(std::atof(argv[2]));
  std::printf("mean of %ld steps after warm-up: %.4f ms/step\n", steps,
              ms / static_cast<double>(steps > 0 ? steps : 1));
  program.TellTruth();
  return 0;
}
