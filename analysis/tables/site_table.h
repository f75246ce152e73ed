// The user's source lines by what they make the host wait for, and by how much they launch.
#pragma once

#include <string>
#include <vector>

#include "analysis/model.h"

namespace trainprof {

struct SiteRow {
  Site site;  // count: calls from here
  uint64_t blocking = 0;
  Duration blocked;       // in calls that waited for the device
  uint64_t launches = 0;  // kernels, graphs, copies, memsets
  uint64_t allocations = 0;
  Duration longest;          // of the calls that waited, else of all
  Row longest_row = kNoRow;  // of trace.api
};

// Runtime calls that touch the window, cut at its ends; longest blocked first, then most calls.
// Can be cancelled. O(calls log n).
std::vector<SiteRow> MakeSiteTable(const RankModel& model, const IntervalSet& window);

// "train.py:88 train_step (aten::item)"; "source not recorded".
std::string SiteText(const Site& site);
// The same with the last two parts of its path: what is short of room shows the line's number.
Site ShortSite(Site site);

}  // namespace trainprof
