// Whether the process that writes a raw segment may still be there.
#pragma once

#include "trace/recording/segment_reader.h"

namespace trainprof::recording {

// True when in doubt: another machine's segment, or anyone (a forked child) still maps the file for
// writing, as far as the file system can tell.
bool MayBeAlive(const SegmentReader& segment);

}  // namespace trainprof::recording
