// libcudart: memory, copies, memsets.
#include "tests/virtual_gpu/model/copies.h"
#include "tests/virtual_gpu/model/memory.h"
#include "tests/virtual_gpu/runtime/runtime_call.h"

using namespace vgpu;

namespace {

CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// What the caller's cudaMemcpyKind, or for cudaMemcpyDefault the addresses, ask for.
cudaMemcpyKind KindOf(const void* target, const void* source, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDefault) return kind;
  const bool to_device = FindAllocation(Address(target)).kind == MemoryKind::kDevice;
  const bool from_device = FindAllocation(Address(source)).kind == MemoryKind::kDevice;
  if (to_device) return from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

CUresult CopyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream) {
  switch (KindOf(target, source, kind)) {
    case cudaMemcpyHostToDevice:
      return cuMemcpyHtoDAsync(Address(target), source, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return cuMemcpyDtoHAsync(target, Address(source), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return cuMemcpyDtoDAsync(Address(target), Address(source), bytes, stream);
    default:
      return cuMemcpyAsync(Address(target), Address(source), bytes, stream);
  }
}

CUresult CopyAndWait(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  switch (KindOf(target, source, kind)) {
    case cudaMemcpyHostToDevice:
      return cuMemcpyHtoD(Address(target), source, bytes);
    case cudaMemcpyDeviceToHost:
      return cuMemcpyDtoH(target, Address(source), bytes);
    case cudaMemcpyDeviceToDevice:
      return cuMemcpyDtoD(Address(target), Address(source), bytes);
    default:
      return cuMemcpy(Address(target), Address(source), bytes);
  }
}

CUcontext PrimaryOf(int device) { return reinterpret_cast<CUcontext>(&UsePrimaryContext(device)); }

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  VGPU_RUNTIME_CALL(cudaMalloc_v3020, malloc_call_ns, pointer, bytes);
  *pointer = nullptr;
  if (bytes == 0) return call.Return(cudaSuccess);
  return call.Return(cuMemAlloc(reinterpret_cast<CUdeviceptr*>(pointer), bytes));
}

cudaError_t cudaFree(void* pointer) {
  VGPU_RUNTIME_CALL(cudaFree_v3020, malloc_call_ns, pointer);
  return call.Return(cuMemFree(Address(pointer)));
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaMallocAsync_v11020, api_call_ns, pointer, bytes, stream);
  return call.Return(cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(pointer), bytes, stream));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaFreeAsync_v11020, api_call_ns, pointer, stream);
  return call.Return(cuMemFreeAsync(Address(pointer), stream));
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaMallocManaged_v6000, malloc_call_ns, pointer, bytes, flags);
  return call.Return(cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(pointer), bytes, flags));
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  VGPU_RUNTIME_CALL(cudaMallocHost_v3020, malloc_call_ns, pointer, bytes);
  return call.Return(cuMemAllocHost(pointer, bytes));
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaHostAlloc_v3020, malloc_call_ns, pointer, bytes, flags);
  return call.Return(cuMemHostAlloc(pointer, bytes, flags));
}

cudaError_t cudaFreeHost(void* pointer) {
  VGPU_RUNTIME_CALL(cudaFreeHost_v3020, malloc_call_ns, pointer);
  return call.Return(cuMemFreeHost(pointer));
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  VGPU_RUNTIME_CALL(cudaHostRegister_v4000, malloc_call_ns, pointer, bytes, flags);
  return call.Return(cuMemHostRegister(pointer, bytes, flags));
}

cudaError_t cudaHostUnregister(void* pointer) {
  VGPU_RUNTIME_CALL(cudaHostUnregister_v4000, malloc_call_ns, pointer);
  return call.Return(cuMemHostUnregister(pointer));
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  VGPU_RUNTIME_CALL(cudaMemGetInfo_v3020, api_call_ns, free_bytes, total_bytes);
  return call.Return(cuMemGetInfo(free_bytes, total_bytes));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  VGPU_RUNTIME_CALL(cudaPointerGetAttributes_v4000, api_call_ns, attributes, pointer);
  const Allocation allocation = FindAllocation(Address(pointer));
  *attributes = {};
  void* address = const_cast<void*>(pointer);
  const bool known = allocation.bytes != 0;
  attributes->device = known ? allocation.context->device->ordinal : -2;
  attributes->type = cudaMemoryTypeUnregistered;
  if (allocation.kind == MemoryKind::kDevice) attributes->type = cudaMemoryTypeDevice;
  if (allocation.kind == MemoryKind::kManaged) attributes->type = cudaMemoryTypeManaged;
  if (allocation.kind == MemoryKind::kPinned) attributes->type = cudaMemoryTypeHost;
  attributes->hostPointer = allocation.kind == MemoryKind::kDevice ? nullptr : address;
  attributes->devicePointer = known ? address : nullptr;
  return call.Return(cudaSuccess);
}

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  VGPU_RUNTIME_CALL(cudaMemcpy_v3020, copy_call_ns, dst, src, count, kind);
  return call.Return(CopyAndWait(dst, src, count, kind));
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaMemcpyAsync_v3020, copy_call_ns, dst, src, count, kind, stream);
  return call.Return(CopyAsync(dst, src, count, kind, stream));
}

// Rows that lie apart are copied as one operation of all their bytes.
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaMemcpy2DAsync_v3020, copy_call_ns, dst, dpitch, src, spitch, width, height,
                    kind, stream);
  return call.Return(CopyAsync(dst, src, width * height, kind, stream));
}

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  VGPU_RUNTIME_CALL(cudaMemcpyPeer_v4000, copy_call_ns, dst, dstDevice, src, srcDevice, count);
  return call.Return(
      cuMemcpyPeer(Address(dst), PrimaryOf(dstDevice), Address(src), PrimaryOf(srcDevice), count));
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice,
                                size_t count, cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaMemcpyPeerAsync_v4000, copy_call_ns, dst, dstDevice, src, srcDevice, count,
                    stream);
  return call.Return(cuMemcpyPeerAsync(Address(dst), PrimaryOf(dstDevice), Address(src),
                                       PrimaryOf(srcDevice), count, stream));
}

cudaError_t cudaMemset(void* devPtr, int value, size_t count) {
  VGPU_RUNTIME_CALL(cudaMemset_v3020, copy_call_ns, devPtr, value, count);
  return call.Return(cuMemsetD8(Address(devPtr), static_cast<unsigned char>(value), count));
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count, cudaStream_t stream) {
  VGPU_RUNTIME_CALL(cudaMemsetAsync_v3020, copy_call_ns, devPtr, value, count, stream);
  return call.Return(
      cuMemsetD8Async(Address(devPtr), static_cast<unsigned char>(value), count, stream));
}

}  // extern "C"
