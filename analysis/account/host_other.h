// What the stepping thread did in the time that no phase names: "other" of the host's account,
// opened up by the names that the trace has.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/account/account.h"

namespace trainprof {

enum class OtherKind : uint8_t {
  kRange,     // the user's own: NVTX, record_function
  kPython,    // a Python function
  kOperator,  // aten::...
  kCall,      // a runtime call
  kEvent,     // a row of another kind
  kOverhead,  // the profiler's own work
  kMore,      // the names that a list has no room for
  kNothing,   // nothing was recorded then
};

std::string_view Name(OtherKind kind);  // "range", "python", ...

struct OtherItem {
  OtherKind kind = OtherKind::kNothing;
  std::string name;  // without a counter at its end: "tokenize" of "tokenize 12"; "" for kNothing
  Duration total;
  int64_t count = 0;      // instances; of kMore the names
  bool is_users = false;  // a range, or a function in a file of the user's own
  // Of a range what stands within: its innermost ranges, else Python functions, operators, calls.
  // What is in none of them is the range's own.
  std::vector<OtherItem> inside{};

  bool operator==(const OtherItem&) const = default;
};

struct OtherTime {
  Duration total;                // HostClass::kOther of the account, exactly
  std::vector<OtherItem> items;  // largest first, kMore and kNothing last; sum to `total`

  bool HasNames() const {
    return std::any_of(items.begin(), items.end(),
                       [](const OtherItem& item) { return item.kind != OtherKind::kNothing; });
  }
  bool operator==(const OtherTime&) const = default;
};

// Time goes to the outermost of the user's ranges that covers it, else to a Python function (the
// innermost of the user's own, else the outermost), else to the outermost operator, else to the
// call. A range or function that covers a whole step says nothing and is passed over; so is the
// step itself. O(n log n) in the thread's events.
OtherTime OpenOther(const Trace& trace, const Steps& steps, const HostAccount& account);

}  // namespace trainprof
