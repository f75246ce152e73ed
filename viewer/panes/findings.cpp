// What to change, largest gain first; the open one with its places, advice and evidence.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/job/coverage.h"
#include "analysis/job/gain_text.h"
#include "viewer/panes/inspector.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr size_t kSitesShown = 6;

// A word as well as a colour.
void SeverityText(const Theme& theme, Severity severity) {
  const ImU32 color = severity == Severity::kError     ? theme.error
                      : severity == Severity::kWarning ? theme.warning
                                                       : theme.note;
  TextIn(color, Name(severity));
}

std::string WhereText(const Finding& finding) {
  if (finding.where.empty()) return {};
  std::string text = SiteText(ShortSite(finding.where.front()));
  if (finding.where.size() > 1) text += fmt::format(" and {} more", finding.where.size() - 1);
  return text;
}

void Heading(const Theme& theme, const char* label) {
  ImGui::Spacing();
  TextIn(theme.text_dim, label);
}

void DrawWhere(const Theme& theme, const Finding& finding) {
  if (finding.where.empty()) return;
  Heading(theme, "Where");
  for (size_t i = 0; i < std::min(finding.where.size(), kSitesShown); ++i) {
    const Site& site = finding.where[i];
    WrappedText(fmt::format("{}  x{}", SiteText(site), Grouped(site.count)));
  }
  if (finding.where.size() > kSitesShown) {
    TextIn(theme.text_dim, fmt::format("and {} more places", finding.where.size() - kSitesShown));
  }
}

void DrawFix(PaneContext& context, const Finding& finding) {
  if (finding.fix.empty()) return;
  const Theme& theme = context.theme;
  Heading(theme, "Fix");
  ImGui::SameLine();
  CopyButton(context, "fix", finding.fix, "copy fix");
  const FontScope font(theme.mono);
  const float padding = theme.Px(6);
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 text = ImGui::CalcTextSize(finding.fix.c_str(), nullptr, false, width - 2 * padding);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + width, at.y + text.y + 2 * padding},
                                            theme.stripe, theme.Px(3));
  ImGui::SetCursorScreenPos({at.x + padding, at.y + padding});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width - 2 * padding);
  Text(finding.fix);
  ImGui::PopTextWrapPos();
  ImGui::SetCursorScreenPos({at.x, at.y + text.y + 2 * padding});
  ImGui::Dummy({width, 0});
}

void DrawEvidence(PaneContext& context, const Finding& finding) {
  if (finding.evidence.empty()) return;
  State& state = context.state;
  ImGui::Spacing();
  const size_t count = finding.evidence.size();
  const size_t shown = std::min(state.evidence, count - 1);
  if (WordButton("previous place", "<")) ShowEvidence(state, -1);
  ImGui::SameLine();
  if (WordButton("next place", ">")) ShowEvidence(state, 1);
  ImGui::SameLine();
  std::string text = fmt::format("{} of {}", shown + 1, count);
  if (finding.count > static_cast<int64_t>(count)) {
    text += fmt::format(" (the worst of {})", Grouped(finding.count));
  }
  Text(text);
  WrappedText(finding.evidence[shown].what);
}

void DrawDetails(PaneContext& context, const RankAnalysis& analysis, const Finding& finding) {
  const Theme& theme = context.theme;
  ImGui::Indent(theme.Px(10));
  DrawEvidence(context, finding);
  WrappedText(fmt::format(
      "Costs {:.1f} {} now, in {} {}. Rule {} {}.", analysis.DevicePerStepMs(finding.cost),
      analysis.steps.count() > 0 ? "ms/step" : "ms", Grouped(finding.count),
      finding.count == 1 ? "instance" : "instances", finding.code, finding.rule));
  if (const std::string spread = SpreadText(finding.gain); !spread.empty()) {
    WrappedText("Of the gain, " + spread + ".");
  }
  DrawWhere(theme, finding);
  if (!finding.advice.empty()) {
    Heading(theme, "Do");
    WrappedText(finding.advice);
  }
  DrawFix(context, finding);
  if (!finding.verify.empty()) {
    Heading(theme, "How to see that it helped");
    WrappedText(finding.verify);
  }
  if (!finding.confidence_reasons.empty()) Heading(theme, "Why the confidence is not higher");
  for (const std::string& reason : finding.confidence_reasons) {
    ImGui::Bullet();
    WrappedText(reason);
  }
  ImGui::Unindent(theme.Px(10));
  ImGui::Separator();
}

// The part that is always seen; a click opens the finding, or closes it.
void DrawHead(PaneContext& context, const RankAnalysis& analysis, const FindingRef& ref) {
  State& state = context.state;
  const Theme& theme = context.theme;
  const Finding& finding = analysis.findings[ref.index];
  const bool open = state.finding == ref;
  const std::string where = WhereText(finding);
  const float line = ImGui::GetTextLineHeightWithSpacing();
  const float width = ImGui::GetContentRegionAvail().x;
  const std::string title = fmt::format("{}. {}", ref.index + 1, finding.title);
  const float indent = theme.Px(10);
  const float title_height =
      ImGui::CalcTextSize(title.c_str(), nullptr, false, width - 2 * indent).y +
      ImGui::GetStyle().ItemSpacing.y;
  const float height = title_height + line * (where.empty() ? 1.F : 2.F);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const KeyFocus& keys = state.keys;
  const bool on_keys = keys.pane == KeyPane::kFindings && keys.shown && keys.finding == ref.index;
  const bool clicked = ImGui::Selectable("##open", open, 0, {width, height});
  if (on_keys) {
    ImGui::GetWindowDrawList()->AddRect(at, {at.x + width, at.y + height}, theme.text);
    if (keys.rows != 0) ImGui::SetScrollHereY(0.3F);
  }
  if (clicked || (on_keys && keys.enter)) {
    if (open) {
      state.finding.reset();
    } else {
      OpenFinding(state, ref);
    }
  }
  std::optional<FindingRef>& scrolled_to = context.cache.inspector.inputs.scrolled_to;
  if (open && scrolled_to != ref) {
    ImGui::SetScrollHereY(0);
    scrolled_to = ref;
  }
  const ImVec2 behind = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + indent, at.y});
  ImGui::BeginGroup();
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width - 2 * indent);
  Text(title);
  ImGui::PopTextWrapPos();
  SeverityText(theme, finding.severity);
  ImGui::SameLine();
  CutText(fmt::format("gain {}, confidence {:.0f} %", GainText(analysis, finding.gain),
                      100 * finding.confidence),
          at.x + width - indent - ImGui::GetCursorScreenPos().x);
  if (!where.empty()) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme.text_dim);
    CutText(where, width - 2 * indent);
    ImGui::PopStyleColor();
  }
  ImGui::EndGroup();
  ImGui::SetCursorScreenPos(behind);
}

// A page is of the text, which has no rows.
void GoToFinding(PaneContext& context, size_t count) {
  KeyFocus& keys = context.state.keys;
  if (keys.pane != KeyPane::kFindings) return;
  if (count == 0 || keys.pages != 0) return ScrollByKeys(context, KeyPane::kFindings);
  const int64_t wanted = int64_t{keys.finding} + keys.rows;
  keys.finding =
      static_cast<uint32_t>(std::clamp<int64_t>(wanted, 0, static_cast<int64_t>(count) - 1));
}

// The rules' limits as a user knows them; what was not checked is not called healthy.
std::string NothingText(const RankAnalysis& analysis) {
  std::string text = "Nothing above 2 % of step time (5 % for input wait)";
  if (!analysis.skipped.empty()) text += " in what could be checked";
  return text + ".";
}

void DrawVerdicts(const Theme& theme, const RankAnalysis& analysis) {
  if (!analysis.passed.empty()) {
    Heading(theme, "Checked, not found");
    for (const std::string& rule : analysis.passed) WrappedText(rule);
  }
  if (!analysis.skipped.empty()) Heading(theme, "Not checked");
  for (const SkippedRule& rule : analysis.skipped) {
    WrappedText(fmt::format("{}: {}", rule.rule, rule.reason));
  }
  const std::vector<UncoveredClass> uncovered = UncoveredClasses(analysis);
  const char* const unit = analysis.steps.count() > 0 ? "ms/step" : "ms in all";
  if (!uncovered.empty()) Heading(theme, "Lost time that no rule explains");
  for (const UncoveredClass& lost : uncovered) {
    WrappedText(fmt::format("{}: {:.1f} {}", lost.title, lost.ms_per_step, unit));
  }
}

}  // namespace

void DrawFindings(PaneContext& context) {
  State& state = context.state;
  if (!state.HasLines()) return;
  const Theme& theme = context.theme;
  const uint32_t rank = ShownRank(state);
  const RankAnalysis* const analysis = state.document->Analysis(rank);
  if (analysis == nullptr) return Text("Findings: analysing ...");
  const size_t count = analysis->findings.size();
  ImGui::AlignTextToFramePadding();
  Text(count == 0 ? "No findings" : fmt::format("Findings ({})", count));
  if (state.document->ranks() > 1) {
    ImGui::SameLine();
    RankChooser(context, "findings");
  }
  ImGui::BeginChild("list");
  ImGui::Dummy({0, 0});
  GoToFinding(context, count);
  if (!state.finding) context.cache.inspector.inputs.scrolled_to.reset();
  if (count == 0) WrappedText(NothingText(*analysis));
  for (uint32_t i = 0; i < count; ++i) {
    const FindingRef ref{rank, i};
    ImGui::PushID(static_cast<int>(i));
    DrawHead(context, *analysis, ref);
    if (state.finding == ref) DrawDetails(context, *analysis, analysis->findings[i]);
    ImGui::PopID();
  }
  DrawVerdicts(theme, *analysis);
  ImGui::EndChild();
}

}  // namespace trainprof
