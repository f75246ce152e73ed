// What panes keep between frames because it is costly to make anew.
#pragma once

#include "viewer/panes/inspector_cache.h"
#include "viewer/panes/timeline_cache.h"

namespace trainprof {

struct PaneCache {
  TimelineCache timeline;
  InspectorCache inspector;

  // Something is being made: a later frame shows more.
  bool Busy() const {
    return timeline.pending || timeline.overview_pending || timeline.bars.busy() ||
           inspector.busy();
  }
  // The document was opened or got further ranks.
  void Clear() {
    timeline.Clear();
    inspector.Clear();
  }
};

}  // namespace trainprof
