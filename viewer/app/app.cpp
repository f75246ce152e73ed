#include "viewer/app/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "viewer/app/keyboard.h"
#include "viewer/app/layout.h"
#include "viewer/app/splitter.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

using Draw = void (*)(PaneContext&);

constexpr float kLeastScale = 0.5f;
constexpr float kMostScale = 4;
// Between a pane's edge and what it writes, in points.
constexpr float kPadding = 8;

constexpr ImGuiWindowFlags kWholeDisplay =
    ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
    ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNav | ImGuiWindowFlags_MenuBar |
    ImGuiWindowFlags_NoScrollWithMouse;

// A child window of `size` at `at` (of the screen), with the panes' colour behind it.
void Pane(PaneContext& context, const char* id, ImVec2 at, ImVec2 size, float padding, Draw draw,
          std::optional<KeyPane> keys = std::nullopt) {
  if (size.x < 1 || size.y < 1) return;
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + size.x, at.y + size.y},
                                            context.theme.panel);
  const ImVec2 inner(std::max(1.f, size.x - 2 * padding), std::max(1.f, size.y - padding));
  ImGui::SetCursorScreenPos({at.x + padding, at.y + padding / 2});
  ImGui::BeginChild(id, inner, false, ImGuiWindowFlags_NoNav);
  draw(context);
  ImGui::EndChild();
  if (!keys || !context.state.keys.shown || context.state.keys.pane != *keys) return;
  const float width = std::max(1.f, std::floor(context.theme.scale));
  ImGui::GetWindowDrawList()->AddRect({at.x, at.y}, {at.x + size.x - width, at.y + size.y - width},
                                      context.theme.text_dim, 0, 0, width);
}

// Findings, selection, inspector, side by side.
void DrawBottom(PaneContext& context, ImVec2 at, const Layout& layout) {
  const Theme& theme = context.theme;
  Settings& settings = context.state.settings;
  const float padding = theme.Px(kPadding);
  const float thick = theme.Px(kSplitterPoints);
  const float height = layout.bottom;
  Pane(context, "findings", at, {layout.findings, height}, padding, DrawFindings,
       KeyPane::kFindings);
  at.x += layout.findings;
  ImGui::SetCursorScreenPos(at);
  if (const float by = Splitter("beside findings", theme, Between::kLeftAndRight, height)) {
    settings.findings_width = layout.findings / theme.scale + by;
  }
  at.x += thick;
  Pane(context, "selection", at, {layout.selection, height}, padding, DrawSelection);
  at.x += layout.selection;
  ImGui::SetCursorScreenPos(at);
  if (const float by = Splitter("beside selection", theme, Between::kLeftAndRight, height)) {
    settings.selection_width = layout.selection / theme.scale + by;
  }
  at.x += thick;
  Pane(context, "inspector", at, {layout.inspector, height}, padding, DrawInspector,
       KeyPane::kTables);
}

float StatusHeight(const Theme& theme) {
  return std::round(ImGui::GetTextLineHeight() + theme.Px(6));
}

// The last line: what the last action said, and where the keys are told.
void DrawStatus(const State& state, const Theme& theme) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 corner = ImGui::GetWindowPos();
  const ImVec2 size(ImGui::GetWindowWidth(), StatusHeight(theme));
  const ImVec2 at(corner.x, corner.y + ImGui::GetWindowHeight() - size.y);
  const char* const keys_text =
      state.HasLines() ? "W S zoom   A D move   F focus   N next place   ? all keys" : "? all keys";
  const float y = at.y + (size.y - ImGui::GetTextLineHeight()) / 2;
  const float padding = theme.Px(kPadding);
  const float keys = ImGui::CalcTextSize(keys_text).x;
  const float end = at.x + size.x - padding;
  const bool both = state.message.empty() || size.x > 2 * keys;
  if (both) draw.AddText({end - keys, y}, theme.text_dim, keys_text);
  const float message_end = both ? end - keys - padding : end;
  draw.PushClipRect(at, {message_end, at.y + size.y}, true);
  draw.AddText({at.x + padding, y}, theme.text, state.message.c_str());
  draw.PopClipRect();
}

}  // namespace

App::App(Settings settings, Goal goal) : goal_(std::move(goal)) {
  state_.settings = std::move(settings);
}

void App::Drop(std::span<const std::filesystem::path> paths) {
  if (paths.empty()) return;
  Open(state_, paths.front());
  if (paths.size() == 1) return;
  state_.message = fmt::format(
      "Opened the first of {}: put the traces of a job's ranks into one folder", paths.size());
}

bool App::Prepare(float display_scale) {
  const Settings& settings = state_.settings;
  const float wanted = settings.scale > 0 ? settings.scale : display_scale;
  const float scale = std::clamp(wanted, kLeastScale, kMostScale);
  const bool new_fonts = scale != font_scale_;
  if (new_fonts) LoadFonts(scale);
  if (new_fonts || theme_.name != settings.theme) theme_ = ApplyTheme(settings.theme, scale);
  font_scale_ = scale;
  return new_fonts;
}

bool App::Idle() const {
  const bool loads = state_.document && !state_.document->progress().done;
  const bool makes = state_.search.busy() || (state_.HasLines() && state_.document->store().busy());
  // Documents that were closed are dropped by a frame, once their threads have ended.
  return !loads && !makes && !key_held_ && !cache_.Busy() && state_.closing.empty();
}

// What says which time is shown comes last, so that the view ends there.
void App::PursueGoal() {
  if (!goal_ || !state_.document || !state_.document->progress().done) return;
  const Goal goal = *std::exchange(goal_, std::nullopt);
  if (goal.IsEmpty()) return;
  const auto keep_error = [&] {
    if (goal_error_.empty()) goal_error_ = state_.message;
    state_.message.clear();
  };
  state_.message.clear();
  if (goal.rank) ShowRankNumber(state_, *goal.rank);
  keep_error();
  if (goal.finding) OpenFindingNumber(state_, *goal.finding);
  if (state_.finding) state_.message.clear();  // that it has no single place is no error
  keep_error();
  for (const std::string& what : goal.select) {
    SelectByText(state_, what);
    keep_error();
  }
  const bool has_times = goal.from || goal.to;
  if (!goal.select.empty() && !goal.finding) ZoomToSelection(state_);
  if (goal.step) ShowStep(state_, *goal.step);
  if (has_times) ShowTimes(state_, goal.from, goal.to);
  if (has_times) TakeEvidenceInView(state_);
  keep_error();
  state_.message = goal_error_;
}

void App::Frame() {
  if (UpdateDocument(state_)) cache_.Clear();
  PursueGoal();
  const ImVec2 moved = ImGui::GetIO().MouseDelta;
  if (moved.x != 0 || moved.y != 0) state_.keys.shown = false;
  key_held_ = HandleKeys(state_);
  PaneContext context{state_, theme_, cache_};
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
  ImGui::Begin("trainprof", nullptr, kWholeDisplay);
  DrawMenuBar(context);
  if (!state_.document) {
    DrawWelcome(context);
  } else if (!state_.HasLines()) {
    DrawLoading(context);
  } else {
    DrawPanes(context);
  }
  DrawStatus(state_, theme_);
  DrawHelp(context);
  DrawGoTo(context);
  ImGui::End();
  state_.keys.rows = state_.keys.pages = 0;
  state_.keys.enter = false;
}

void App::DrawPanes(PaneContext& context) {
  DrawVerdict(context);
  DrawQualityBar(context);
  DrawLoading(context);
  Settings& settings = state_.settings;
  const ImVec2 corner = ImGui::GetWindowPos();
  const ImVec2 size = ImGui::GetWindowSize();
  // Panes reach to the edge of the window, beyond its padding.
  ImGui::PushClipRect(corner, {corner.x + size.x, corner.y + size.y}, false);
  ImVec2 at(corner.x, std::round(ImGui::GetCursorScreenPos().y));
  const float height = corner.y + size.y - StatusHeight(theme_) - at.y;
  const Layout layout = LayoutOf(settings, size.x, height, theme_.scale);
  Pane(context, "ribbon", at, {size.x, layout.ribbon}, 0, DrawStepRibbon);
  at.y += layout.ribbon;
  Pane(context, "overview", at, {size.x, layout.overview}, 0, DrawOverview);
  at.y += layout.overview;
  Pane(context, "timeline", at, {size.x, layout.timeline}, 0, DrawTimeline, KeyPane::kTimeline);
  at.y += layout.timeline;
  if (settings.show_bottom) {
    ImGui::SetCursorScreenPos(at);
    if (const float by = Splitter("above bottom", theme_, Between::kAboveAndBelow, size.x)) {
      settings.bottom_height = layout.bottom / theme_.scale - by;
    }
    DrawBottom(context, {at.x, at.y + theme_.Px(kSplitterPoints)}, layout);
  }
  ImGui::PopClipRect();
}

}  // namespace trainprof
