// The panes of the window, each a function that draws into the current ImGui window's remaining
// space and turns input into actions. They keep nothing between frames but what PaneCache holds.
#pragma once

#include "viewer/state/state.h"
#include "viewer/theme/theme.h"

namespace trainprof {

// What is costly to make anew each frame; dropped whenever the document's lines change.
struct PaneCache;

struct PaneContext {
  State& state;
  const Theme& theme;
  PaneCache& cache;
};

// viewer/panes/<name>.cpp each. Their window (viewer/app) fills the display and has a menu bar,
// which DrawMenuBar begins and ends; verdict, quality bar and loading take the height they need,
// one below the other; the others fill a child window of their own; help and go-to are popups.
void DrawMenuBar(PaneContext& context);     // menus, search, hits, file and ranks
void DrawVerdict(PaneContext& context);     // one line; step markers inferred or absent
void DrawQualityBar(PaneContext& context);  // only when data was lost or repaired
void DrawStepRibbon(PaneContext& context);  // a bar a step, stacked by cause
void DrawOverview(PaneContext& context);    // all time, with the view as a window in it
void DrawTimeline(PaneContext& context);    // ruler, tracks, lanes
void DrawFindings(PaneContext& context);
void DrawSelection(PaneContext& context);  // the event's facts, stack, links, histogram
void DrawInspector(PaneContext& context);  // tabs
void DrawWelcome(PaneContext& context);    // no file: drop zone, recent, demo, how to record
void DrawLoading(PaneContext& context);    // progress and cancel; an overlay once lines are there
void DrawHelp(PaneContext& context);       // the `?` sheet
void DrawGoTo(PaneContext& context);

}  // namespace trainprof
