#include "viewer/panes/timeline_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "viewer/panes/rect_limits.h"
#include "viewer/panes/widgets.h"

namespace trainprof {
namespace {

constexpr int32_t kSeriesColumnPoints = 2;

bool IsMemory(const PaneContext& context, uint32_t line) {
  return context.state.lines().lines()[line].kind == LineKind::kMemory;
}

std::string ValueText(double value, bool is_memory) {
  constexpr double kMostBytes = 9e18;
  if (is_memory && std::abs(value) < kMostBytes) return BytesText(static_cast<int64_t>(value));
  const double size = std::abs(value);
  if (size >= 1e15) return fmt::format("{:.3g}", value);
  if (size >= 1e9) return fmt::format("{:.4g} G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.4g} M", value / 1e6);
  return fmt::format("{:.6g}", value);
}

// Each column of each row takes two rectangles.
int32_t MostColumns(const TimelineFrame& frame) {
  const auto rows = std::count_if(frame.rows.begin(), frame.rows.end(), [](const ShownRow& shown) {
    return shown.row.form == RowForm::kSeries;
  });
  return static_cast<int32_t>(kMostSeriesRects / 2) / std::max(1, static_cast<int32_t>(rows));
}

const DrawnSeries& Drawn(PaneContext& context, const TimelineFrame& frame, uint32_t line) {
  const auto [it, is_new] = context.cache.timeline.series.try_emplace(line);
  DrawnSeries& drawn = it->second;
  const Series& series = context.state.document->store().SeriesOf(line);
  if (is_new) drawn.extent = series.Extent();
  const auto column = std::max(1, static_cast<int32_t>(context.theme.Px(kSeriesColumnPoints)));
  const int32_t wanted = std::clamp(frame.scale.width_px / column, 1, MostColumns(frame));
  if (drawn.view != context.state.view || drawn.columns_wanted != wanted) {
    drawn.view = context.state.view;
    drawn.columns_wanted = wanted;
    drawn.columns = ColumnsOf(series, Scale::Of(drawn.view, wanted));
  }
  return drawn;
}

void DrawOne(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
             const ShownRow& shown) {
  const Theme& theme = context.theme;
  const DrawnSeries& drawn = Drawn(context, frame, shown.row.line);
  const double low = std::min(0.0, drawn.extent.low);
  const double high = std::max(low + 1e-300, std::max(0.0, drawn.extent.high));
  const float top = shown.top + theme.Px(2);
  const float bottom = shown.bottom - theme.Px(1);
  const auto y_of = [&](double value) {
    return bottom - static_cast<float>((value - low) / (high - low)) * (bottom - top);
  };
  const float column = frame.areas.time.width() / static_cast<float>(drawn.columns_wanted);
  const ImU32 line = theme.Of(Category::kPython);  // a calm blue; values have no category
  const ImU32 fill = (line & ~IM_COL32_A_MASK) | (80u << IM_COL32_A_SHIFT);
  const float thickness = std::max(1.f, theme.Px(1.5f));
  for (const SeriesColumn& c : drawn.columns) {
    const float left = frame.areas.time.left + static_cast<float>(c.pixel) * column;
    const float high_y = std::min(y_of(c.range.high), bottom - thickness);
    const float low_y = std::max(y_of(c.range.low), high_y + thickness);
    draw->AddRectFilled({left, high_y}, {left + column, low_y}, line);
    draw->AddRectFilled({left, low_y}, {left + column, y_of(0)}, fill);
  }
}

// How high the row reaches.
void DrawScale(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame,
               const ShownRow& shown) {
  const Theme& theme = context.theme;
  const DrawnSeries& drawn = Drawn(context, frame, shown.row.line);
  const bool is_memory = IsMemory(context, shown.row.line);
  const std::string text = drawn.extent.low < 0
                               ? fmt::format("{} .. {}", ValueText(drawn.extent.low, is_memory),
                                             ValueText(drawn.extent.high, is_memory))
                               : "max " + ValueText(drawn.extent.high, is_memory);
  const ImVec2 at{frame.areas.time.left + theme.Px(4), shown.top + theme.Px(1)};
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const ImU32 behind = (theme.panel & ~IM_COL32_A_MASK) | (200u << IM_COL32_A_SHIFT);
  draw->AddRectFilled({at.x - theme.Px(2), at.y}, {at.x + size.x + theme.Px(2), at.y + size.y},
                      behind);
  draw->AddText(at, theme.text_dim, text.c_str());
}

template <class Visitor>
void ForEachSeries(ImDrawList* draw, const TimelineFrame& frame, Visitor visit) {
  for (const ShownRow& shown : frame.rows) {
    if (shown.row.form != RowForm::kSeries || !shown.ready) continue;
    const Box& clip = frame.ClipOf(shown);
    draw->PushClipRect({frame.areas.time.left, clip.top}, clip.max(), true);
    visit(shown);
    draw->PopClipRect();
  }
}

}  // namespace

void DrawSeriesRows(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  ForEachSeries(draw, frame, [&](const ShownRow& row) { DrawOne(context, draw, frame, row); });
}

void DrawSeriesScales(PaneContext& context, ImDrawList* draw, const TimelineFrame& frame) {
  ForEachSeries(draw, frame, [&](const ShownRow& row) { DrawScale(context, draw, frame, row); });
}

std::string SeriesTextAt(PaneContext& context, const TimelineFrame& frame, uint32_t line, float x) {
  const Series& series = context.state.document->store().SeriesOf(line);
  const TraceTime begin = frame.TimeAt(x);
  const TraceTime end = std::max(frame.TimeAt(x + 1), begin + Nanoseconds(1));
  Series::Range range;
  if (!series.Within({begin, end}, range)) return {};
  const bool is_memory = IsMemory(context, line);
  if (range.low == range.high) return ValueText(range.low, is_memory);
  return ValueText(range.low, is_memory) + " .. " + ValueText(range.high, is_memory);
}

}  // namespace trainprof
