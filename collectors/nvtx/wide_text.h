// Wide strings of the program (UTF-32 on Linux) as UTF-8.
#pragma once

#include <stddef.h>

#include "collectors/core/string_cache.h"

namespace trainprof::collectors {

// Holds the converted bytes while the Text is in use.
struct WideBuffer {
  char bytes[recording::kMaxStringBytes];
};

// Cut to kMaxStringBytes between two characters; what is no Unicode character becomes U+FFFD.
// nullptr is the empty text.
Text MakeText(const wchar_t* text, WideBuffer* buffer);

}  // namespace trainprof::collectors
