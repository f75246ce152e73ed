// The names under which hooks report, and where in the user's source each was reached. All of it is
// called under the GIL, from functions that Python calls.
#pragma once

#include "collectors/core/registry.h"

namespace trainprof::collectors {

// Code in this folder is a library's: it is not where the user called.
void PassOver(const Text& folder);

// A name without a stack, with the stack from the innermost frame on that is no library's; as it is where
// there is none, or no room for more. One lookup where this line was met before. nullptr: stacks of this
// Python are not known.
const Place* SiteOf(const Place* name);

}  // namespace trainprof::collectors
