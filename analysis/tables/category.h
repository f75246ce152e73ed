// What an event's colour says: one palette for operations, host events and causes of idleness, so
// that a copy and the time lost to it look alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "analysis/account/account.h"
#include "trace/tables/trace.h"

namespace trainprof {

enum class Category : uint8_t {
  kCompute,
  kCommunication,
  kCopy,
  kInputWait,
  kSync,
  kAllocation,
  kLaunch,  // launching calls; of idle time: launch-bound
  kPython,
  kIo,
  kDependency,
  kOtherDevice,
  kHostFunction,
  kHostWork,
  kPreempted,
  kOtherRanks,
  kUnrecorded,
  kUnknown,
  kOperator,
  kAnnotation,
  kOverhead,
  kOther,
};
inline constexpr size_t kCategories = 21;

std::string_view Title(Category category);  // for a legend
uint32_t ColorOf(Category category);        // 0xrrggbb
// Of idle time: the cause, in the words of the account (analysis/account/account.h).
std::string_view IdleTitle(Category category);
inline std::string_view Title(Category category, bool idle) {
  return idle ? IdleTitle(category) : Title(category);
}

Category CategoryOf(DeviceClass c);
Category CategoryOf(HostClass c);  // of a phase of the thread that steps

// Tells the category of rows. Keeps a reference to the trace. For any thread.
class Categorizer {
 public:
  explicit Categorizer(const Trace& trace) : trace_(trace) {}

  // Of a row of the trace's tables; kAnnotation where nothing is known of the table.
  Category Of(Table table, uint32_t row) const;
  Category OfRange(uint32_t row) const;
  Category OfCall(uint32_t row) const;
  Category OfDeviceOp(uint32_t row) const;

 private:
  const Trace& trace_;
};

}  // namespace trainprof
