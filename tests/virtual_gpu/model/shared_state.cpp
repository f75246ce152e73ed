#include "tests/virtual_gpu/model/shared_state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace vgpu {
namespace {

constexpr int kProcesses = 64;

struct SharedDevice {
  std::atomic<int64_t> issued_ns;  // sum of the kernels that were issued
  std::atomic<int64_t> until_ns;   // when the last of them ends
  std::atomic<uint64_t> memory_used_bytes;
  std::atomic<uint64_t> to_device_bytes;
  std::atomic<uint64_t> to_host_bytes;
};

struct SharedProcess {
  std::atomic<uint32_t> pid;  // 0: free
  SharedDevice devices[kSharedDevices];
};

struct SharedFile {
  SharedProcess processes[kProcesses];
};

std::string PathOfState() {
  const char* path = getenv("VGPU_STATE");
  if (path != nullptr && *path != '\0') return path;
  return "/dev/shm/virtual_gpu." + std::to_string(getuid());
}

SharedFile* Map() {
  const int file = open(PathOfState().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(file, sizeof(SharedFile)) == 0) {
    memory = mmap(nullptr, sizeof(SharedFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<SharedFile*>(memory);
}

SharedFile* File() {
  static SharedFile* const file = Map();
  return file;
}

bool IsAlive(uint32_t pid) { return kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM; }

// A free place, or one whose process is gone, cleared.
SharedProcess* Claim() {
  SharedFile* file = File();
  if (file == nullptr) return nullptr;
  const auto self = static_cast<uint32_t>(getpid());
  for (SharedProcess& process : file->processes) {
    uint32_t pid = process.pid;
    if (pid != 0 && IsAlive(pid)) continue;
    if (!process.pid.compare_exchange_strong(pid, self)) continue;
    for (SharedDevice& device : process.devices) {
      device.issued_ns = 0;
      device.until_ns = 0;
      device.memory_used_bytes = 0;
      device.to_device_bytes = 0;
      device.to_host_bytes = 0;
    }
    return &process;
  }
  return nullptr;
}

SharedDevice* OwnDevice(int device) {
  static SharedProcess* const own = Claim();
  return own == nullptr || device >= kSharedDevices ? nullptr : &own->devices[device];
}

}  // namespace

void NoteKernel(int device, int64_t start_ns, int64_t end_ns) {
  SharedDevice* shared = OwnDevice(device);
  if (shared == nullptr) return;
  shared->issued_ns.fetch_add(end_ns - start_ns, std::memory_order_relaxed);
  if (end_ns > shared->until_ns.load(std::memory_order_relaxed)) {
    shared->until_ns.store(end_ns, std::memory_order_relaxed);
  }
}

void NoteCopy(int device, bool to_device, uint64_t bytes) {
  SharedDevice* shared = OwnDevice(device);
  if (shared == nullptr) return;
  (to_device ? shared->to_device_bytes : shared->to_host_bytes).fetch_add(bytes);
}

void NoteMemory(int device, uint64_t used_bytes) {
  SharedDevice* shared = OwnDevice(device);
  if (shared != nullptr) shared->memory_used_bytes.store(used_bytes);
}

DeviceLoad LoadOf(int device, int64_t now_ns) {
  DeviceLoad load;
  SharedFile* file = File();
  if (file == nullptr || device >= kSharedDevices) return load;
  for (const SharedProcess& process : file->processes) {
    const uint32_t pid = process.pid;
    if (pid == 0) continue;
    const SharedDevice& shared = process.devices[device];
    // Kernels that were issued and have not run yet lie back to back before `until`.
    const int64_t ahead = std::max<int64_t>(0, shared.until_ns - now_ns);
    load.busy_ns += std::max<int64_t>(0, shared.issued_ns - ahead);
    load.to_device_bytes += shared.to_device_bytes;
    load.to_host_bytes += shared.to_host_bytes;
    if (IsAlive(pid)) load.memory_used_bytes += shared.memory_used_bytes;
  }
  return load;
}

int UsersOf(int device, DeviceUser* users, int room) {
  int count = 0;
  SharedFile* file = File();
  if (file == nullptr || device >= kSharedDevices) return 0;
  for (const SharedProcess& process : file->processes) {
    const uint32_t pid = process.pid;
    const SharedDevice& shared = process.devices[device];
    const bool uses = shared.memory_used_bytes > 0 || shared.issued_ns > 0;
    if (pid == 0 || !uses || !IsAlive(pid)) continue;
    if (count < room) users[count] = {pid, shared.memory_used_bytes};
    ++count;
  }
  return count;
}

}  // namespace vgpu
