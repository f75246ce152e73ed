#include "analysis/tables/category.h"

#include "trace/base/names.h"

namespace trainprof {
namespace {

// The remembered answer; asked and remembered when there is none.
template <class Ask>
Category Remember(std::atomic<uint8_t>& answer, Ask ask) {
  uint8_t known = answer.load(std::memory_order_relaxed);
  if (known == 0) {
    known = static_cast<uint8_t>(static_cast<uint8_t>(ask()) + 1);
    answer.store(known, std::memory_order_relaxed);
  }
  return static_cast<Category>(known - 1);
}

}  // namespace

std::string_view Title(Category category) {
  switch (category) {
    case Category::kCompute:
      return "compute";
    case Category::kCommunication:
      return "communication";
    case Category::kCopy:
      return "copy";
    case Category::kInputWait:
      return "input wait";
    case Category::kSync:
      return "sync";
    case Category::kAllocation:
      return "allocation";
    case Category::kLaunch:
      return "launch";
    case Category::kPython:
      return "Python";
    case Category::kIo:
      return "saving or logging";
    case Category::kDependency:
      return "hand-over";
    case Category::kUnrecorded:
      return "unrecorded";
    case Category::kUnknown:
      return "unknown";
    case Category::kOperator:
      return "operator";
    case Category::kAnnotation:
      return "annotation";
    case Category::kOverhead:
      return "profiler overhead";
    case Category::kOther:
      break;
  }
  return "other";
}

std::string_view IdleTitle(Category category) {
  for (size_t i = 0; i < kDeviceClasses; ++i) {
    const auto c = static_cast<DeviceClass>(i);
    if (IsIdle(c) && CategoryOf(c) == category) return Title(c);
  }
  return Title(category);
}

Category CategoryOf(DeviceClass c) {
  switch (c) {
    case DeviceClass::kCompute:
      return Category::kCompute;
    case DeviceClass::kExposedCommunication:
      return Category::kCommunication;
    case DeviceClass::kExposedCopy:
      return Category::kCopy;
    case DeviceClass::kIdleInputWait:
      return Category::kInputWait;
    case DeviceClass::kIdleSyncDrain:
      return Category::kSync;
    case DeviceClass::kIdleAllocation:
      return Category::kAllocation;
    case DeviceClass::kIdleLaunchBound:
      return Category::kLaunch;
    case DeviceClass::kIdlePython:
      return Category::kPython;
    case DeviceClass::kIdleIo:
      return Category::kIo;
    case DeviceClass::kIdleDependency:
      return Category::kDependency;
    case DeviceClass::kIdleUnrecorded:
      return Category::kUnrecorded;
    case DeviceClass::kIdleUnknown:
      break;
  }
  return Category::kUnknown;
}

Categorizer::Categorizer(const Trace& trace)
    : trace_(trace),
      of_annotation_(trace.strings.size()),
      of_operator_(trace.strings.size()),
      of_kernel_(trace.strings.size()) {}

Category Categorizer::Of(Table table, uint32_t row) const {
  switch (table) {
    case Table::kRanges:
      return OfRange(row);
    case Table::kApi:
      return OfCall(row);
    case Table::kDeviceOps:
      return OfDeviceOp(row);
    case Table::kSyncs:
      return Category::kSync;
    default:
      return Category::kAnnotation;
  }
}

Category Categorizer::OfRange(uint32_t row) const {
  const RangeKind kind = trace_.ranges.kind[row];
  switch (kind) {
    case RangeKind::kPythonFunction:
      return Category::kPython;
    case RangeKind::kOverhead:
      return Category::kOverhead;
    case RangeKind::kDeviceRow:
    case RangeKind::kOther:
      return Category::kOther;
    case RangeKind::kUserAnnotation:
    case RangeKind::kCpuOp:
    case RangeKind::kGpuAnnotation:
      break;
  }
  const bool is_operator = kind == RangeKind::kCpuOp;
  const StringId name = trace_.ranges.name[row];
  return Remember((is_operator ? of_operator_ : of_annotation_)[Index(name)], [&] {
    const std::string_view text = trace_.Text(name);
    const Phase phase = is_operator ? PhaseOfTorchName(text) : PhaseOfUserName(text);
    if (phase == Phase::kInputWait) return Category::kInputWait;
    if (phase == Phase::kCopy) return Category::kCopy;
    return is_operator ? Category::kOperator : Category::kAnnotation;
  });
}

Category Categorizer::OfCall(uint32_t row) const {
  switch (trace_.api.kind[row]) {
    case ApiKind::kLaunch:
    case ApiKind::kGraphLaunch:
      return Category::kLaunch;
    case ApiKind::kCopy:
    case ApiKind::kMemset:
      return Category::kCopy;
    case ApiKind::kSync:
      return Category::kSync;
    case ApiKind::kAllocate:
    case ApiKind::kFree:
      return Category::kAllocation;
    case ApiKind::kStreamWait:
    case ApiKind::kQuery:
    case ApiKind::kOther:
      break;
  }
  return Category::kOther;
}

Category Categorizer::OfDeviceOp(uint32_t row) const {
  if (trace_.device_ops.kind[row] != DeviceOpKind::kKernel) return Category::kCopy;
  const StringId name = trace_.device_ops.name[row];
  return Remember(of_kernel_[Index(name)], [&] {
    return IsCommunicationKernel(trace_.Text(name)) ? Category::kCommunication : Category::kCompute;
  });
}

}  // namespace trainprof
