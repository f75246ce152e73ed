// Which tracks the timeline shows, how high each is and where: a pure function of the lines and of
// what their user pinned, collapsed, unfolded and filtered. Made anew when one of these changes;
// a frame then costs by the rows it sees.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "viewer/timeline/lines.h"

namespace trainprof {

// A line nested deeper shows this many lanes, and says how many more it has until it is unfolded.
inline constexpr uint32_t kLanesUnlessUnfolded = 8;

// In pixels.
struct RowHeights {
  int32_t lane = 17;
  int32_t series = 36;
  int32_t gap = 3;  // below each row

  bool operator==(const RowHeights&) const = default;
};

enum class RowForm : uint8_t {
  kLanes,
  kSeries,
  kStrip,  // a collapsed rank or GPU: when its GPU was busy, and why it was not
};

struct TrackRow {
  uint32_t line = 0;
  RowForm form = RowForm::kLanes;
  bool collapsed = false;
  bool can_collapse = false;
  uint32_t lanes = 0;   // shown, from depth 0 on; of a strip or a series 1
  uint32_t deeper = 0;  // lanes that are not: said in a row of its own
  // Of a strip: the lines that it stands for; kNoLine where there is none.
  uint32_t busy = kNoLine;  // a GPU, without any the thread that steps
  uint32_t idle = kNoLine;
  int64_t top = 0;     // pixels from the top of the first row
  int32_t height = 0;  // without the gap

  int64_t bottom() const { return top + height; }
};

// What the layout depends on besides the lines.
struct LayoutChoice {
  std::set<uint32_t> pinned{};
  std::set<uint32_t> collapsed{};
  std::set<uint32_t> unfolded{};
  std::string filter{};  // case does not count
  RowHeights heights;

  bool operator==(const LayoutChoice&) const = default;
};

// The thread of a rank that steps; where that is not known, the first. kNoLine: it has none.
uint32_t MainThreadOf(const Lines& lines, uint32_t rank);

// Rows of pixels one below the other.
struct RowList {
  std::vector<TrackRow> rows;
  int64_t height = 0;  // of all, with their gaps

  // The rows of which something lies within [top, top + height), as indices [first, last).
  // O(log rows).
  std::pair<size_t, size_t> Within(int64_t top, int64_t height) const;
  // Index of a line's row, or rows.size(). O(rows).
  size_t Find(uint32_t line) const;
};

struct TrackLayout {
  RowList pinned;  // copies of rows of `tracks`, in the lines' order; they stay where they are
  RowList tracks;  // those below a collapsed line left out
  size_t filtered_out = 0;
};

// O(lines); with a filter names are made, too. The filter shows lines whose name contains it, what
// stands above them and, of a rank or GPU that it names, everything below; then nothing counts as
// collapsed.
TrackLayout MakeTrackLayout(const Lines& lines, const LayoutChoice& choice);

}  // namespace trainprof
