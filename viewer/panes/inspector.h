// The inspector's tabs, and what they have in common.
#pragma once

#include "viewer/panes/cache.h"
#include "viewer/panes/data_table.h"
#include "viewer/state/actions.h"

namespace trainprof {

// "rank 3"; of several that are not alike "rank 3 (slowest)".
std::string RankName(const State& state, uint32_t rank);
// Chooses the shown rank; nothing where there is only one.
void RankChooser(PaneContext& context, const char* id);

// What tables are about: the selected range, else the steps, else the whole trace. `of_devices`:
// the steps in which devices were recorded.
Scope ScopeOf(PaneContext& context, bool of_devices);
// A line that says what the table is about; with " computing ..." while there is none.
void ScopeLine(const PaneContext& context, const Scope& scope, bool there);

// More events than this are counted on a thread of their own.
inline constexpr size_t kEventsAtOnce = 200'000;

void DrawKernels(PaneContext& context);
void DrawOps(PaneContext& context);
void DrawSites(PaneContext& context);
void DrawRanks(PaneContext& context);
void DrawMemory(PaneContext& context);
void DrawQuality(PaneContext& context);

}  // namespace trainprof
