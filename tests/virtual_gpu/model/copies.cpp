#include "tests/virtual_gpu/model/copies.h"

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/memory.h"
#include "tests/virtual_gpu/model/operations.h"

namespace vgpu {
namespace {

// The driver copies a small block into a buffer of its own and returns.
int64_t StagingNs(uint64_t bytes) {
  const std::lock_guard guard(TheMachine().lock);
  const Range rate = Get(Setting::staging_gbps);
  return Scaled(static_cast<double>(bytes) / TheMachine().Draw(rate.least, rate.greatest));
}

bool IsHost(MemoryKind kind) {
  return kind == MemoryKind::kPageable || kind == MemoryKind::kPinned;
}

bool IsStaged(const Work& work) {
  return work.source == MemoryKind::kPageable && !IsHost(work.target) &&
         static_cast<double>(work.bytes) <= Least(Setting::staging_bytes);
}

// Whether the caller of this copy is held until it has ended.
bool HoldsCaller(const Work& work) {
  const bool pageable =
      work.source == MemoryKind::kPageable || work.target == MemoryKind::kPageable;
  const bool touches_host = IsHost(work.source) || IsHost(work.target);
  return pageable || (!work.asynchronous && touches_host);
}

CUresult Run(Stream& stream, const Operation& operation) {
  const Work work = IssueOrCapture(stream, operation);
  if (work.end_ns == 0) return CUDA_SUCCESS;
  if (IsStaged(work)) {
    if (!work.asynchronous) WaitUntil(work.start_ns);
    UseProcessor(StagingNs(work.bytes));
  } else if (HoldsCaller(work)) {
    WaitForDevice(work.end_ns);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult Copy(Stream& stream, uint64_t target, uint64_t source, uint64_t bytes, Waiting waiting) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (target == 0 || source == 0) return CUDA_ERROR_INVALID_VALUE;
  const Allocation to = FindAllocation(target);
  const Allocation from = FindAllocation(source);
  const bool both_devices = to.kind == MemoryKind::kDevice && from.kind == MemoryKind::kDevice;
  if (both_devices && to.context->device != from.context->device) {
    return CopyBetween(stream, *to.context, *from.context, bytes, waiting);
  }
  Operation operation = {};
  operation.work.kind = WorkKind::kCopy;
  operation.work.bytes = bytes;
  operation.work.source = from.kind;
  operation.work.target = to.kind;
  operation.work.asynchronous = waiting == Waiting::kAsynchronous;
  return Run(stream, operation);
}

CUresult CopyBetween(Stream& stream, Context& target_context, Context& source_context,
                     uint64_t bytes, Waiting waiting) {
  if (bytes == 0) return CUDA_SUCCESS;
  Operation operation = {};
  operation.work.kind = WorkKind::kPeerCopy;
  operation.work.bytes = bytes;
  operation.work.source = operation.work.target = MemoryKind::kDevice;
  operation.work.source_context = &source_context;
  operation.work.target_context = &target_context;
  operation.work.asynchronous = waiting == Waiting::kAsynchronous;
  return Run(stream, operation);
}

CUresult Fill(Stream& stream, uint64_t target, uint32_t value, uint64_t bytes, Waiting waiting) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (target == 0) return CUDA_ERROR_INVALID_VALUE;
  Operation operation = {};
  operation.work.kind = WorkKind::kMemset;
  operation.work.bytes = bytes;
  operation.work.value = value;
  operation.work.target = FindAllocation(target).kind;
  operation.work.asynchronous = waiting == Waiting::kAsynchronous;
  IssueOrCapture(stream, operation);  // a memset of device memory never holds the host
  return CUDA_SUCCESS;
}

}  // namespace vgpu
