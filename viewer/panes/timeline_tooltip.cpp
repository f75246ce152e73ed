// What the timeline says of what is under the mouse.
#include <fmt/format.h>

#include "viewer/navigation/ruler.h"
#include "viewer/panes/timeline_input.h"
#include "viewer/panes/timeline_series.h"
#include "viewer/panes/widgets.h"

namespace trainprof {
namespace {

constexpr size_t kMostTooltipBytes = 160;

void OfColumn(const PaneContext& context, const Lane& lane, const Hit& hit) {
  const auto count = static_cast<int64_t>(hit.last - hit.first);
  const CategoryTotals totals = lane.TotalsWithin(hit.time, hit.first, hit.last);
  Duration busy;
  size_t most = static_cast<size_t>(lane.category(hit.first));
  for (size_t c = 0; c < kCategories; ++c) {
    busy += totals[c];
    if (totals[c] > totals[most]) most = c;
  }
  Text(fmt::format("{} {}, too short to show", Grouped(count), count == 1 ? "event" : "events"));
  const bool idle = lane.table(hit.first) == Table::kIdle;
  const auto category = static_cast<Category>(most);
  Text(fmt::format("mostly {}, {:.0f} % of {} {}", Title(category, idle),
                   100 * RankAnalysis::Part(busy, hit.time.Length()), ShortText(hit.time.Length()),
                   idle ? "idle" : "busy"));
  TextIn(context.theme.text_dim, "double-click or wheel: zoom in");
}

void OfEvent(PaneContext& context, const ShownLane& shown, const Lane& lane, size_t i) {
  const Lines& lines = context.state.lines();
  const EventRef event{lines.lines()[shown.line].rank, lane.table(i), lane.row(i)};
  const std::string name = EventName(lines, event);
  Text(FirstOf(name, kMostTooltipBytes));
  Text(fmt::format("{}   {}", ShortText(lane.interval(i).Length()),
                   Title(lane.category(i), event.table == Table::kIdle)));
  TextIn(context.theme.text_dim, "begins at " + ExactText(Duration{lane.interval(i).begin.ns}));
}

}  // namespace

void DrawTooltip(PaneContext& context, const TimelineFrame& frame, const Target& target,
                 ImVec2 at) {
  if (target.row == nullptr || !target.row->ready) return;
  if (target.row->row.form == RowForm::kSeries) {
    const std::string value = SeriesTextAt(context, frame, target.row->row.line, at.x);
    if (value.empty()) return;
    ImGui::BeginTooltip();
    Text(TrackName(context, target.row->row.line));
    Text(value);
    ImGui::EndTooltip();
    return;
  }
  if (target.lane == nullptr) return;
  if (target.hit.Empty() && !target.gap) return;
  const Lane& lane = LaneOf(context.state.document->store(), *target.lane);
  ImGui::BeginTooltip();
  if (target.hit.Empty()) {
    TextIn(context.theme.text_dim, "gap of " + ShortText(target.gap->Length()));
  } else if (target.hit.folded) {
    OfColumn(context, lane, target.hit);
  } else {
    OfEvent(context, *target.lane, lane, target.hit.first);
  }
  ImGui::EndTooltip();
}

}  // namespace trainprof
