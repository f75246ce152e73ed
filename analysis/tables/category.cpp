#include "analysis/tables/category.h"

#include "trace/tables/communication.h"

namespace trainprof {
namespace {

// In the order of Category. Blue, orange, green, pink and vermilion are Okabe and Ito's; what is
// seldom the answer is calm; idle time that nobody can act on is grey.
constexpr uint32_t kColors[kCategories] = {
    0x0072b2,  // compute
    0x009e73,  // communication
    0xf29a76,  // copy: light vermilion
    0xe69f00,  // input wait
    0xd55e00,  // sync
    0xcdbc3c,  // allocation: their yellow, dimmed
    0xcc79a7,  // launch
    0x6fb6df,  // Python: their sky blue
    0x9a7048,  // saving or logging
    0x66798c,  // hand-over
    0x8c6bb1,  // other device
    0x7fbf7b,  // host function
    0xb35a8f,  // host work
    0xa6611a,  // preempted
    0x4d9a9a,  // other ranks
    0xb9bcc0,  // unrecorded
    0x85888c,  // unknown
    0x7f96b2,  // operator
    0xa3b898,  // annotation
    0x5d6068,  // profiler overhead
    0x9aa3ad,  // other
};

}  // namespace

uint32_t ColorOf(Category category) { return kColors[static_cast<size_t>(category)]; }

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

Category CategoryOf(HostClass c) {
  switch (c) {
    case HostClass::kInputWait:
      return Category::kInputWait;
    case HostClass::kCopy:
      return Category::kCopy;
    case HostClass::kForward:
      return Category::kCompute;
    case HostClass::kBackward:
      return Category::kOperator;
    case HostClass::kOptimizer:
      return Category::kPython;
    case HostClass::kRankWait:
      return Category::kCommunication;
    case HostClass::kOther:
      break;
  }
  return Category::kOther;
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
