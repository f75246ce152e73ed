// What an event's colour says: one palette for operations, host events and causes of idleness, so
// that a copy and the time lost to it look alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/account.h"
#include "trace/trace.h"

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
  kUnrecorded,
  kUnknown,
  kOperator,
  kAnnotation,
  kOverhead,
  kOther,
};
inline constexpr size_t kCategories = 16;

std::string_view Title(Category category);  // for a legend

Category CategoryOf(DeviceClass c);

// Tells the category of rows; looks at each distinct name once. Keeps a reference to the trace.
class Categorizer {
 public:
  explicit Categorizer(const Trace& trace) : trace_(trace) {}

  Category OfRange(uint32_t row);
  Category OfCall(uint32_t row) const;
  Category OfDeviceOp(uint32_t row);

 private:
  static constexpr uint8_t kNotAsked = 0xff;
  // The remembered answer for a name; asked and remembered when there is none.
  template <class Ask>
  Category Remember(std::vector<uint8_t>& answers, StringId name, Ask ask) {
    if (answers.empty()) answers.assign(trace_.strings.size(), kNotAsked);
    uint8_t& answer = answers[Index(name)];
    if (answer == kNotAsked) answer = static_cast<uint8_t>(ask());
    return static_cast<Category>(answer);
  }

  const Trace& trace_;
  std::vector<uint8_t> of_annotation_;
  std::vector<uint8_t> of_operator_;
  std::vector<uint8_t> of_kernel_;
};

}  // namespace trainprof
