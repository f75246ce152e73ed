// What the user is told when GPU work cannot be recorded: the cause, and what to do.
#pragma once

#include <cstddef>

#include "collectors/cupti/library.h"

namespace trainprof::collectors {

// `holder`: who has subscribed already, or "".
void DescribeFailure(const CuptiLibrary& library, CUptiResult result, const char* call,
                     const char* holder, char* out, size_t size);

}  // namespace trainprof::collectors
