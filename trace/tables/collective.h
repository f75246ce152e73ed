// Which collective a communication kernel is, so that one rank's call is found again in another's.
#pragma once

#include <cstdint>

#include "trace/base/ids.h"

namespace trainprof {

enum class CollectiveId : uint32_t {};  // index into Trace::collectives
inline constexpr CollectiveId kNoCollective{UINT32_MAX};

// One call. A text is empty where the source does not say.
struct Collective {
  static constexpr int64_t kUnknown = INT64_MIN;

  StringId operation = kEmptyString;     // "allreduce"
  StringId communicator = kEmptyString;  // its name
  StringId members = kEmptyString;       // the ranks in it, as the source writes them: "[0, 1]"
  int64_t sequence = kUnknown;           // same of all ranks that took part

  bool operator==(const Collective&) const = default;
};

}  // namespace trainprof
