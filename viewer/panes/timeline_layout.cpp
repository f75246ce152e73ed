#include "viewer/panes/timeline_layout.h"

#include <algorithm>

namespace trainprof {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return Lower(c); });
  return text;
}

// By line: whether the filter leaves it.
std::vector<bool> Filtered(const Lines& lines, const std::string& filter) {
  const std::span<const Line> all = lines.lines();
  if (filter.empty()) return std::vector<bool>(all.size(), true);
  std::vector<bool> named(all.size());
  std::vector<bool> shown(all.size());
  const std::string wanted = Lower(filter);
  for (uint32_t line = 0; line < all.size(); ++line) {
    const uint32_t parent = all[line].parent;
    named[line] = (parent != kNoLine && named[parent]) ||
                  Lower(lines.NameOf(line)).find(wanted) != std::string::npos;
    if (!named[line]) continue;
    for (uint32_t up = line; up != kNoLine && !shown[up]; up = all[up].parent) shown[up] = true;
  }
  return shown;
}

bool HasChildren(std::span<const Line> lines, uint32_t line) {
  return line + 1 < lines.size() && lines[line + 1].parent == line;
}

// What a collapsed line's strip stands for: of its first GPU. O(lines below it).
void FindStripSources(const Lines& all, TrackRow& row) {
  const std::span<const Line> lines = all.lines();
  const Line& top = lines[row.line];
  if (top.kind == LineKind::kGpu) row.busy = row.line;
  for (uint32_t i = row.line + 1; i < lines.size() && lines[i].level > top.level; ++i) {
    if (lines[i].kind == LineKind::kGpu && row.busy == kNoLine) row.busy = i;
    if (lines[i].kind != LineKind::kIdle) continue;
    row.busy = lines[i].parent;
    row.idle = i;
    return;
  }
  if (row.busy == kNoLine) row.busy = MainThreadOf(all, top.rank);
}

TrackRow RowOf(const Lines& lines, uint32_t index, const LayoutChoice& choice) {
  const Line& line = lines.lines()[index];
  TrackRow row{.line = index, .lanes = 1};
  const bool has_children = HasChildren(lines.lines(), index);
  row.can_collapse = has_children || line.lanes > 1;
  row.collapsed = row.can_collapse && choice.filter.empty() && choice.collapsed.contains(index);
  if (line.lanes == 0) {
    row.form = RowForm::kSeries;
    row.height = choice.heights.series;
    return row;
  }
  if (row.collapsed && has_children) {
    row.form = RowForm::kStrip;
    FindStripSources(lines, row);
  } else if (!row.collapsed) {
    const bool all = line.lanes <= kLanesUnlessUnfolded || choice.unfolded.contains(index);
    row.lanes = all ? line.lanes : kLanesUnlessUnfolded;
    row.deeper = line.lanes - row.lanes;
  }
  row.height = choice.heights.lane * static_cast<int32_t>(row.lanes + (row.deeper > 0 ? 1 : 0));
  return row;
}

void Append(TrackRow row, const RowHeights& heights, RowList& list) {
  row.top = list.height;
  list.height += row.height + heights.gap;
  list.rows.push_back(row);
}

}  // namespace

uint32_t MainThreadOf(const Lines& lines, uint32_t rank) {
  const RankAnalysis* const analysis = lines.ranks()[rank].analysis;
  const TrackId stepping = analysis != nullptr ? analysis->steps.thread : kNoTrack;
  const std::span<const Line> all = lines.lines();
  uint32_t first = kNoLine;
  for (uint32_t line = 0; line < all.size(); ++line) {
    if (all[line].rank != rank || all[line].kind != LineKind::kThread) continue;
    if (stepping == kNoTrack || all[line].track == stepping) return line;
    if (first == kNoLine) first = line;
  }
  return first;
}

std::pair<size_t, size_t> RowList::Within(int64_t top, int64_t height) const {
  const auto first = std::partition_point(rows.begin(), rows.end(),
                                          [&](const TrackRow& r) { return r.bottom() <= top; });
  const auto last = std::partition_point(first, rows.end(),
                                         [&](const TrackRow& r) { return r.top < top + height; });
  return {static_cast<size_t>(first - rows.begin()), static_cast<size_t>(last - rows.begin())};
}

size_t RowList::Find(uint32_t line) const {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const TrackRow& row) { return row.line == line; });
  return static_cast<size_t>(found - rows.begin());
}

TrackLayout MakeTrackLayout(const Lines& lines, const LayoutChoice& choice) {
  const std::span<const Line> all = lines.lines();
  const std::vector<bool> shown = Filtered(lines, choice.filter);
  TrackLayout layout;
  for (uint32_t line : choice.pinned) {
    if (line < all.size()) Append(RowOf(lines, line, choice), choice.heights, layout.pinned);
  }
  std::vector<bool> hidden(all.size());  // below a collapsed one
  for (uint32_t line = 0; line < all.size(); ++line) {
    const uint32_t parent = all[line].parent;
    const bool closed = choice.filter.empty() && choice.collapsed.contains(parent);
    hidden[line] = parent != kNoLine && (hidden[parent] || closed);
    if (!shown[line]) ++layout.filtered_out;
    if (hidden[line] || !shown[line]) continue;
    Append(RowOf(lines, line, choice), choice.heights, layout.tracks);
  }
  return layout;
}

}  // namespace trainprof
