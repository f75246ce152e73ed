// What a user can do. Each action leaves a consistent state; where it cannot be done (no file, no
// such step, nothing selected) it changes nothing but `message`, which then says why.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "viewer/state/state.h"

namespace trainprof {

// The document: to be called once a frame. Takes over what was loaded meanwhile; on the first rank
// shows its steps and opens the worst and the median rank. Times that the user chose stay where
// they are when the axis gets another origin. True when something changed.
bool UpdateDocument(State& state);
void Open(State& state, const std::filesystem::path& path);
void Close(State& state);  // leaves nothing but settings

// Moving. `factor` < 1 zooms in.
void Zoom(State& state, TraceTime at, double factor);
void PanBy(State& state, double pixels);
void Show(State& state, const Interval& what);  // with a margin; the view is left in the history
// Exactly this part of time, without a margin; what is not given is the job's begin or end.
void ShowTimes(State& state, std::optional<TraceTime> from, std::optional<TraceTime> to);
void ShowAll(State& state);
void Back(State& state);
void Forward(State& state);
// "51" or "step 51", "1.5 s", "820ms" (from the begin of the job).
void GoTo(State& state, std::string_view text);
// Step `number` of the shown rank. Steps count from 0 at the trace's first,
// warm-up included, which has no bar in the ribbon and cannot be shown.
void ShowStep(State& state, int64_t number);
// The step in the middle of the view, of the same rank, and its number; nothing between steps.
std::optional<int64_t> StepInView(const State& state);

// Selecting. A selected event is shown when it lies outside of the view. There is one selection,
// the last: a range takes the place of the event; an event is looked at within the range that was
// selected before, which stays what the tables are about.
void Select(State& state, const EventRef& event);
void ZoomToSelection(State& state);                 // the event, else the range
void SelectNeighbour(State& state, int direction);  // -1, +1: along its lane
void FollowLaunch(State& state);                    // call <-> what it launched
void SelectRange(State& state, const Interval& range);
// What ran on a GPU (its line) at a moment: of several the last begun, if possible of that
// category. O(operations of the GPU).
std::optional<EventRef> DeviceOpAt(const Lines& lines, uint32_t gpu, Category category,
                                   TraceTime at);
void ClearSelection(State& state);  // popups first, then range, event, finding

// Findings. Zooms to the worst instance, opens the lines that show it.
void OpenFinding(State& state, const FindingRef& finding);
// Finding `number` of the shown rank, as the report counts them: from 1.
void OpenFindingNumber(State& state, int64_t number);
// Of the open finding, the instance in the middle of the view, else the nearest; the view stays.
void TakeEvidenceInView(State& state);
// The next or previous instance, around the end; where no finding is open, the first or last one's.
void ShowEvidence(State& state, int direction);

// The rank whose findings and tables are shown: that of the open finding, the chosen, the slowest.
uint32_t ShownRank(const State& state);
// Closes a finding of another rank.
void ShowRank(State& state, uint32_t rank);
void ShowRankNumber(State& state, int64_t number);  // as reports count them
int64_t NumberOfRank(const State& state, uint32_t rank);

// Search. A new text ends the search for the former one. While hits are being looked for, ShowHit
// waits for them: UpdateSearch, to be called once a frame (UpdateDocument does), takes them over.
void RunSearch(State& state, std::string_view text);
void UpdateSearch(State& state);
void ShowHit(State& state, int direction);

// Tracks.
void TogglePinned(State& state, uint32_t line);
void ToggleCollapsed(State& state, uint32_t line);
void Reveal(State& state, uint32_t line);  // opens its parents and scrolls to it
void ToggleBookmark(State& state, TraceTime at);
void ShowBookmark(State& state, int direction);

// The keyboard, for the pane that it is on.
void GoToPane(State& state, int direction);  // the next or previous one
void GoToTab(State& state, int direction);   // of the tables, around the end

// "12ms..15.5ms" selects that range of time; anything else is searched for, and the first event
// found selected. With `at:` all begin together, and the one of the shortest name is meant: a link
// names an event so, and longer names may contain its name.
void SelectByText(State& state, std::string_view text);
// Why SelectByText cannot make anything of a text; empty when it can.
std::string ErrorInSelection(std::string_view text);

// The command that shows what is shown now: rank, finding, selection, times. In a window, or with
// --screenshot as a picture.
std::string ViewLink(const State& state);

}  // namespace trainprof
