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

// Until when the caller of this copy is held.
int64_t HeldUntilNs(const Work& work) {
  const bool staged = work.source == MemoryKind::kPageable && !IsHost(work.target) &&
                      static_cast<double>(work.bytes) <= Least(Setting::staging_bytes);
  if (staged) {
    const int64_t staging = StagingNs(work.bytes);
    return work.asynchronous ? work.issued_ns + staging : work.start_ns + staging;
  }
  const bool pageable =
      work.source == MemoryKind::kPageable || work.target == MemoryKind::kPageable;
  if (pageable) return work.end_ns;
  const bool touches_host = IsHost(work.source) || IsHost(work.target);
  return !work.asynchronous && touches_host ? work.end_ns : 0;
}

CUresult Run(Stream& stream, const Operation& operation) {
  const Work work = IssueOrCapture(stream, operation);
  const int64_t held = HeldUntilNs(work);
  if (work.end_ns != 0 && held > NowNs()) {
    if (held >= work.end_ns) {
      WaitForDevice(held);
    } else {
      WaitUntil(held);
    }
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
