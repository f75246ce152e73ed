// CUPTI's enumerations as rows hold them, in Kineto's words (output_base.h, CuptiActivity.cpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/base/names.h"
#include "trace/recording/wire/rows.h"
#include "trace/tables/trace.h"

namespace trainprof::recording {

template <size_t N>
constexpr std::string_view NameAt(const std::string_view (&names)[N], uint32_t number) {
  return number < N ? names[number] : std::string_view("Unknown");
}

// CUpti_ActivityMemcpyKind: H host, D device, A array, P peer.
constexpr std::string_view MemcpyKindName(uint8_t kind) {
  constexpr std::string_view kNames[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                         "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
  return NameAt(kNames, kind);
}

constexpr CopyDirection DirectionOf(uint8_t memcpy_kind) {
  using enum CopyDirection;
  constexpr CopyDirection kDirections[] = {kUnknown,
                                           kHostToDevice,
                                           kDeviceToHost,
                                           kHostToDevice,
                                           kDeviceToHost,
                                           kDeviceToDevice,
                                           kDeviceToDevice,
                                           kDeviceToDevice,
                                           kDeviceToDevice,
                                           kHostToHost,
                                           kPeer};
  return memcpy_kind < std::size(kDirections) ? kDirections[memcpy_kind] : kUnknown;
}

constexpr MemoryKind MemoryKindOf(uint8_t kind) {
  return kind < std::size(kMemoryKindNames) ? MemoryKind{kind} : MemoryKind::kUnknown;
}

// Detail of a row of synchronisation.
constexpr SyncKind SyncKindOf(uint8_t type) {
  if (type == kHostFunctionSync) return SyncKind::kHostFunction;
  return type <= static_cast<uint8_t>(SyncKind::kContext) ? SyncKind{type} : SyncKind::kUnknown;
}

constexpr StreamOrder StreamOrderOf(uint64_t flag) {
  return flag < std::size(kStreamOrderNames) ? static_cast<StreamOrder>(flag)
                                             : StreamOrder::kUnknown;
}

// OverheadDetail of CUpti_ActivityOverheadKind.
constexpr std::string_view OverheadName(uint8_t detail) {
  constexpr uint8_t kFirstOwn = 17;
  constexpr std::string_view kOwn[] = {"Buffer Flush",
                                       "Instrumentation",
                                       "Resource",
                                       "Runtime Triggered Module Loading",
                                       "Lazy Function Loading",
                                       kQueueFull,
                                       "Activity Buffer Request",
                                       "UVM Activity Init"};
  if (detail == 1) return "Driver Compiler";
  if (detail == kSetupOverhead) return kCuptiSetup;
  return detail < kFirstOwn ? std::string_view("Unknown") : NameAt(kOwn, detail - kFirstOwn);
}

// cudaError_t and CUresult, which agree on these: what a program meets, in their manuals' words.
inline constexpr uint32_t kNotReady = 600;  // of a query: no failure
constexpr std::string_view ErrorName(uint32_t result) {
  switch (result) {
    case 1:
      return "invalid value";
    case 2:
      return "out of memory";
    case 100:
      return "no device";
    case 209:
      return "no kernel image for this device";
    case 700:
      return "illegal address";
    case 702:
      return "launch timeout";
    case 719:
      return "launch failure";
    case 900:
      return "stream capture does not permit it";
    default:
      return "";
  }
}

// CUpti_ActivityMemoryOperationType.
inline constexpr uint8_t kReleaseOperation = 2;

}  // namespace trainprof::recording
