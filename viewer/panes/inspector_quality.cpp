// The tab of trace quality: what was lost, repaired or odd, what was not checked, and what is known
// of the run and the machine.
#include <fmt/format.h>

#include <algorithm>

#include "viewer/panes/inspector.h"

namespace trainprof {
namespace {

// A word and not only a colour.
void SeverityText(const Theme& theme, QualitySeverity severity) {
  if (severity == QualitySeverity::kDataLoss) return TextIn(theme.error, "lost");
  if (severity == QualitySeverity::kWarning) return TextIn(theme.warning, "repaired");
  TextIn(theme.text_dim, "note");
}

bool BeginList(const char* id, const char* heading, const Theme& theme, float first_points) {
  ImGui::Spacing();
  TextIn(theme.text_dim, heading);
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable(id, 2, kFlags)) return false;
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthFixed, theme.Px(first_points));
  ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
  return true;
}

void ListRow(std::string_view label, std::string_view value) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  CutText(label);
  ImGui::TableNextColumn();
  WrappedText(value);
}

void DrawItems(const Theme& theme, std::vector<QualityItem> items) {
  if (items.empty()) {
    return WrappedText("Nothing was lost, repaired or odd in this rank's trace.");
  }
  std::stable_sort(items.begin(), items.end(), [](const QualityItem& a, const QualityItem& b) {
    return a.severity > b.severity;
  });
  if (!BeginList("items", "What was lost, repaired or odd", theme, 64)) return;
  for (const QualityItem& item : items) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    SeverityText(theme, item.severity);
    ImGui::TableNextColumn();
    WrappedText(fmt::format("{} x {}{}{}", Grouped(item.count), item.kind,
                            item.detail.empty() ? "" : ": ", item.detail));
  }
  ImGui::EndTable();
}

void DrawChecks(const Theme& theme, const RankAnalysis& analysis) {
  if (!BeginList("checks", "What was checked", theme, 120)) return;
  for (const SkippedRule& rule : analysis.skipped)
    ListRow(rule.rule, "not checked: " + rule.reason);
  for (const std::string& rule : analysis.passed) ListRow(rule, "checked, not found");
  for (const Finding& finding : analysis.findings) ListRow(finding.rule, "found: " + finding.title);
  ImGui::EndTable();
}

}  // namespace

void DrawQuality(PaneContext& context) {
  State& state = context.state;
  const Theme& theme = context.theme;
  const uint32_t rank = ShownRank(state);
  const Trace& trace = state.document->TraceOf(rank);
  const RankAnalysis* const analysis = state.document->Analysis(rank);
  RankChooser(context, "quality");
  ImGui::BeginChild("quality");
  ScrollByKeys(context, KeyPane::kTables);
  DrawItems(theme, analysis != nullptr ? analysis->quality : trace.quality.items());
  if (analysis != nullptr) {
    DrawChecks(theme, *analysis);
    if (!analysis->host_facts.empty() &&
        BeginList("host", "Host and GPUs, as sampled", theme, 120)) {
      for (const HostFact& fact : analysis->host_facts) ListRow(fact.id, fact.text);
      ImGui::EndTable();
    }
  }
  if (!trace.environment.empty() && BeginList("environment", "Run and machine", theme, 160)) {
    for (const auto& [name, value] : trace.environment) ListRow(name, value);
    ImGui::EndTable();
  }
  if (BeginList("size", "This trace", theme, 160)) {
    ListRow("file", trace.path);
    const auto count = [](size_t n) { return Grouped(static_cast<int64_t>(n)); };
    ListRow("events", fmt::format("{} ranges, {} calls, {} device operations, {} counter samples",
                                  count(trace.ranges.size()), count(trace.api.size()),
                                  count(trace.device_ops.size()), count(trace.counters.size())));
    ImGui::EndTable();
  }
  ImGui::EndChild();
}

}  // namespace trainprof
