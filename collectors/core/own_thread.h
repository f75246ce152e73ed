// Threads of the library's own in the profiled process.
#pragma once

namespace trainprof::collectors {

// Runs `body` in a new, detached thread of this name (at most 15 characters) that takes none of the
// program's signals. False when there is no room for a thread.
bool StartOwnThread(const char* name, void (*body)());

}  // namespace trainprof::collectors
