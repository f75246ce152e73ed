// What the inspector, the selection and the findings keep between frames.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/tables/facts.h"
#include "analysis/tables/histogram.h"
#include "analysis/tables/memory_table.h"
#include "analysis/tables/name_table.h"
#include "analysis/tables/rank_table.h"
#include "analysis/tables/site_table.h"
#include "viewer/navigation/measure.h"
#include "viewer/state/state.h"
#include "viewer/timeline/background.h"

namespace trainprof {

// What a table is about.
struct Scope {
  uint32_t rank = 0;
  IntervalSet window;  // in the rank's trace time
  int64_t steps = 0;   // in the window, to divide by; 0: no steps
  std::string what{};  // "over 30 steps (5.4 s)"

  bool operator==(const Scope& other) const { return rank == other.rank && window == other.window; }
};

// The rows of a table in the order that its user chose.
struct SortedRows {
  uint64_t generation = UINT64_MAX;  // of the table
  std::vector<uint32_t> rows;
};

struct NamesPane {
  Background<Scope, NameTable> table;
  SortedRows order;
};

// About the selected event.
struct SelectionFacts {
  EventRef event;
  Category category{};
  std::vector<Fact> facts;
  std::vector<Fact> arguments;
  std::vector<StackFrame> stack;
  std::vector<EventRef> launched;  // by a call, the first ones
  size_t launched_in_all = 0;
  bool launched_is_known = true;   // false while the rank is being analysed
  std::optional<EventRef> launch;  // that an operation was launched by
};

// A line's part of the selected range.
struct RangeLine {
  uint32_t line = 0;
  RangeTotals totals;
};

struct RangeFacts {
  Interval range;
  size_t bytes_there = 0;  // of lanes that were there: a later frame may have more
  bool counting = false;   // some lines are still being counted
  std::vector<RangeLine> lines;
};

// Lines of a rank that say how much memory was in use.
struct MemoryLines {
  uint32_t rank = 0;
  std::vector<uint32_t> lines;
};

struct HistogramKey {
  uint32_t rank = 0;
  Table table{};
  StringId name = kEmptyString;

  bool operator==(const HistogramKey&) const = default;
};

// What a user has chosen and is writing: stays when further ranks come.
struct PaneInputs {
  NamedEvents ops = NamedEvents::kOperators;
  std::optional<int> shown_tab;  // that the tab bar was told of
  std::string search;            // as it is being written
  std::string searched;          // what state.search had when `search` was last set from it
  std::string path_prompt;       // of File, Open
  std::string go_to;
  std::optional<FindingRef> scrolled_to;
};

struct InspectorCache {
  std::array<NamesPane, 4> names;  // by NamedEvents
  Background<Scope, std::vector<SiteRow>> sites;
  SortedRows sites_order;
  std::optional<std::vector<RankRow>> ranks;
  SortedRows ranks_order;
  Background<Scope, MemoryTable> memory;
  std::optional<MemoryLines> memory_lines;
  // Kept while the mouse drags a range, so that tables are made once it is there.
  std::optional<Interval> range;

  std::optional<SelectionFacts> selection;
  Background<HistogramKey, Histogram> histogram;
  std::optional<RangeFacts> range_facts;

  PaneInputs inputs;

  void Clear() {
    PaneInputs kept = std::move(inputs);
    *this = InspectorCache{};
    inputs = std::move(kept);
  }
  // A table is being made: the next frame shows more.
  bool busy() const {
    bool busy = sites.busy() || memory.busy() || histogram.busy();
    for (const NamesPane& pane : names) busy = busy || pane.table.busy();
    return busy;
  }
};

}  // namespace trainprof
