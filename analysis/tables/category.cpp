#include "analysis/tables/category.h"

#include "trace/tables/communication.h"

namespace trainprof {
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
    case Category::kOtherDevice:
      return "other device";
    case Category::kHostFunction:
      return "host function";
    case Category::kHostWork:
      return "host work";
    case Category::kPreempted:
      return "preempted";
    case Category::kOtherRanks:
      return "other ranks";
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
    case DeviceClass::kIdleOtherDevice:
      return Category::kOtherDevice;
    case DeviceClass::kIdleHostFunction:
      return Category::kHostFunction;
    case DeviceClass::kIdleHostWork:
      return Category::kHostWork;
    case DeviceClass::kIdlePreempted:
      return Category::kPreempted;
    case DeviceClass::kIdleCollective:
      return Category::kOtherRanks;
    case DeviceClass::kIdleUnrecorded:
      return Category::kUnrecorded;
    case DeviceClass::kIdleUnknown:
      break;
  }
  return Category::kUnknown;
}

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
  const NameFacts name = trace_.Facts(trace_.ranges.name[row]);
  const Phase phase = is_operator ? name.torch_phase : name.user_phase;
  if (phase == Phase::kInputWait) return Category::kInputWait;
  if (phase == Phase::kCopy) return Category::kCopy;
  if (phase == Phase::kRankWait) return Category::kCommunication;
  return is_operator ? Category::kOperator : Category::kAnnotation;
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
  return Communicates(trace_, Row{row}) ? Category::kCommunication : Category::kCompute;
}

}  // namespace trainprof
