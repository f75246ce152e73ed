// What NVML in one process knows of the work that others give to the devices: a small mapped file,
// which each process that uses CUDA writes and libnvidia-ml reads. VGPU_STATE names it;
// /dev/shm/virtual_gpu.<uid> without.
#pragma once

#include <cstdint>

namespace vgpu {

constexpr int kSharedDevices = 16;

// Sums over all processes that are alive.
struct DeviceLoad {
  int64_t busy_ns =
      0;  // time that kernels have run until now; may exceed real time where they overlapped
  uint64_t memory_used_bytes = 0;
  uint64_t to_device_bytes = 0;
  uint64_t to_host_bytes = 0;
};

// By a process that uses CUDA. Each is a few relaxed stores; nothing happens where the file cannot
// be mapped.
void NoteKernel(int device, int64_t start_ns, int64_t end_ns);
void NoteCopy(int device, bool to_device, uint64_t bytes);
void NoteMemory(int device, uint64_t used_bytes);

// At now_ns (CLOCK_MONOTONIC).
DeviceLoad LoadOf(int device, int64_t now_ns);

// A process that uses a device, for NVML's list. Writes at most `room`, returns how many there are.
struct DeviceUser {
  uint32_t pid;
  uint64_t memory_used_bytes;
};
int UsersOf(int device, DeviceUser* users, int room);

}  // namespace vgpu
