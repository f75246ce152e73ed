#include "viewer/panes/timeline_marks.h"

#include <algorithm>
#include <cmath>

#include "viewer/navigation/follow.h"
#include "viewer/panes/rect_limits.h"

namespace trainprof {
namespace {

// A graph launches thousands.
constexpr size_t kMostArrows = 64;

const Finding* OpenFindingOf(const State& state) {
  if (!state.finding) return nullptr;
  const RankAnalysis* analysis = state.document->Analysis(state.finding->rank);
  if (analysis == nullptr || state.finding->index >= analysis->findings.size()) return nullptr;
  return &analysis->findings[state.finding->index];
}

// Calls visit(index of the lane, Box) for each place in this frame where an event is drawn: twice
// where its row is pinned, never where its lane is out of sight or not made yet. A box may lie out
// of sight to the left or right.
template <class Visitor>
void VisitPlaces(PaneContext& context, const TimelineFrame& frame, const EventRef& event,
                 Visitor visit) {
  const PlaceFinder places(context.state, event);
  const Interval time = context.state.lines().TimeOf(event);
  for (size_t i = 0; i < frame.lanes.size(); ++i) {
    const ShownLane& lane = frame.lanes[i];
    if (!places.IsOn(lane) && !places.IsPartOf(lane)) continue;
    visit(i, Box{frame.XOf(time.begin), lane.top, frame.XOf(time.end), lane.bottom - 1});
  }
}

// Of a pinned row the one among the others, where the way between two tracks is not long; of a
// GPU's work the stream before the GPU.
std::optional<Box> BoxOf(PaneContext& context, const TimelineFrame& frame, const EventRef& event) {
  std::optional<Box> last;
  VisitPlaces(context, frame, event, [&](size_t, const Box& box) { last = box; });
  return last;
}

void DrawHead(const Theme& theme, ImDrawList* draw, ImVec2 from, ImVec2 to) {
  const float width = std::max(1.5f, theme.Px(1.5f));
  const float bend = std::max(theme.Px(20), std::abs(to.x - from.x) / 3);
  draw->AddBezierCubic(from, {from.x + bend, from.y}, {to.x - bend, to.y}, to, theme.selection,
                       width);
  const float size = theme.Px(5);
  draw->AddTriangleFilled({to.x, to.y}, {to.x - size * 1.4f, to.y - size * 0.8f},
                          {to.x - size * 1.4f, to.y + size * 0.8f}, theme.selection);
}

void Connect(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
             const EventRef& call, const EventRef& op) {
  const std::optional<Box> from = BoxOf(context, frame, call);
  const std::optional<Box> to = BoxOf(context, frame, op);
  if (!from || !to) return;
  // Far away ends would be beyond what a float tells.
  const float least = frame.areas.time.left - 4 * frame.areas.time.width();
  const float most = frame.areas.time.right + 4 * frame.areas.time.width();
  const float from_x = std::clamp((from->left + from->right) / 2, least, most);
  const float to_x = std::clamp(to->left, least, most);
  DrawHead(context.theme, draw, {from_x, (from->top + from->bottom) / 2},
           {to_x, (to->top + to->bottom) / 2});
}

void DrawArrows(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
                const EventRef& event) {
  const LaunchLinks& links = context.state.document->Links(event.rank);
  if (event.table == Table::kDeviceOps) {
    const Row call = links.CallOf(event.row);
    if (call != kNoRow) Connect(context, draw, frame, {event.rank, Table::kApi, call}, event);
  } else if (event.table == Table::kApi) {
    const std::span<const Row> ops = links.OpsOf(event.row);
    for (Row op : ops.first(std::min(ops.size(), kMostArrows))) {
      Connect(context, draw, frame, event, {event.rank, Table::kDeviceOps, op});
    }
  }
}

// Parts that are wide enough to be told apart.
std::vector<Interval> SeenParts(const IntervalSet& set, const TimelineFrame& frame) {
  std::vector<Interval> parts;
  float least = 1;
  do {
    parts.clear();
    for (const Interval& part : set.intervals()) {
      if (frame.XOf(part.end) - frame.XOf(part.begin) >= least) parts.push_back(part);
    }
    least *= 2;
  } while (parts.size() > kMostVeilParts);
  return parts;
}

// The instance that is shown stands between two lines.
void DrawInstance(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
                  const Finding& finding) {
  const State& state = context.state;
  if (state.evidence >= finding.evidence.size()) return;
  const Duration shift = state.lines().Shift(state.finding->rank);
  const Interval when = finding.evidence[state.evidence].when;
  const Box& time = frame.areas.time;
  for (const TraceTime edge : {when.begin + shift, when.end + shift}) {
    const float x = std::floor(frame.XOf(edge));
    if (x < time.left || x >= time.right) continue;
    draw->AddRectFilled({x, time.top}, {x + std::max(1.f, context.theme.scale), time.bottom},
                        context.theme.text);
  }
}

}  // namespace

void DrawVeil(const PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  const State& state = context.state;
  const Finding* finding = OpenFindingOf(state);
  if (finding == nullptr || finding->evidence.empty()) return;
  const Duration shift = state.lines().Shift(state.finding->rank);
  std::vector<Interval> shown;
  for (const Evidence& evidence : finding->evidence) {
    shown.push_back({evidence.when.begin + shift, evidence.when.end + shift});
  }
  const IntervalSet lit = IntervalSet::Union(std::move(shown));
  const std::vector<Interval> dim = SeenParts(lit.Complement(state.view), frame);
  const std::vector<Interval> all = {state.view};
  const ImU32 veil = (context.theme.panel & ~IM_COL32_A_MASK) | (150u << IM_COL32_A_SHIFT);
  const Box& time = frame.areas.time;
  // Rows of one rank that stand below each other have one veil.
  const auto is_own = [&](const ShownRow& row) {
    return state.lines().lines()[row.row.line].rank == state.finding->rank;
  };
  for (size_t row = 0; row < frame.rows.size();) {
    const ShownRow& first = frame.rows[row];
    size_t last = row;
    while (last + 1 < frame.rows.size() && frame.rows[last + 1].is_pinned == first.is_pinned &&
           is_own(frame.rows[last + 1]) == is_own(first)) {
      ++last;
    }
    const Box& clip = frame.ClipOf(first);
    const float top = std::max(first.top, clip.top);
    const float bottom = std::min(frame.rows[last].bottom, clip.bottom);
    for (const Interval& part : is_own(first) ? dim : all) {
      const float left = std::max(frame.XOf(part.begin), time.left);
      const float right = std::min(frame.XOf(part.end), time.right);
      draw->AddRectFilled({left, top}, {right, bottom}, veil);
    }
    row = last + 1;
  }
  DrawInstance(context, draw, frame, *finding);
}

void DrawSelected(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  if (!context.state.selected) return;
  const Box& time = frame.areas.time;
  const float width = std::max(2.f, context.theme.Px(2));
  VisitPlaces(context, frame, *context.state.selected, [&](size_t lane, Box box) {
    if (box.right < time.left || box.left > time.right) return;
    box.left = std::max(box.left - width / 2, time.left - width);
    box.right = std::min(std::max(box.right, box.left + 2 * width), time.right + width);
    const Box& rows = lane < frame.pinned_lanes ? frame.areas.pinned : frame.areas.tracks;
    draw->PushClipRect({time.left, rows.top}, rows.max(), true);
    draw->AddRect(box.min(), box.max(), context.theme.selection, 0, 0, width);
    draw->PopClipRect();
  });
  draw->PushClipRect(time.min(), time.max(), true);
  DrawArrows(context, draw, frame, *context.state.selected);
  draw->PopClipRect();
}

}  // namespace trainprof
