// A program that uses CUDA in as many ways as it has modes, for the GPU collector to record: in
// plain calls of the runtime and the driver, against the virtual GPU.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/collectors/cuda_program.h"
#include "tests/virtual_gpu/vgpu.h"

namespace {

using cuda_program::Progress;

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorName(status));
  std::exit(3);
}

const void* Declare(const char* name, double nanoseconds) {
  VgpuKernelSpec spec = {};
  spec.name = name;
  spec.registers = 40;
  spec.static_shared_bytes = 1024;
  spec.least_ns = nanoseconds;
  return vgpuDeclareKernel(nullptr, &spec);
}

void Launch(const void* kernel, cudaStream_t stream) {
  void* arguments[1] = {nullptr};
  Check(cudaLaunchKernel(kernel, dim3(8, 2, 1), dim3(128, 1, 1), arguments, 2048, stream),
        "launch");
}

void LaunchMany(const void* kernel, long count) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreate(&stream), "stream");
  for (long i = 0; i < count; ++i) Launch(kernel, stream);
  Check(cudaStreamSynchronize(stream), "synchronize");
}

int Kernels(long count, double kernel_ns) {
  LaunchMany(Declare("_Z6kernelPf", kernel_ns), count);
  return 0;
}

// One kernel of 3 s, and so many brief ones behind it.
int Behind(long count) {
  Launch(Declare("_Z4slowPf", 3e9), nullptr);
  const void* brief = Declare("_Z5briefPf", 1000);
  for (long i = 0; i < count; ++i) Launch(brief, nullptr);
  Check(cudaDeviceSynchronize(), "synchronize");
  return 0;
}

// Ends while the device is still at work.
int Unfinished(long count) {
  const void* kernel = Declare("_Z6kernelPf", 50e6);
  for (long i = 0; i < count; ++i) Launch(kernel, nullptr);
  return 0;
}

// Leaves `count` kernels of a stream under way, behind which another stream has gone on.
int Leaves(long count) {
  const void* brief = Declare("_Z5briefPf", 1000);
  const void* kernel = Declare("_Z6kernelPf", 400e6);
  LaunchMany(brief, 20);
  cudaStream_t slow = nullptr;
  cudaStream_t fast = nullptr;
  Check(cudaStreamCreateWithFlags(&slow, cudaStreamNonBlocking), "stream");
  Check(cudaStreamCreateWithFlags(&fast, cudaStreamNonBlocking), "stream");
  for (long i = 0; i < count; ++i) Launch(kernel, slow);
  for (int i = 0; i < 10; ++i) Launch(brief, fast);
  Check(cudaStreamSynchronize(fast), "synchronize");
  return 0;
}

int Threads(long count) {
  const void* kernel = Declare("_Z6kernelPf", 1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([=] { LaunchMany(kernel, count); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}

int Devices(long count) {
  const void* kernel = Declare("_Z6kernelPf", 1000);
  for (int device = 0; device < 2; ++device) {
    Check(cudaSetDevice(device), "device");
    for (long i = 0; i < count; ++i) Launch(kernel, nullptr);
    Check(cudaDeviceSynchronize(), "synchronize");
  }
  void* memory[2] = {};
  for (int device = 0; device < 2; ++device) {
    Check(cudaSetDevice(device), "device");
    Check(cudaMalloc(&memory[device], 1 << 20), "malloc");
  }
  Check(cudaMemcpyPeer(memory[1], 1, memory[0], 0, 1 << 20), "peer copy");
  Check(cudaDeviceSynchronize(), "synchronize");  // the call itself does not wait
  return 0;
}

int Mixed(long) {
  const void* kernel = Declare("_Z6kernelPf", 5000);
  std::vector<char> pageable(1 << 20);
  void* pinned = nullptr;
  void* device = nullptr;
  Check(cudaMallocHost(&pinned, 1 << 20), "malloc host");
  Check(cudaMalloc(&device, 1 << 20), "malloc");
  Check(cudaMemcpy(device, pageable.data(), 1 << 20, cudaMemcpyHostToDevice), "copy");
  Check(cudaMemcpyAsync(device, pinned, 1 << 18, cudaMemcpyHostToDevice, nullptr), "copy");
  Check(cudaMemsetAsync(device, 7, 1 << 16, nullptr), "memset");
  Launch(kernel, nullptr);
  cudaEvent_t event = nullptr;
  cudaStream_t other = nullptr;
  Check(cudaEventCreate(&event), "event");
  Check(cudaStreamCreate(&other), "stream");
  Check(cudaEventRecord(event, nullptr), "record");
  Check(cudaStreamWaitEvent(other, event, 0), "wait");
  Launch(kernel, other);
  Check(cudaEventSynchronize(event), "event synchronize");
  Check(cudaMemcpy(pageable.data(), device, 4, cudaMemcpyDeviceToHost), "item");
  Check(cudaDeviceSynchronize(), "synchronize");
  Check(cudaFree(device), "free");
  return 0;
}

// A stream of device 1 waits for one of device 0; then the host for that one.
int Dependencies(long) {
  const void* kernel = Declare("_Z6kernelPf", 5000);
  cudaStream_t urgent = nullptr;
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  Check(cudaSetDevice(0), "device");
  Check(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -1), "stream");
  Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  Launch(kernel, nullptr);
  Launch(kernel, urgent);
  Check(cudaEventRecord(event, urgent), "record");
  Check(cudaSetDevice(1), "device");
  Check(cudaStreamCreate(&other), "stream");
  Check(cudaStreamWaitEvent(other, event, 0), "wait");
  Launch(kernel, other);
  Check(cudaStreamSynchronize(other), "synchronize");
  Check(cudaSetDevice(0), "device");
  Check(cudaEventSynchronize(event), "event synchronize");
  Check(cudaDeviceSynchronize(), "synchronize");
  return 0;
}

int Graph(long launches) {
  const void* kernel = Declare("_Z6kernelPf", 2000);
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreate(&stream), "stream");
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  for (int i = 0; i < 5; ++i) Launch(kernel, stream);
  cudaGraph_t graph = nullptr;
  Check(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t executable = nullptr;
  Check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
  for (long i = 0; i < launches; ++i) Check(cudaGraphLaunch(executable, stream), "graph launch");
  Check(cudaStreamSynchronize(stream), "synchronize");
  return 0;
}

int Fork(long) {
  const void* kernel = Declare("_Z6kernelPf", 1000);
  Launch(kernel, nullptr);
  Check(cudaDeviceSynchronize(), "synchronize");
  const pid_t child = fork();
  if (child == 0) {
    nvtxRangePushA("child");
    nvtxRangePop();
    void* memory = nullptr;
    std::exit(cudaMalloc(&memory, 16) == cudaSuccess ? 4 : 0);  // CUDA is dead here
  }
  int status = -1;
  waitpid(child, &status, 0);
  Launch(kernel, nullptr);
  Check(cudaDeviceSynchronize(), "synchronize");
  return status == 0 ? 0 : 5;
}

// Blocking calls, copies, and what makes a stream wait, each from a function of its own.
[[gnu::noinline]] void ReadsTheLoss(void* device) {
  float loss = 0;
  vgpuNextKernelTakes(100'000);
  Launch(Declare("_Z4lossPf", 1000), nullptr);
  Check(cudaMemcpy(&loss, device, sizeof loss, cudaMemcpyDeviceToHost), "item");
  asm volatile("" : : "r"(&loss) : "memory");
}

[[gnu::noinline]] void MakesTensorsOnTheHost(void* device) {
  const float values[4] = {1, 2, 3, 4};
  Check(cudaMemcpyAsync(device, values, sizeof values, cudaMemcpyHostToDevice, nullptr), "copy");
  asm volatile("" : : "r"(values) : "memory");
}

[[gnu::noinline]] void CopiesOnTheDevice(void* device) {
  char* const bytes = static_cast<char*>(device);
  Check(cudaMemcpyAsync(bytes + 512, bytes, 256, cudaMemcpyDefault, nullptr), "copy");
  asm volatile("" : : "r"(bytes) : "memory");
}

[[gnu::noinline]] void WaitsForAnEvent(cudaStream_t stream, cudaEvent_t event) {
  Check(cudaEventRecord(event, nullptr), "record");
  Check(cudaStreamWaitEvent(stream, event, 0), "wait");
  asm volatile("" : : "r"(&stream) : "memory");
}

void DoesNothing(void*) {}

[[gnu::noinline]] void CallsTheHost(cudaStream_t stream) {
  Check(cudaLaunchHostFunc(stream, DoesNothing, nullptr), "host function");
  asm volatile("" : : "r"(&stream) : "memory");
}

int Stacks(long count) {
  void* device = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  Check(cudaMalloc(&device, 1024), "malloc");
  Check(cudaStreamCreate(&stream), "stream");
  Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  for (long i = 0; i < count; ++i) {
    ReadsTheLoss(device);
    MakesTensorsOnTheHost(device);
    CopiesOnTheDevice(device);
    WaitsForAnEvent(stream, event);
    CallsTheHost(stream);
  }
  Check(cudaDeviceSynchronize(), "synchronize");
  return 0;
}

int Steps(long count, long milliseconds, double kernel_ns) {
  const void* kernel = Declare("_Z6kernelPf", kernel_ns);
  for (long i = 0; i < count; ++i) {
    nvtxRangePushA("step");
    Launch(kernel, nullptr);
    Check(cudaDeviceSynchronize(), "synchronize");
    usleep(static_cast<useconds_t>(milliseconds) * 1000);
    nvtxRangePop();
  }
  return 0;
}

// Steps that wait for nothing, and threads that launch beside them, so that work is under way at any time.
int Loaded(long count, double kernel_ns) {
  const void* kernel = Declare("_Z6kernelPf", kernel_ns);
  std::atomic<bool> ends = false;
  const auto launch_on = [&](const std::atomic<bool>* until) {
    cudaStream_t stream = nullptr;
    Check(cudaStreamCreate(&stream), "stream");
    for (long i = 0; until != nullptr ? !until->load() : i < count; ++i) {
      if (until == nullptr) nvtxRangePushA("step");
      Launch(kernel, stream);
      Launch(kernel, stream);
      usleep(500);
      if (until == nullptr) nvtxRangePop();
    }
    Check(cudaStreamSynchronize(stream), "synchronize");
  };
  std::thread beside([&] { launch_on(&ends); });
  launch_on(nullptr);
  ends = true;
  beside.join();
  return 0;
}

// From step 120 on each launches a graph that was made there, between two windows of detail.
int GraphSteps(long count) {
  const void* kernel = Declare("_Z6kernelPf", 1000);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  Check(cudaStreamCreate(&stream), "stream");
  for (long i = 0; i < count; ++i) {
    nvtxRangePushA("step");
    Launch(kernel, stream);
    if (i == 120) {
      Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
      Launch(kernel, stream);
      Check(cudaStreamEndCapture(stream, &graph), "capture");
      Check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
    }
    if (executable != nullptr) Check(cudaGraphLaunch(executable, stream), "graph launch");
    Check(cudaStreamSynchronize(stream), "synchronize");
    usleep(5000);
    nvtxRangePop();
  }
  return 0;
}

// A range as NCCL makes them: a schema with a number of its own, the payload in the event.
int Payload(long count) {
  struct AllReduce {
    uint64_t communicator;
    size_t bytes;
    int operation;
  };
  constexpr uint64_t kOperations = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 11;
  const nvtxPayloadSchemaEntry_t entries[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", nullptr, 0,
       offsetof(AllReduce, communicator), nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", nullptr, 0,
       offsetof(AllReduce, bytes), nullptr, nullptr},
      {0, kOperations, "Reduction operation", nullptr, 0, offsetof(AllReduce, operation), nullptr,
       nullptr},
  };
  nvtxPayloadSchemaAttr_t schema = {};
  schema.fieldMask =
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.name = "ncclAllReduce";
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = 3;
  schema.payloadStaticSize = sizeof(AllReduce);
  schema.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 3;
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  if (nvtxPayloadSchemaRegister(domain, &schema) != schema.schemaId) return 6;
  const nvtxPayloadEnum_t operations[] = {{"Sum", 0, 0}, {"Product", 1, 0}, {"Max", 2, 0}};
  nvtxPayloadEnumAttr_t enumeration = {};
  enumeration.fieldMask =
      NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
      NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  enumeration.entries = operations;
  enumeration.numEntries = 3;
  enumeration.sizeOfEnum = sizeof(int);
  enumeration.schemaId = kOperations;
  if (nvtxPayloadEnumRegister(domain, &enumeration) != kOperations) return 7;
  for (long i = 0; i < count; ++i) {
    const AllReduce call = {0xABCDEF, static_cast<size_t>(1000 + i), 2};
    nvtxEventAttributes_t event = {};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "ncclAllReduce";
    NVTX_PAYLOAD_EVTATTR_SET(&event, schema.schemaId, &call, sizeof call)
    nvtxDomainRangePushEx(domain, &event);
    nvtxDomainRangePop(domain);
  }
  return 0;
}

// Launches until it is killed; says in shared memory which launches have returned.
// Dies while one kernel is under way and those behind it, on another stream, have ended.
int Held(long count) {
  const void* endless = Declare("_Z7endlessPf", 1e12);
  const void* kernel = Declare("_Z6kernelPf", 1000);
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  Launch(endless, stream);
  LaunchMany(kernel, count);
  usleep(50'000);  // in which CUPTI writes the last of their records
  return kill(getpid(), SIGKILL);
}

// Ends `milliseconds` after a thread has begun to wait for a device that never gets done.
int Waiting(long milliseconds, bool by_signal) {
  Launch(Declare("_Z6kernelPf", 1000), nullptr);
  Check(cudaDeviceSynchronize(), "synchronize");
  std::thread([] {
    Launch(Declare("_Z7endlessPf", 1e12), nullptr);
    Check(cudaDeviceSynchronize(), "synchronize");
  }).detach();
  usleep(static_cast<useconds_t>(milliseconds) * 1000);
  return by_signal ? kill(getpid(), SIGKILL) : 0;
}

int Killed(const char* path) {
  const int fd = open(path, O_RDWR);
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  const void* kernel = Declare("_Z6kernelPf", 1000);
  for (uint64_t i = 0;; ++i) {
    Launch(kernel, nullptr);
    progress->launched_ns[i % Progress::kKept].store(vgpuNowNs());
    progress->launches.store(i + 1);
    if (i % 64 == 63) Check(cudaDeviceSynchronize(), "synchronize");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const long count = argc > 2 ? std::atol(argv[2]) : 1;
  std::printf("output\n");
  int code = 2;
  if (mode == "kernels") code = Kernels(count, argc > 3 ? std::atof(argv[3]) : 1000);
  if (mode == "unfinished") code = Unfinished(count);
  if (mode == "leaves") code = Leaves(count);
  if (mode == "threads") code = Threads(count);
  if (mode == "devices") code = Devices(count);
  if (mode == "mixed") code = Mixed(count);
  if (mode == "dependencies") code = Dependencies(count);
  if (mode.ends_with("host_functions")) {
    const void* kernel = Declare("_Z6kernelPf", 5000);
    const auto launch = [kernel](CUstream_st* stream) { Launch(kernel, stream); };
    code = cuda_program::HostFunctions(mode, launch, count, argc > 3 ? std::atol(argv[3]) : 2);
  }
  if (mode == "behind") code = Behind(count);
  if (mode == "graph") code = Graph(count);
  if (mode == "fork") code = Fork(count);
  if (mode == "stacks") code = Stacks(count);
  if (mode == "payload") code = Payload(count);
  if (mode == "loaded") code = Loaded(count, argc > 3 ? std::atof(argv[3]) : 300'000);
  if (mode == "graph_steps") code = GraphSteps(count);
  if (mode == "steps")
    code = Steps(count, argc > 3 ? std::atol(argv[3]) : 2, argc > 4 ? std::atof(argv[4]) : 1000);
  if (mode == "second_client" || mode == "rude_client") {
    const void* kernel = Declare("_Z6kernelPf", 1000);
    const auto client =
        mode == "rude_client" ? cuda_program::RudeClient : cuda_program::SecondClient;
    code = client([kernel, count] { LaunchMany(kernel, count); }, argv[3]);
  }
  if (mode == "sharing_client") {
    const std::string how = argv[3];
    const auto launch = [count, how] {
      static const void* const kernel = Declare("_Z6kernelPf", how == "stays" ? 20e6 : 1000);
      if (how != "stays") return LaunchMany(kernel, count);
      for (long i = 0; i < count; ++i) Launch(kernel, nullptr);
    };
    code = cuda_program::SharingClient(launch, how);
  }
  if (mode == "held") code = Held(count);
  if (mode == "waiting") code = Waiting(count, argc > 3);
  if (mode == "killed") code = Killed(argv[2]);
  return code;
}
