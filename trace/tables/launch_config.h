// How a device operation was launched: what rows repeat over and over, so that a row holds the
// index of its configuration in Trace::launch_configs alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainprof {

// Of one side of a copy. The numbers are those of CUpti_ActivityMemoryKind.
enum class MemoryKind : uint8_t {
  kUnknown,
  kPageable,  // of the host
  kPinned,    // of the host
  kDevice,
  kArray,
  kManaged,
  kDeviceStatic,
  kManagedStatic,
};
inline constexpr std::string_view kMemoryKindNames[] = {"Unknown",       "Pageable",      "Pinned",
                                                        "Device",        "Array",         "Managed",
                                                        "Device Static", "Managed Static"};
constexpr std::string_view Name(MemoryKind kind) {
  return kMemoryKindNames[static_cast<size_t>(kind)];
}

enum class LaunchConfigId : uint32_t {};  // index into Trace::launch_configs
inline constexpr LaunchConfigId kNoLaunchConfig{UINT32_MAX};

// What is not known is kUnknown, a shape then {0, 0, 0}.
struct LaunchConfig {
  static constexpr int64_t kUnknown = -1;
  using Shape = std::array<uint32_t, 3>;
  static constexpr Shape kNoShape{};

  Shape grid{};     // blocks
  Shape block{};    // threads
  Shape cluster{};  // blocks; kNoShape, too, where each is alone
  int32_t registers_per_thread = kUnknown;
  int64_t shared_bytes = kUnknown;  // of a block, static and dynamic
  int64_t local_bytes_per_thread = kUnknown;
  int64_t context = kUnknown;
  int64_t graph = kUnknown;
  int64_t graph_node = kUnknown;
  double theoretical_occupancy_percent = kUnknown;  // of a multiprocessor's warps
  double estimated_occupancy_percent = kUnknown;    // as the source estimates what was achieved

  bool operator==(const LaunchConfig&) const = default;
};
// Without padding: equal ones have equal bytes.
static_assert(sizeof(LaunchConfig) == 10 * sizeof(uint32_t) + 7 * sizeof(int64_t));

}  // namespace trainprof
