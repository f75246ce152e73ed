// An interpreter's own stack, in the records.
#pragma once

#include <cstdint>

#include "collectors/core/thread_writer.h"
#include "collectors/python/own_stack.h"

namespace trainprof::collectors {

// The id of its text, defined if need be; 0: an empty stack, or no room.
uint32_t ScriptOf(const OwnStack& stack, ThreadWriter& writer);

}  // namespace trainprof::collectors
