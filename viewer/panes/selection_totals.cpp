// Sums in the selection pane: the durations of a name, the time of a range.
#include <fmt/format.h>

#include <algorithm>

#include "viewer/navigation/ruler.h"
#include "viewer/panes/selection.h"

namespace trainprof {
namespace {

constexpr float kHistogramPoints = 52;
constexpr float kBarPoints = 8;
constexpr size_t kMostLines = 100'000;  // that are looked at
constexpr size_t kLinesShown = 40;
constexpr size_t kCategoriesShown = 5;

void DrawBins(const Theme& theme, const Histogram& histogram, Duration marked) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size(std::max(1.F, ImGui::GetContentRegionAvail().x), theme.Px(kHistogramPoints));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme.stripe);
  const uint64_t most = *std::max_element(histogram.bins.begin(), histogram.bins.end());
  const float width = size.x / static_cast<float>(histogram.bins.size());
  const size_t own = histogram.BinOf(marked);
  for (size_t b = 0; b < histogram.bins.size(); ++b) {
    if (histogram.bins[b] == 0) continue;
    const float share = static_cast<float>(histogram.bins[b]) / static_cast<float>(most);
    const float height = std::max(theme.Px(2), share * (size.y - theme.Px(6)));
    const float left = at.x + width * static_cast<float>(b);
    draw.AddRectFilled({left, at.y + size.y - height},
                       {left + std::max(1.F, width - 1), at.y + size.y},
                       b == own ? theme.selection : theme.text_dim);
  }
  // A mark above it as well, so that colour is not the only cue.
  const float middle = at.x + width * (static_cast<float>(own) + 0.5F);
  const float half = theme.Px(4);
  draw.AddTriangleFilled({middle - half, at.y}, {middle + half, at.y}, {middle, at.y + theme.Px(5)},
                         theme.selection);
  ImGui::Dummy(size);
}

// Lines whose lanes are there: those on screen. Others would hold up the frame.
RangeFacts TotalsOfLines(State& state, const Interval& range, size_t there) {
  RangeFacts facts{.range = range, .bytes_there = there, .counting = false, .lines = {}};
  LaneStore& store = state.document->store();
  const auto lines =
      state.lines().lines().first(std::min(kMostLines, state.lines().lines().size()));
  for (uint32_t line = 0; line < lines.size() && facts.lines.size() < kLinesShown; ++line) {
    const bool series = lines[line].lanes == 0;
    const bool steps = lines[line].kind == LineKind::kRank;
    if (series || steps || !store.Has(line)) continue;
    const std::optional<RangeTotals> totals = TotalsOf(store, line, range);
    if (!totals) facts.counting = true;
    if (totals && totals->events > 0) facts.lines.push_back({line, *totals});
  }
  return facts;
}

// The categories of a line's time, largest first.
std::vector<Category> LargestCategories(const CategoryTotals& time) {
  std::vector<Category> found;
  for (size_t c = 0; c < kCategories; ++c) {
    if (time[c].ns > 0) found.push_back(static_cast<Category>(c));
  }
  std::stable_sort(found.begin(), found.end(), [&](Category a, Category b) {
    return time[static_cast<size_t>(a)] > time[static_cast<size_t>(b)];
  });
  return found;
}

void DrawShares(const Theme& theme, const RangeTotals& totals, const std::vector<Category>& order,
                Duration range) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size(std::max(1.F, ImGui::GetContentRegionAvail().x), theme.Px(kBarPoints));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme.stripe);
  float x = at.x;
  for (const Category c : order) {
    const double share = RankAnalysis::Part(totals.time[static_cast<size_t>(c)], range);
    const float end = std::min(at.x + size.x, x + static_cast<float>(share) * size.x);
    draw.AddRectFilled({x, at.y}, {end, at.y + size.y}, theme.Of(c));
    x = end;
  }
  ImGui::Dummy(size);
}

void DrawLine(PaneContext& context, const RangeLine& line, Duration range) {
  const Theme& theme = context.theme;
  const Lines& lines = context.state.lines();
  const Duration total = line.totals.Total();
  const double percent = 100 * RankAnalysis::Part(total, range);
  std::string name = lines.NameOf(line.line);
  const Line& l = lines.lines()[line.line];
  if (context.state.document->ranks() > 1) name = RankName(context.state, l.rank) + ", " + name;
  CutText(name);
  ImGui::PushStyleColor(ImGuiCol_Text, theme.text_dim);
  CutText(fmt::format("{} ({:.1f} %), {} {}", ShortText(total), percent,
                      Grouped(static_cast<int64_t>(line.totals.events)),
                      line.totals.events == 1 ? "event" : "events"));
  ImGui::PopStyleColor();
  const std::vector<Category> order = LargestCategories(line.totals.time);
  DrawShares(theme, line.totals, order, range);
  std::string text;
  for (size_t i = 0; i < std::min(order.size(), kCategoriesShown); ++i) {
    if (i > 0) text += ", ";
    text += fmt::format("{} {}", Title(order[i], l.kind == LineKind::kIdle),
                        ShortText(line.totals.time[static_cast<size_t>(order[i])]));
  }
  ImGui::PushStyleColor(ImGuiCol_Text, theme.text_dim);
  if (!text.empty()) WrappedText(text);
  ImGui::PopStyleColor();
  ImGui::Spacing();
}

}  // namespace

void DrawHistogram(PaneContext& context, const EventRef& event) {
  State& state = context.state;
  const Trace& trace = state.document->TraceOf(event.rank);
  const EventColumns* const columns = ColumnsOf(trace, event.table);
  if (columns == nullptr || !Lasts(trace, event.table)) return;
  const HistogramKey key{event.rank, event.table, columns->name[Index(event.row)]};
  const Histogram* const histogram = context.cache.inspector.histogram.Get(
      key, columns->size() <= kEventsAtOnce,
      [owner = state.document, &trace, key] { return MakeHistogram(trace, key.table, key.name); });
  if (histogram == nullptr) return TextIn(context.theme.text_dim, "computing ...");
  if (histogram->count < 2 || histogram->bins.empty()) {
    return TextIn(context.theme.text_dim, "the only one of this name");
  }
  CutText(fmt::format("{} of this name, {} in all; median {}",
                      Grouped(static_cast<int64_t>(histogram->count)), ShortText(histogram->total),
                      ShortText(histogram->median)));
  DrawBins(context.theme, *histogram, columns->interval(event.row).Length());
  const std::string longest = ShortText(histogram->longest);
  TextIn(context.theme.text_dim, ShortText(histogram->shortest));
  ImGui::SameLine();
  const float width = ImGui::CalcTextSize(longest.c_str()).x;
  const float room = ImGui::GetContentRegionAvail().x;
  if (room > width) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room - width);
  TextIn(context.theme.text_dim, longest);
}

void DrawRange(PaneContext& context, const Interval& range) {
  State& state = context.state;
  std::optional<RangeFacts>& facts = context.cache.inspector.range_facts;
  const size_t there = state.document->store().size_bytes();
  if (!facts || facts->counting || facts->range != range || facts->bytes_there != there) {
    facts = TotalsOfLines(state, range, there);
  }
  WrappedText(fmt::format("Range of {}", ExactText(range.Length())));
  ImGui::PushStyleColor(ImGuiCol_Text, context.theme.text_dim);
  WrappedText(
      fmt::format("from {}; of the tracks on screen, each moment counted for the innermost event. "
                  "The tables beside are of this range",
                  ExactText(range.begin - TraceTime{0})));
  if (facts->counting) Text("counting ...");
  ImGui::PopStyleColor();
  for (const RangeLine& line : facts->lines) DrawLine(context, line, range.Length());
  if (facts->lines.empty()) Text("no events on the tracks that are shown");
}

}  // namespace trainprof
