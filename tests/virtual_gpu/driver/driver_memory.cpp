// libcuda: memory, copies, memsets.
#include "tests/virtual_gpu/driver/driver_call.h"
#include "tests/virtual_gpu/model/copies.h"
#include "tests/virtual_gpu/model/memory.h"

using namespace vgpu;

namespace {

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

void TellMemory(const Allocation& allocation, bool release, const Stream* stream) {
  Tool* tool = AttachedTool();
  if (tool == nullptr || allocation.bytes == 0) return;
  tool->Memory({release, stream != nullptr, allocation.kind, CurrentCorrelation(),
                allocation.address, allocation.bytes, allocation.context, stream});
}

CUresult Allocated(uint64_t address, const Stream* stream) {
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  TellMemory(FindAllocation(address), false, stream);
  return CUDA_SUCCESS;
}

CUresult Released(uint64_t address, MemoryKind kind, const Stream* stream) {
  if (address == 0) return CUDA_SUCCESS;
  const Allocation released = Release(address, kind);
  if (released.bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  TellMemory(released, true, stream);
  return CUDA_SUCCESS;
}

// Freeing waits for all that the context has been given.
void WaitForContext(const Context& context) {
  int64_t tail;
  {
    const std::lock_guard guard(TheMachine().lock);
    tail = context.latest_tail_ns;
  }
  WaitForDevice(tail);
}

}  // namespace

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  VGPU_DRIVER_CALL(cuMemAlloc_v2, malloc_call_ns, pointer, bytes);
  VGPU_NEED_CONTEXT(context);
  if (bytes == 0) return call.Return(CUDA_ERROR_INVALID_VALUE);
  *pointer = AllocateDevice(*context, bytes);
  return call.Return(Allocated(*pointer, nullptr));
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  VGPU_DRIVER_CALL(cuMemFree_v2, malloc_call_ns, pointer);
  VGPU_NEED_CONTEXT(context);
  if (pointer != 0) WaitForContext(*context);
  return call.Return(Released(pointer, MemoryKind::kUnknown, nullptr));
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int flags) {
  VGPU_DRIVER_CALL(cuMemAllocManaged, malloc_call_ns, pointer, bytes, flags);
  VGPU_NEED_CONTEXT(context);
  *pointer = AllocateHost(*context, bytes, MemoryKind::kManaged);
  return call.Return(Allocated(*pointer, nullptr));
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  VGPU_DRIVER_CALL(cuMemAllocAsync, api_call_ns, pointer, bytes, stream);
  VGPU_NEED_CONTEXT(context);
  *pointer = AllocateDevice(*context, bytes);
  return call.Return(Allocated(*pointer, &StreamOf(*context, stream)));
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  VGPU_DRIVER_CALL(cuMemFreeAsync, api_call_ns, pointer, stream);
  VGPU_NEED_CONTEXT(context);
  return call.Return(Released(pointer, MemoryKind::kDevice, &StreamOf(*context, stream)));
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  VGPU_DRIVER_CALL(cuMemHostAlloc, malloc_call_ns, pointer, bytes, flags);
  VGPU_NEED_CONTEXT(context);
  *pointer = reinterpret_cast<void*>(AllocateHost(*context, bytes, MemoryKind::kPinned));
  return call.Return(Allocated(Address(*pointer), nullptr));
}

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  VGPU_DRIVER_CALL(cuMemAllocHost_v2, malloc_call_ns, pointer, bytes);
  VGPU_NEED_CONTEXT(context);
  *pointer = reinterpret_cast<void*>(AllocateHost(*context, bytes, MemoryKind::kPinned));
  return call.Return(Allocated(Address(*pointer), nullptr));
}

CUresult cuMemFreeHost(void* pointer) {
  VGPU_DRIVER_CALL(cuMemFreeHost, malloc_call_ns, pointer);
  VGPU_NEED_CONTEXT(context);
  WaitForContext(*context);
  return call.Return(Released(Address(pointer), MemoryKind::kPinned, nullptr));
}

CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
  VGPU_DRIVER_CALL(cuMemHostRegister_v2, malloc_call_ns, pointer, bytes, flags);
  VGPU_NEED_CONTEXT(context);
  if (!RegisterHost(*context, Address(pointer), bytes)) {
    return call.Return(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  }
  return call.Return(CUDA_SUCCESS);
}

CUresult cuMemHostUnregister(void* pointer) {
  VGPU_DRIVER_CALL(cuMemHostUnregister, malloc_call_ns, pointer);
  const Allocation known = FindAllocation(Address(pointer));
  if (!known.registered) return call.Return(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  Release(known.address, MemoryKind::kPinned);
  return call.Return(CUDA_SUCCESS);
}

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  VGPU_DRIVER_CALL(cuMemGetInfo_v2, api_call_ns, free_bytes, total_bytes);
  VGPU_NEED_CONTEXT(context);
  const MemoryRoom room = RoomOf(*context->device);
  *free_bytes = room.free_bytes;
  *total_bytes = room.total_bytes;
  return call.Return(CUDA_SUCCESS);
}

// The copies differ in name, arguments and in whether they have a stream; what they do follows the
// addresses.
#define VGPU_COPY(name, waiting, stream, target, source, bytes, ...) \
  VGPU_DRIVER_CALL(name, copy_call_ns, __VA_ARGS__);                 \
  VGPU_NEED_CONTEXT(context);                                        \
  return call.Return(Copy(StreamOf(*context, stream), target, source, bytes, Waiting::waiting))

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void* source, size_t bytes) {
  VGPU_COPY(cuMemcpyHtoD_v2, kCallWaits, nullptr, target, Address(source), bytes, target, source,
            bytes);
}

CUresult cuMemcpyDtoH_v2(void* target, CUdeviceptr source, size_t bytes) {
  VGPU_COPY(cuMemcpyDtoH_v2, kCallWaits, nullptr, Address(target), source, bytes, target, source,
            bytes);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  VGPU_COPY(cuMemcpyDtoD_v2, kCallWaits, nullptr, target, source, bytes, target, source, bytes);
}

CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  VGPU_COPY(cuMemcpy, kCallWaits, nullptr, target, source, bytes, target, source, bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void* source, size_t bytes,
                              CUstream stream) {
  VGPU_COPY(cuMemcpyHtoDAsync_v2, kAsynchronous, stream, target, Address(source), bytes, target,
            source, bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void* target, CUdeviceptr source, size_t bytes, CUstream stream) {
  VGPU_COPY(cuMemcpyDtoHAsync_v2, kAsynchronous, stream, Address(target), source, bytes, target,
            source, bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes,
                              CUstream stream) {
  VGPU_COPY(cuMemcpyDtoDAsync_v2, kAsynchronous, stream, target, source, bytes, target, source,
            bytes, stream);
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  VGPU_COPY(cuMemcpyAsync, kAsynchronous, stream, target, source, bytes, target, source, bytes,
            stream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                           CUcontext source_context, size_t bytes, CUstream stream) {
  VGPU_DRIVER_CALL(cuMemcpyPeerAsync, copy_call_ns, target, target_context, source, source_context,
                   bytes, stream);
  VGPU_NEED_CONTEXT(context);
  return call.Return(
      CopyBetween(StreamOf(*context, stream), *reinterpret_cast<Context*>(target_context),
                  *reinterpret_cast<Context*>(source_context), bytes, Waiting::kAsynchronous));
}

CUresult cuMemcpyPeer(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                      CUcontext source_context, size_t bytes) {
  VGPU_DRIVER_CALL(cuMemcpyPeer, copy_call_ns, target, target_context, source, source_context,
                   bytes);
  VGPU_NEED_CONTEXT(context);
  return call.Return(
      CopyBetween(StreamOf(*context, nullptr), *reinterpret_cast<Context*>(target_context),
                  *reinterpret_cast<Context*>(source_context), bytes, Waiting::kCallWaits));
}

CUresult cuMemsetD8_v2(CUdeviceptr target, unsigned char value, size_t count) {
  VGPU_DRIVER_CALL(cuMemsetD8_v2, copy_call_ns, target, value, count);
  VGPU_NEED_CONTEXT(context);
  return call.Return(Fill(StreamOf(*context, nullptr), target, value, count, Waiting::kCallWaits));
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream) {
  VGPU_DRIVER_CALL(cuMemsetD8Async, copy_call_ns, target, value, count, stream);
  VGPU_NEED_CONTEXT(context);
  return call.Return(
      Fill(StreamOf(*context, stream), target, value, count, Waiting::kAsynchronous));
}

CUresult cuMemsetD32Async(CUdeviceptr target, unsigned int value, size_t count, CUstream stream) {
  VGPU_DRIVER_CALL(cuMemsetD32Async, copy_call_ns, target, value, count, stream);
  VGPU_NEED_CONTEXT(context);
  return call.Return(
      Fill(StreamOf(*context, stream), target, value, 4 * count, Waiting::kAsynchronous));
}

}  // extern "C"
