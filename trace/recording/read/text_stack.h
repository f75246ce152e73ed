// The stack that a RANGE record carries as a text: a line a frame, innermost first, each "LINE
// FUNCTION FILE".
#pragma once

#include <string_view>

#include "trace/build/trace_builder.h"

namespace trainprof::recording {

// kNoStack where the text has no such line. Lines of another form are left out, as is the one at
// which a long text was cut. O(size).
StackId AddTextStack(TraceBuilder& builder, std::string_view text);

}  // namespace trainprof::recording
