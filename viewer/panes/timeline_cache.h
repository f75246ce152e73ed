// What the timeline, the ribbon and the overview keep between frames.
#pragma once

namespace trainprof {

struct TimelineCache {};

}  // namespace trainprof
