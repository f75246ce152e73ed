// Menus, search, and what is open.
#include <fmt/format.h>

#include <algorithm>

#include "viewer/panes/cache.h"
#include "viewer/panes/widgets.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr float kSearchPoints = 240;
constexpr float kSearchLeastPoints = 110;

void OpenRecent(State& state) {
  std::optional<std::filesystem::path> wanted;
  for (size_t i = 0; i < state.settings.recent.size(); ++i) {
    const std::string path = state.settings.recent[i].string();
    // The end of a path says more than its begin.
    constexpr size_t kShown = 60;
    const size_t cut = path.size() <= kShown ? 0 : path.size() - kShown;
    const std::string label = (cut > 0 ? "..." : "") + path.substr(cut);
    ImGui::PushID(static_cast<int>(i));
    const float width = ImGui::CalcTextSize(label.c_str()).x;
    if (ImGui::Selectable("##recent", false, 0, {width, 0})) wanted = state.settings.recent[i];
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() - width);
    Text(label);
    ImGui::PopID();
  }
  if (wanted) Open(state, *wanted);  // which changes the list
}

void FileMenu(PaneContext& context) {
  State& state = context.state;
  if (!ImGui::BeginMenu("File")) return;
  if (ImGui::MenuItem("Open ...")) state.open_prompt = true;
  if (ImGui::BeginMenu("Recent", !state.settings.recent.empty())) {
    OpenRecent(state);
    ImGui::EndMenu();
  }
  if (ImGui::MenuItem("Demo trace", nullptr, false, !state.demo.empty())) Open(state, state.demo);
  ImGui::Separator();
  const bool open = state.document != nullptr;
  if (ImGui::MenuItem("Load again", nullptr, false, open)) {
    Open(state, std::filesystem::path(state.document->path()));
  }
  if (ImGui::MenuItem("Copy view link", "Ctrl+L", false, open)) {
    state.copy_link = true;
  }
  if (ImGui::MenuItem("Close", nullptr, false, open)) Close(state);
  ImGui::Separator();
  if (ImGui::MenuItem("Quit")) state.quit = true;
  ImGui::EndMenu();
}

void ScaleMenu(Settings& settings) {
  if (!ImGui::BeginMenu("Scale")) return;
  if (ImGui::MenuItem("As the display asks", nullptr, settings.scale == 0)) settings.scale = 0;
  for (const int percent : {75, 100, 125, 150, 200, 250, 300}) {
    const float scale = static_cast<float>(percent) / 100;
    const std::string label = fmt::format("{} %", percent);
    if (ImGui::MenuItem(label.c_str(), nullptr, settings.scale == scale)) settings.scale = scale;
  }
  ImGui::EndMenu();
}

void ViewMenu(State& state) {
  if (!ImGui::BeginMenu("View")) return;
  Settings& settings = state.settings;
  const bool dark = settings.theme == ThemeName::kDark;
  if (ImGui::MenuItem("Dark", nullptr, dark)) settings.theme = ThemeName::kDark;
  if (ImGui::MenuItem("Light", nullptr, !dark)) settings.theme = ThemeName::kLight;
  ScaleMenu(settings);
  ImGui::Separator();
  ImGui::MenuItem("Step ribbon", nullptr, &settings.show_ribbon);
  ImGui::MenuItem("Overview", nullptr, &settings.show_overview);
  ImGui::MenuItem("Findings, selection, tables", nullptr, &settings.show_bottom);
  ImGui::Separator();
  if (ImGui::MenuItem("Show all", nullptr, false, state.HasLines())) ShowAll(state);
  if (ImGui::MenuItem("Go to ...", "G", false, state.HasLines())) state.go_to_open = true;
  ImGui::EndMenu();
}

std::string HitsText(const SearchState& search) {
  size_t total = search.hits.total;
  if (search.busy() && search.hits.events.empty()) {
    if (search.found) total = search.found->load(std::memory_order_relaxed);
    return total == 0 ? "searching ..."
                      : fmt::format("searching ... {}", Grouped(static_cast<int64_t>(total)));
  }
  if (search.current)
    return fmt::format("{} of {}", *search.current + 1, Grouped(static_cast<int64_t>(total)));
  return fmt::format("{} {}", Grouped(static_cast<int64_t>(total)), total == 1 ? "hit" : "hits");
}

// A search is begun when its text is entered: it looks at every event.
void SearchBox(PaneContext& context, float width) {
  State& state = context.state;
  PaneInputs& cache = context.cache.inspector.inputs;
  if (cache.searched != state.search.text) cache.search = cache.searched = state.search.text;
  char buffer[512] = {};
  cache.search.copy(buffer, sizeof buffer - 1);
  if (state.focus_search) ImGui::SetKeyboardFocusHere();
  state.focus_search = false;
  ImGui::SetNextItemWidth(width);
  const bool entered =
      ImGui::InputTextWithHint("##search", "name: dur>1ms rank:0", buffer, sizeof buffer,
                               ImGuiInputTextFlags_EnterReturnsTrue);
  cache.search = buffer;
  if (!state.search.error.empty()) Tooltip(state.search.error);
  if (!entered) return;
  const auto any = [&] { return state.search.busy() || !state.search.hits.events.empty(); };
  if (cache.search != state.search.text || !any()) RunSearch(state, cache.search);
  cache.searched = state.search.text;
  if (any()) ShowHit(state, 1);
  ImGui::SetKeyboardFocusHere(-1);  // Enter goes from hit to hit
}

void SearchResult(PaneContext& context, float width) {
  State& state = context.state;
  const SearchState& search = state.search;
  if (!search.error.empty()) {
    ImGui::PushStyleColor(ImGuiCol_Text, context.theme.error);
    CutText(search.error, width);
    ImGui::PopStyleColor();
    return;
  }
  if (search.text.empty()) return;
  CutText(HitsText(search), width);
  const bool any = !search.hits.events.empty();
  if (WordButton("previous hit", "<", any)) ShowHit(state, -1);
  if (WordButton("next hit", ">", any)) ShowHit(state, 1);
}

// What is open: file, events, ranks.
std::string OpenText(const State& state) {
  const std::filesystem::path& path = state.document->path();
  const std::filesystem::path folder = path.parent_path().filename();
  const std::string name = (folder / path.filename()).string();
  const LoadProgress progress = state.document->progress();
  std::string text =
      fmt::format("{}   {} {}", FirstOf(name, 80), Grouped(static_cast<int64_t>(progress.events)),
                  progress.events == 1 ? "event" : "events");
  if (state.document->ranks() > 1) text += fmt::format("   {} ranks", state.document->ranks());
  if (progress.still_recorded) text += "   still recorded";
  return text;
}

void OpenPrompt(PaneContext& context) {
  State& state = context.state;
  constexpr const char* kId = "Open a recording or a trace";
  if (state.open_prompt) ImGui::OpenPopup(kId);
  const Theme& theme = context.theme;
  const ImVec2 display = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({display.x / 2, display.y * 0.3F}, ImGuiCond_Always, {0.5F, 0});
  ImGui::SetNextWindowSize({std::min(theme.Px(560), display.x * 0.9F), 0});
  constexpr ImGuiWindowFlags kFlags =
      ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings;
  const BorderScope border(theme);
  if (!ImGui::BeginPopupModal(kId, &state.open_prompt, kFlags)) return;
  std::string& path = context.cache.inspector.inputs.path_prompt;
  char buffer[4096] = {};
  path.copy(buffer, sizeof buffer - 1);
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  const bool entered =
      ImGui::InputTextWithHint("##path", "/path/to/run or trace.json.gz", buffer, sizeof buffer,
                               ImGuiInputTextFlags_EnterReturnsTrue);
  path = buffer;
  const bool pressed = ImGui::Button("Open");
  ImGui::SameLine();
  const bool cancelled = ImGui::Button("Cancel");
  if ((entered || pressed) && !path.empty()) {
    Open(state, path);
    state.open_prompt = false;
  }
  if (cancelled || !state.open_prompt) {
    state.open_prompt = false;
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndPopup();
}

}  // namespace

void DrawMenuBar(PaneContext& context) {
  State& state = context.state;
  const Theme& theme = context.theme;
  if (ImGui::BeginMenuBar()) {
    FileMenu(context);
    ViewMenu(state);
    if (ImGui::MenuItem("Help")) state.help_open = true;
    const std::string open = state.document ? OpenText(state) : std::string();
    const float open_width = ImGui::CalcTextSize(open.c_str()).x + theme.Px(12);
    if (state.HasLines()) {
      const float left = ImGui::GetContentRegionAvail().x;
      const float result = theme.Px(150);
      const float search = std::clamp(left - result - open_width, theme.Px(kSearchLeastPoints),
                                      theme.Px(kSearchPoints));
      SearchBox(context, search);
      SearchResult(context, result - theme.Px(60));
    }
    if (!open.empty()) {
      const float left = ImGui::GetContentRegionAvail().x;
      if (left > open_width) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + left - open_width);
      ImGui::PushStyleColor(ImGuiCol_Text, theme.text_dim);
      CutText(open, std::max(1.F, std::min(open_width, left)));
      Tooltip(state.document->path().string());
      ImGui::PopStyleColor();
    }
    ImGui::EndMenuBar();
  }
  OpenPrompt(context);
  if (state.copy_link) {
    ImGui::SetClipboardText(ViewLink(state).c_str());
    state.message = "Copied: the command that opens this view";
    state.copy_link = false;
  }
}

}  // namespace trainprof
