// The tab of memory: how much was allocated over time, its peak, and the largest requests.
#include <fmt/format.h>

#include <algorithm>

#include "viewer/navigation/ruler.h"
#include "viewer/panes/inspector.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr float kPlotPoints = 46;

// Of the shown rank's lines: reported memory, and counters of it.
MemoryLines FindLines(const State& state, uint32_t rank) {
  MemoryLines found{rank, {}};
  const Lines& lines = state.lines();
  for (uint32_t line = 0; line < lines.lines().size(); ++line) {
    const Line& l = lines.lines()[line];
    if (l.rank != rank) continue;
    const bool is_counter = l.kind == LineKind::kCounter;
    const std::string name = is_counter ? lines.NameOf(line) : std::string();
    const bool of_memory = (names_internal::ContainsNoCase(name, "memory") ||
                            names_internal::ContainsNoCase(name, "rss")) &&
                           !names_internal::ContainsNoCase(name, "clock");
    if (l.kind == LineKind::kMemory || of_memory) found.lines.push_back(line);
  }
  return found;
}

// Lowest to highest value of each pixel over the view, as a filled shape from zero.
void Plot(const PaneContext& context, const Series& series, double high, ImVec2 at, ImVec2 size) {
  const Theme& theme = context.theme;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme.stripe);
  const Interval& view = context.state.view;
  const auto width = std::max(1, static_cast<int32_t>(size.x));
  if (high <= 0) return;
  const auto height_of = [&](double value) {
    return size.y * static_cast<float>(std::clamp(value / high, 0.0, 1.0));
  };
  const ImU32 color = theme.Of(Category::kAllocation);
  const ImU32 below = theme.Shaded(Category::kAllocation, 1);
  const float edge = std::max(1.F, theme.Px(1.5F));
  for (const SeriesColumn& column : ColumnsOf(series, Scale::Of(view, width))) {
    const float x = at.x + static_cast<float>(column.pixel);
    const float top = at.y + size.y - std::max(1.F, height_of(column.range.high));
    const float low = at.y + size.y - height_of(column.range.low);
    draw.AddRectFilled({x, top}, {x + 1, at.y + size.y}, below);
    draw.AddRectFilled({x, top}, {x + 1, std::max(low, top + edge)}, color);
  }
}

void DrawSeries(PaneContext& context, uint32_t line) {
  State& state = context.state;
  const ImVec2 size(ImGui::GetContentRegionAvail().x, context.theme.Px(kPlotPoints));
  const float height = ImGui::GetTextLineHeightWithSpacing() + size.y;
  // A series is made when it is looked at.
  const bool visible = ImGui::IsRectVisible({size.x, height});
  if (!visible || !state.document->store().Ask(line)) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (visible) ImGui::GetWindowDrawList()->AddText(at, context.theme.text_dim, "computing ...");
    return ImGui::Dummy({size.x, height});
  }
  const Series& series = state.document->store().SeriesOf(line);
  const Line& l = state.lines().lines()[line];
  Series::Range all;
  series.Within(state.lines().extent(), all);
  const double peak = all.high;
  const bool in_bytes = l.kind == LineKind::kMemory;
  const std::string text =
      in_bytes ? BytesText(static_cast<int64_t>(peak)) : fmt::format("{:g}", peak);
  CutText(fmt::format("{}: peak {}", state.lines().NameOf(line), text));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::PushID(static_cast<int>(line));
  if (ImGui::InvisibleButton("plot", {std::max(1.F, size.x), size.y})) Reveal(state, line);
  ImGui::PopID();
  Plot(context, series, peak, at, size);
}

void DrawLargest(PaneContext& context, const Scope& scope, const MemoryTable& table) {
  State& state = context.state;
  for (const DeviceMemory& device : table.devices) {
    const std::string who = device.device_id < 0 ? "host" : fmt::format("GPU {}", device.device_id);
    WrappedText(fmt::format("{}: {} allocations of {} in all, the largest {}; {} releases", who,
                            Grouped(static_cast<int64_t>(device.allocations)),
                            BytesText(device.allocated_bytes), BytesText(device.largest_bytes),
                            Grouped(static_cast<int64_t>(device.releases))));
  }
  if (table.largest.empty()) return;
  const Trace& trace = state.document->TraceOf(scope.rank);
  Text("Largest allocations");
  for (const LargeAllocation& allocation : table.largest) {
    const EventRef event{scope.rank, Table::kInstants, allocation.row};
    const TraceTime at =
        trace.instants.begin[Index(allocation.row)] + state.lines().Shift(scope.rank);
    const std::string text =
        fmt::format("{} at {}", BytesText(allocation.bytes), ShortText(at - TraceTime{0}));
    ImGui::PushID(static_cast<int>(Index(allocation.row)));
    if (ImGui::Selectable(text.c_str(), state.selected == event)) {
      Select(state, event);
      Show(state, {at, at + Microseconds(100)});
    }
    ImGui::PopID();
  }
}

}  // namespace

void DrawMemory(PaneContext& context) {
  State& state = context.state;
  const Scope scope = ScopeOf(context, false);
  const Trace& trace = state.document->TraceOf(scope.rank);
  const MemoryTable* const table =
      context.cache.inspector.memory.Get(scope, trace.instants.size() <= kEventsAtOnce,
                                         [owner = state.document, &trace, window = scope.window] {
                                           return MakeMemoryTable(trace, window);
                                         });
  ScopeLine(context, scope, table != nullptr);
  ImGui::BeginChild("memory");
  ScrollByKeys(context, KeyPane::kTables);
  std::optional<MemoryLines>& found = context.cache.inspector.memory_lines;
  if (!found || found->rank != scope.rank) found = FindLines(state, scope.rank);
  const std::vector<uint32_t>& lines = found->lines;
  for (uint32_t line : lines) DrawSeries(context, line);
  if (table != nullptr) DrawLargest(context, scope, *table);
  const bool none = lines.empty() && table != nullptr && table->devices.empty();
  if (none) {
    WrappedText(
        "No memory was recorded. Recordings of a GPU run have its allocations; in torch.profiler "
        "it is profile_memory=True.");
  }
  ImGui::EndChild();
}

}  // namespace trainprof
