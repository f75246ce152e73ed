// What the window shows and what its user did: everything but pixels. Panes (viewer/panes) read it
// and call actions (viewer/state/actions.h); nothing here knows a toolkit.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "viewer/document/document.h"
#include "viewer/navigation/follow.h"
#include "viewer/navigation/search.h"
#include "viewer/navigation/view.h"
#include "viewer/timeline/background.h"

namespace trainprof {

enum class ThemeName : uint8_t { kLight, kDark };

enum class Tab : uint8_t { kKernels, kOps, kSites, kRanks, kMemory, kQuality };
inline constexpr size_t kTabs = 6;

// Kept between two runs of the viewer.
struct Settings {
  ThemeName theme = ThemeName::kDark;
  float scale = 0;             // of text and lines; 0: what the display asks for
  float names_width = 220;     // of the list of tracks, in points
  float bottom_height = 260;   // of findings, selection and inspector
  float findings_width = 420;  // of them
  float selection_width = 320;
  bool show_ribbon = true;  // which panes there are
  bool show_overview = true;
  bool show_bottom = true;  // findings, selection and inspector
  int window_width = 1600;  // when it was closed; in the display's units
  int window_height = 900;
  std::vector<std::filesystem::path> recent;  // newest first

  bool operator==(const Settings&) const = default;
};

// A finding of a rank: document->Analysis(rank)->findings[index].
struct FindingRef {
  uint32_t rank = 0;
  uint32_t index = 0;

  bool operator==(const FindingRef&) const = default;
};

struct Bookmark {
  TraceTime at;
  std::string name;
};

// What is searched for; a thread of its own looks through the events of large jobs.
struct SearchState {
  std::string text;
  std::string error;  // why it cannot be searched for
  Query query;
  // Of `text`, and of the ranks that were there when the search began; empty until then.
  Hits hits;
  std::optional<size_t> current;  // of hits.events
  int go = 0;                     // to the next or previous hit, once there are some

  bool due = false;  // has to be begun, or once more as there are further ranks
  BackgroundJob<Hits> job;
  std::shared_ptr<std::atomic<size_t>> found;  // by the job, so far

  // Hits, or more of them, are to come.
  bool busy() const { return due || found != nullptr; }
};

// Which pane the arrow keys are for.
enum class KeyPane : uint8_t { kTimeline, kFindings, kTables };
inline constexpr size_t kKeyPanes = 3;

// Where the keyboard is, as the mouse is where its pointer is.
struct KeyFocus {
  KeyPane pane{};
  bool shown = false;              // marked, until the mouse moves
  std::optional<uint32_t> line{};  // of the timeline
  uint32_t finding = 0;            // of the list
  size_t row = 0;                  // of the table, from its top
  // What the pane has to do when it is drawn next. What it does not do then is dropped.
  int rows = 0;   // to go down
  int pages = 0;  // the same
  bool enter = false;
};

struct State {
  std::shared_ptr<Document> document;  // null: no file is open
  // Were open, and still end a stage of their analysis, which no frame shall wait for.
  std::vector<std::shared_ptr<Document>> closing;

  Interval view{{0}, {1'000'000}};  // of time, on the axis of document->lines()
  bool view_chosen = false;         // by the user: loading more does not change it
  int64_t axis_base_ns = 0;         // of the axis that view, range and bookmarks are on
  int32_t view_width_px = 1000;     // the timeline's; its pane sets it each frame
  ViewHistory history;

  std::optional<EventRef> selected;
  std::optional<Interval> range;  // selected by dragging
  std::optional<FindingRef> finding;
  size_t evidence = 0;  // of the finding, which one is shown

  SearchState search;
  std::vector<Bookmark> bookmarks;  // by time
  std::set<uint32_t> pinned;        // lines, shown first
  std::set<uint32_t> collapsed;     // lines whose children are hidden
  std::string filter;               // lines whose name contains it, with their parents
  std::set<uint32_t> unfolded;      // lines that show all their nesting, however deep
  std::optional<uint32_t> reveal;   // a line to scroll to; its pane clears it
  double scroll = 0;                // of the tracks, in points from their top

  // Where the mouse is over the timeline: its pane sets them each frame.
  std::optional<TraceTime> hovered_time;
  std::optional<uint32_t> hovered_line;

  Tab tab = Tab::kKernels;
  std::optional<uint32_t> rank;  // whose findings and tables are shown; none: the slowest's
  std::filesystem::path demo;    // the trace that comes with the program; empty: there is none
  KeyFocus keys;
  bool quit = false;  // its user wants the window to close
  bool help_open = false;
  bool go_to_open = false;
  bool open_prompt = false;   // asks for a path
  bool focus_search = false;  // its pane clears it
  bool copy_link = false;     // the menu bar clears it
  std::string message;        // one line for the user: what was copied, why nothing happened
  Settings settings;

  bool ranks_opened = false;  // those worth looking at, the others collapsed; done once

  bool HasLines() const { return document && document->lines() != nullptr; }
  const Lines& lines() const { return *document->lines(); }
};

}  // namespace trainprof
