// Stays while a trace is not whole: what was lost, whether the run was killed, and whether its
// ranks' clocks agree.
#include <fmt/format.h>

#include <cctype>

#include "viewer/panes/inspector.h"

namespace trainprof {
namespace {

// Of files, which no rank lost: the document tells of them.
constexpr std::string_view kUnreadable = "unreadable_file";
constexpr std::string_view kOpenAtEnd = "open_range_at_end";

struct Losses {
  int64_t records = 0;
  size_t ranks = 0;   // that lost some
  std::string worst;  // the kind with most, and its first instance
  int64_t of_worst = 0;
  uint32_t worst_rank = 0;
  int64_t open_ranges = 0;  // where the recording ends
};

Losses LossesOf(const Document& document) {
  Losses losses;
  for (uint32_t rank = 0; rank < document.ranks(); ++rank) {
    const RankAnalysis* const analysis = document.Analysis(rank);
    const auto& items =
        analysis != nullptr ? analysis->quality : document.TraceOf(rank).quality.items();
    bool any = false;
    for (const QualityItem& item : items) {
      if (item.kind == kOpenAtEnd) losses.open_ranges += item.count;
      if (item.severity != QualitySeverity::kDataLoss || item.kind == kUnreadable) continue;
      any = true;
      losses.records += item.count;
      if (item.count <= losses.of_worst) continue;
      losses.of_worst = item.count;
      losses.worst_rank = rank;
      losses.worst = fmt::format("{} x {}{}{}", Grouped(item.count), item.kind,
                                 item.detail.empty() ? "" : ": ", item.detail);
    }
    if (any) ++losses.ranks;
  }
  return losses;
}

void AppendPart(std::string& text, const char* between, const std::string& part) {
  if (!text.empty()) text += between;
  text += part;
}

// What is missing, then of each kind an example.
std::string Message(const State& state, const Losses& losses) {
  std::string missing;
  std::string examples;
  if (losses.records > 0) {
    missing = fmt::format("{} {} lost", Grouped(losses.records),
                          losses.records == 1 ? "record" : "records");
    if (state.document->ranks() > 1) {
      missing += fmt::format(" in {} of {} ranks", losses.ranks, state.document->ranks());
    }
    examples = losses.worst;
  }
  if (const auto& unreadable = state.document->unreadable(); !unreadable.empty()) {
    const char* const files = unreadable.size() == 1 ? "file" : "files";
    AppendPart(missing, ", ", fmt::format("{} {} could not be read", unreadable.size(), files));
    AppendPart(examples, "; ", unreadable.front());
  }
  std::string text;
  if (!missing.empty()) text = fmt::format("Not everything is here: {} ({})", missing, examples);
  if (std::string killed = state.document->progress().killed; !killed.empty()) {
    killed.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(killed.front())));
    if (losses.open_ranges > 0) {
      killed +=
          fmt::format("; {} {} still open where the recording ends", Grouped(losses.open_ranges),
                      losses.open_ranges == 1 ? "range was" : "ranges were");
    }
    AppendPart(text, ".   ", killed);
  }
  if (!state.lines().aligned()) {
    AppendPart(
        text, ".   ",
        "The ranks began more than an hour apart: each is shown from 0, and nothing is said of "
        "skew");
  }
  return text;
}

}  // namespace

void DrawQualityBar(PaneContext& context) {
  State& state = context.state;
  if (!state.HasLines()) return;
  const Losses losses = LossesOf(*state.document);
  const std::string message = Message(state, losses);
  if (message.empty()) return;
  const Theme& theme = context.theme;
  const float height = ImGui::GetFrameHeight();
  const float padding = theme.Px(4);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, {at.x + width, at.y + height}, theme.stripe);
  draw.AddRectFilled(at, {at.x + padding, at.y + height}, theme.warning);
  ImGui::SetCursorScreenPos({at.x + 2 * padding, at.y});
  ImGui::AlignTextToFramePadding();
  TextIn(theme.warning, "Warning");
  ImGui::SameLine();
  const char* const details = "Details";
  const float button = ImGui::CalcTextSize(details).x + 4 * ImGui::GetStyle().FramePadding.x;
  CutText(message, at.x + width - button - padding - ImGui::GetCursorScreenPos().x);
  ImGui::SameLine();
  ImGui::SetCursorScreenPos({at.x + width - button, at.y});
  if (ImGui::Button(details)) {
    state.tab = Tab::kQuality;
    state.settings.show_bottom = true;
    // The first rank's table tells of files.
    if (!state.document->unreadable().empty()) ShowRank(state, 0);
    if (losses.records > 0) ShowRank(state, losses.worst_rank);
  }
}

}  // namespace trainprof
