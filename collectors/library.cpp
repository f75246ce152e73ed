// The library as a whole: what happens when the process goes through exit().
#include "collectors/core/segment_file.h"

namespace trainprof::collectors {
namespace {

// After all of the program's own exit handlers, and ours.
[[gnu::destructor]] void AtExit() { CloseSegment(); }

}  // namespace
}  // namespace trainprof::collectors
