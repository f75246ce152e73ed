#include "viewer/panes/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/io/printable.h"
#include "viewer/navigation/ruler.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr size_t kLaunchedShown = 20;
constexpr size_t kFramesShown = 60;
constexpr float kLabelPoints = 96;

std::string_view KindText(const Trace& trace, const EventRef& event) {
  if (event.table == Table::kSteps) return "step";
  if (event.table == Table::kDeviceOps) {
    switch (trace.device_ops.kind[Index(event.row)]) {
      case DeviceOpKind::kKernel:
        return "kernel";
      case DeviceOpKind::kCopy:
        return "copy";
      case DeviceOpKind::kMemset:
        return "memset";
    }
  }
  std::string_view title = RangeTable::kTitle;
  ForEachTable(trace, [&]<class T>(Table table, const T&) {
    if (table == event.table) title = T::kTitle;
  });
  return title;
}

Category CategoryOfEvent(const Trace& trace, const EventRef& event) {
  return Categorizer(trace).Of(event.table, Index(event.row));
}

void FindLaunches(State& state, const EventRef& event, SelectionFacts& facts) {
  if (event.table == Table::kDeviceOps) {
    const Row call = state.document->TraceOf(event.rank).device_ops.launch[Index(event.row)];
    if (call != kNoRow) facts.launch = EventRef{event.rank, Table::kApi, call};
  }
  if (event.table != Table::kApi) return;
  const LaunchLinks& links = state.document->Links(event.rank);
  const std::span<const Row> ops = links.OpsOf(event.row);
  facts.launched_is_known = links.whole();
  facts.launched_in_all = ops.size();
  for (const Row op : ops.first(std::min(ops.size(), kLaunchedShown))) {
    facts.launched.push_back({event.rank, Table::kDeviceOps, op});
  }
}

const SelectionFacts& FactsOfSelected(PaneContext& context) {
  State& state = context.state;
  std::optional<SelectionFacts>& facts = context.cache.inspector.selection;
  const EventRef& event = *state.selected;
  const bool stale =
      facts && !facts->launched_is_known && state.document->Links(event.rank).whole();
  if (facts && facts->event == event && !stale) return *facts;
  const Trace& trace = state.document->TraceOf(event.rank);
  facts = SelectionFacts{.event = event,
                         .category = CategoryOfEvent(trace, event),
                         .facts = FactsOf(trace, event.table, event.row),
                         .arguments = ArgumentsOf(trace, event.table, event.row),
                         .stack = StackOf(trace, event.table, event.row),
                         .launched = {},
                         .launched_in_all = 0,
                         .launched_is_known = true,
                         .launch = {}};
  FindLaunches(state, event, *facts);
  return *facts;
}

bool BeginFacts(const char* id, const Theme& theme) {
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable(id, 2, kFlags)) return false;
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthFixed, theme.Px(kLabelPoints));
  ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
  return true;
}

void FactRow(const Theme& theme, std::string_view label, std::string_view value) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushStyleColor(ImGuiCol_Text, theme.text_dim);
  CutText(label);
  ImGui::PopStyleColor();
  ImGui::TableNextColumn();
  WrappedText(value);
}

void DrawName(PaneContext& context, std::string_view name, Category category) {
  const float side = ImGui::GetTextLineHeight() * 0.65F;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float top = at.y + (ImGui::GetTextLineHeight() - side) / 2;
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + side, top + side},
                                            context.theme.Of(category));
  ImGui::SetCursorScreenPos({at.x + side * 1.5F, at.y});
  WrappedText(name.empty() ? "(no name)" : name);
  CopyButton(context, "name", OneLine(name), "copy name");
}

void DrawTimes(PaneContext& context, const SelectionFacts& facts) {
  State& state = context.state;
  const EventRef& event = facts.event;
  const Theme& theme = context.theme;
  const Lines& lines = state.lines();
  const Trace& trace = state.document->TraceOf(event.rank);
  const Interval time = lines.TimeOf(event);
  const uint32_t line = lines.LineOf(event);
  if (!BeginFacts("times", theme)) return;
  FactRow(theme, "duration", ExactText(time.Length()));
  FactRow(theme, "begin", ExactText(time.begin - TraceTime{0}));
  FactRow(theme, "what", fmt::format("{}, {}", KindText(trace, event), Title(facts.category)));
  std::string track = line == kNoLine ? "not on the timeline" : lines.NameOf(line);
  if (state.document->ranks() > 1) track = RankName(state, event.rank) + ", " + track;
  FactRow(theme, "track", track);
  for (const Fact& fact : facts.facts) FactRow(theme, fact.label, fact.value);
  ImGui::EndTable();
}

// What it launched, or what launched it, as a button that goes there.
bool LinkButton(const State& state, const char* id, const char* verb, const EventRef& to) {
  const Lines& lines = state.lines();
  const std::string label = fmt::format("{} {}", verb, FirstOf(lines.NameOf(to), 200));
  const float room = ImGui::GetContentRegionAvail().x - 2 * ImGui::GetStyle().FramePadding.x;
  return TextButton(id, FitText(label, room));
}

void DrawLinks(PaneContext& context, const SelectionFacts& facts) {
  State& state = context.state;
  std::optional<EventRef> go;
  if (facts.launch && LinkButton(state, "launch", "launched by", *facts.launch)) go = facts.launch;
  for (size_t i = 0; i < facts.launched.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    if (LinkButton(state, "launched", "launched", facts.launched[i])) go = facts.launched[i];
    ImGui::PopID();
  }
  if (facts.launched_in_all > facts.launched.size()) {
    Text(fmt::format("and {} more", facts.launched_in_all - facts.launched.size()));
  }
  if (!facts.launched_is_known) {
    TextIn(context.theme.text_dim, "what it launched: once the rank is analysed");
  }
  const bool op = facts.event.table == Table::kDeviceOps;
  if (op && !facts.launch) TextIn(context.theme.text_dim, "its launch was not recorded");
  if (go) Select(state, *go);
}

void DrawStack(const Theme& theme, const std::vector<StackFrame>& stack) {
  if (stack.empty() || !ImGui::CollapsingHeader("Stack", ImGuiTreeNodeFlags_DefaultOpen)) return;
  bool first = true;
  for (size_t i = 0; i < std::min(stack.size(), kFramesShown); ++i) {
    const bool marked = stack[i].is_users && first;
    if (marked) first = false;
    // The innermost line of the user's own code is the one to look at.
    const std::string text = (marked ? "> " : "  ") + stack[i].text;
    ImGui::PushStyleColor(ImGuiCol_Text, stack[i].is_users ? theme.text : theme.text_dim);
    CutText(text);
    ImGui::PopStyleColor();
    if (marked) Tooltip("The innermost line of your own code: " + stack[i].text);
  }
  if (stack.size() > kFramesShown) {
    TextIn(theme.text_dim, fmt::format("and {} more frames", stack.size() - kFramesShown));
  }
}

void DrawArguments(const Theme& theme, const std::vector<Fact>& arguments) {
  if (arguments.empty() || !ImGui::CollapsingHeader("As recorded")) return;
  if (!BeginFacts("arguments", theme)) return;
  for (const Fact& argument : arguments) FactRow(theme, argument.label, argument.value);
  ImGui::EndTable();
}

void DrawEvent(PaneContext& context) {
  State& state = context.state;
  const EventRef event = *state.selected;
  const SelectionFacts& facts = FactsOfSelected(context);  // kept when a link selects another one
  DrawName(context, state.lines().NameOf(event), facts.category);
  DrawTimes(context, facts);
  DrawLinks(context, facts);
  DrawHistogram(context, event);
  DrawStack(context.theme, facts.stack);
  DrawArguments(context.theme, facts.arguments);
}

}  // namespace

void DrawSelection(PaneContext& context) {
  State& state = context.state;
  if (!state.HasLines()) return;
  const Theme& theme = context.theme;
  ImGui::AlignTextToFramePadding();
  Text("Selection");
  ImGui::BeginChild("details");
  // The event was selected later: it is what the keys are about.
  if (state.selected) DrawEvent(context);
  if (state.range && state.selected) ImGui::Separator();
  if (state.range) DrawRange(context, *state.range);
  if (!state.range && !state.selected) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme.text_dim);
    WrappedText(
        "Click an event for what is known of it. Drag over the timeline for the totals of "
        "a range.");
    ImGui::PopStyleColor();
  }
  ImGui::EndChild();
}

}  // namespace trainprof
