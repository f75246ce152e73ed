#include "viewer/state/shortcuts.h"

#include <cmath>

#include "viewer/state/actions.h"

namespace trainprof {
namespace {

// A second of W makes the view this many times shorter; a second of D goes on by that many views.
constexpr double kZoomPerSecond = 6;
constexpr double kViewsPerSecond = 1;

constexpr Trigger On(char letter) { return {.key = static_cast<Key>(letter - 'A' + 1)}; }
constexpr Trigger On(Key key) { return {.key = key}; }
constexpr Trigger Typed(char character) { return {.character = character}; }
constexpr Trigger Ctrl(char letter) {
  return {.key = static_cast<Key>(letter - 'A' + 1), .ctrl = true};
}
constexpr Trigger Ctrl(Key key) { return {.key = key, .ctrl = true}; }
constexpr Trigger Shift(Trigger trigger) {
  trigger.shift = true;
  return trigger;
}

int Forwards(Use use) { return use.second ? -1 : 1; }

// What zooms stays under the mouse, else in the middle.
TraceTime Center(const State& state) {
  return state.hovered_time.value_or(state.view.begin + Duration{state.view.Length().ns / 2});
}

void ZoomFor(State& state, Use use) {
  Zoom(state, Center(state), std::pow(kZoomPerSecond, -Forwards(use) * use.seconds));
}

void PanFor(State& state, Use use) {
  PanBy(state, -Forwards(use) * kViewsPerSecond * state.view_width_px * use.seconds);
}

void PinHere(State& state, Use) {
  if (!state.HasLines()) return;
  if (state.keys.shown && state.keys.line) return TogglePinned(state, *state.keys.line);
  if (state.hovered_line) return TogglePinned(state, *state.hovered_line);
  if (state.selected) return TogglePinned(state, state.lines().LineOf(*state.selected));
  state.message = "P pins the track under the mouse, or that of the selected event";
}

void CollapseHere(State& state, Use) {
  if (!state.HasLines()) return;
  if (state.keys.shown && state.keys.line) return ToggleCollapsed(state, *state.keys.line);
  if (state.hovered_line) return ToggleCollapsed(state, *state.hovered_line);
  state.message = "C folds the track under the mouse";
}

void PanUnlessInTables(State& state, Use use) {
  if (state.keys.pane != KeyPane::kTables) PanFor(state, use);
}

void TabBeside(State& state, Use use) {
  if (state.keys.pane == KeyPane::kTables) GoToTab(state, -Forwards(use));
}

void GoDown(State& state, Use use) {
  state.keys.shown = state.HasLines();
  state.keys.rows -= Forwards(use);
}

void GoDownAPage(State& state, Use use) {
  state.keys.shown = state.HasLines();
  state.keys.pages -= Forwards(use);
}

void Reload(State& state, Use) {
  if (state.document) return Open(state, std::filesystem::path(state.document->path()));
  state.message = "No file is open";
}

void SwitchTheme(State& state, Use) {
  ThemeName& theme = state.settings.theme;
  theme = theme == ThemeName::kDark ? ThemeName::kLight : ThemeName::kDark;
}

constexpr Shortcut kMoving[] = {
    {"W  S", "zoom in, out at the mouse", {On('W'), On('S')}, Pace::kHeld, ZoomFor},
    {"A  D", "earlier, later", {On('A'), On('D')}, Pace::kHeld, PanFor},
    {"Left  Right",
     "the same; on the tables the tab before, after",
     {On(Key::kLeft), On(Key::kRight)},
     Pace::kHeld,
     PanUnlessInTables},
    {"F",
     "zoom to the selected event or range",
     {On('F')},
     Pace::kOnce,
     [](State& state, Use) { ZoomToSelection(state); }},
    {"Home",
     "show everything",
     {On(Key::kHome)},
     Pace::kOnce,
     [](State& state, Use) { ShowAll(state); }},
    {"G",
     "go to a step or a time",
     {On('G')},
     Pace::kOnce,
     [](State& state, Use) { state.go_to_open = state.HasLines(); }},
    {"Backspace  Shift+Backspace",
     "the view before, after",
     {On(Key::kBackspace), Shift(On(Key::kBackspace))},
     Pace::kRepeated,
     [](State& state, Use use) { use.second ? Forward(state) : Back(state); }},
};

constexpr Shortcut kPanes[] = {
    {"Tab  Shift+Tab",
     "to the findings, the tables, the timeline",
     {On(Key::kTab), Shift(On(Key::kTab))},
     Pace::kOnce,
     [](State& state, Use use) { GoToPane(state, Forwards(use)); }},
    {"Up  Down",
     "the track, finding or row above, below",
     {On(Key::kUp), On(Key::kDown)},
     Pace::kRepeated,
     GoDown},
    {"Page Up  Page Down",
     "a page up, down",
     {On(Key::kPageUp), On(Key::kPageDown)},
     Pace::kRepeated,
     GoDownAPage},
    {"Enter",
     "select an event of the track; open the finding, the row",
     {On(Key::kEnter)},
     Pace::kOnce,
     [](State& state, Use) { state.keys.enter = true; }},
    {"1 .. 9",
     "open that finding",
     {{.character = '1', .last = '9'}},
     Pace::kOnce,
     [](State& state, Use use) { OpenFindingNumber(state, use.character - '0'); }},
    {"Ctrl+Page Up  Page Down",
     "the tab of the tables before, after",
     {Ctrl(Key::kPageUp), Ctrl(Key::kPageDown)},
     Pace::kRepeated,
     [](State& state, Use use) { GoToTab(state, -Forwards(use)); }},
};

// Of keys that the sheet names above.
constexpr Shortcut kUnnamed[] = {
    {"", "", {On(Key::kLeft), On(Key::kRight)}, Pace::kRepeated, TabBeside},
};

constexpr Shortcut kFollowing[] = {
    {"N  Shift+N",
     "next, previous place of the finding; the first finding",
     {On('N'), Shift(On('N'))},
     Pace::kRepeated,
     [](State& state, Use use) { ShowEvidence(state, Forwards(use)); }},
    {",  .",
     "previous, next event of the track",
     {Typed(','), Typed('.')},
     Pace::kRepeated,
     [](State& state, Use use) { SelectNeighbour(state, -Forwards(use)); }},
    {"[  ]",
     "from a call to what it launched, and back",
     {Typed('['), Typed(']')},
     Pace::kOnce,
     [](State& state, Use) { FollowLaunch(state); }},
    {"Ctrl+F",
     "search",
     {Ctrl('F')},
     Pace::kOnce,
     [](State& state, Use) { state.focus_search = state.HasLines(); }},
    {"F3  Shift+F3",
     "next, previous hit",
     {On(Key::kF3), Shift(On(Key::kF3))},
     Pace::kRepeated,
     [](State& state, Use use) { ShowHit(state, Forwards(use)); }},
};

constexpr Shortcut kKeeping[] = {
    {"P", "pin the track", {On('P')}, Pace::kOnce, PinHere},
    {"C", "fold the track", {On('C')}, Pace::kOnce, CollapseHere},
    {"M",
     "set or remove a bookmark",
     {On('M')},
     Pace::kOnce,
     [](State& state, Use) { ToggleBookmark(state, Center(state)); }},
    {"B  Shift+B",
     "next, previous bookmark",
     {On('B'), Shift(On('B'))},
     Pace::kRepeated,
     [](State& state, Use use) { ShowBookmark(state, Forwards(use)); }},
    {"Esc",
     "close; then clear what is selected",
     {On(Key::kEscape)},
     Pace::kOnce,
     [](State& state, Use) { ClearSelection(state); }},
};

constexpr Shortcut kWindow[] = {
    {"Ctrl+O",
     "open",
     {Ctrl('O')},
     Pace::kOnce,
     [](State& state, Use) { state.open_prompt = true; }},
    {"Ctrl+R", "read the file again", {Ctrl('R')}, Pace::kOnce, Reload},
    {"Ctrl+L",
     "copy the command that opens this view",
     {Ctrl('L')},
     Pace::kOnce,
     [](State& state, Use) { state.copy_link = state.document != nullptr; }},
    {"T", "light or dark", {On('T')}, Pace::kOnce, SwitchTheme},
    {"?",
     "this sheet",
     {Typed('?')},
     Pace::kOnce,
     [](State& state, Use) { state.help_open = !state.help_open; }},
    {"Ctrl+Q", "quit", {Ctrl('Q')}, Pace::kOnce, [](State& state, Use) { state.quit = true; }},
};

constexpr ShortcutGroup kGroups[] = {
    {"Moving in time", kMoving},
    {"Without a mouse", kPanes},
    {"From one to the next", kFollowing},
    {"Tracks and places", kKeeping},
    {"Window", kWindow},
    {"", kUnnamed},
};

}  // namespace

std::span<const ShortcutGroup> ShortcutGroups() { return kGroups; }

}  // namespace trainprof
