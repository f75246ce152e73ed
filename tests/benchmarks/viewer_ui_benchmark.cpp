// The timeline's whole frame of a recording of 10 million events with 40 rows in sight: layout,
// lanes, names, ruler, labels, input, as ImGui's vertices. Against drawing each event in view.
//
//   cmake --preset release && cmake --build build/release --target viewer_ui_benchmark
//   build/release/bin/viewer_ui_benchmark       # two minutes, 1 GB of disk, 4 GB of memory
//
// Before that: the longest frame while the lanes are made by a thread, and while one searches.
//
// CPU time, the best of several frames, so that another program's load does not count. Panning: in
// each frame the view is another. "Each event" gives its vertices away after 16,000 rectangles: it
// would need a gigabyte for them. TRAINPROF_BENCHMARK_EVENTS sets the number of events. Exit
// status: 0 all gates hold, 1 one does not.
#include <fmt/format.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/benchmarks/machine_unit.h"
#include "tests/viewer/open_job.h"
#include "tests/viewer/scenes.h"
#include "tests/viewer/ui_driver.h"
#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"

namespace trainprof {
namespace {

constexpr double kMostFrameMs = 2;
constexpr int kMostFrameRects = 20'000;
constexpr uint32_t kThreads = 20;  // 20 threads of two lanes, 20 streams
constexpr float kWidth = 1600;
constexpr int64_t kHeight = 820;
constexpr int kFrames = 15;

double CpuMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

// The rows that the timeline last showed, all their events in view.
void DrawEachEvent(State& state, const TimelineCache& cache, const Theme& theme) {
  constexpr int kReserved = 16'000;
  ImDrawList list(ImGui::GetDrawListSharedData());
  list._ResetForNewFrame();
  const Scale scale = Scale::Of(state.view, state.view_width_px);
  int left = 0;
  const auto [first, last] = cache.layout.tracks.Within(0, kHeight);
  for (size_t r = first; r < last; ++r) {
    const TrackRow& row = cache.layout.tracks.rows[r];
    if (row.form != RowForm::kLanes) continue;
    for (const Lane& lane : state.document->store().LanesOf(row.line)) {
      for (size_t i = 0; i < lane.size(); ++i) {
        const Interval shown = Intersect(lane.interval(i), state.view);
        if (shown.Empty()) continue;
        if (left-- == 0) {
          list._ResetForNewFrame();
          list.PrimReserve(kReserved * 6, kReserved * 4);
          left = kReserved - 1;
        }
        list.PrimRect({scale.PixelOf(shown.begin), 0}, {scale.PixelOf(shown.end) + 1, 16},
                      theme.Of(lane.category(i)));
      }
    }
  }
}

struct Window {
  State& state;
  const double most_ms;  // of a frame, on this machine
  PaneCache cache{};
  double timeline_ms = 0;  // of the last frame
  double longest_ms = 0;
  double each_event_ms = 0;
  bool compare = false;

  void Draw(const Theme& theme) {
    PaneContext context{state, theme, cache};
    const double begin = CpuMs();
    DrawTimeline(context);
    timeline_ms = CpuMs() - begin;
    longest_ms = std::max(longest_ms, timeline_ms);
    if (!compare) return;
    const double naive = CpuMs();
    DrawEachEvent(state, cache.timeline, theme);
    each_event_ms = CpuMs() - naive;
  }
};

bool Measure(double zoom, Window& window, UiDriver& ui) {
  State& state = window.state;
  const Interval extent = state.lines().extent();
  const auto length = static_cast<int64_t>(static_cast<double>(extent.Length().ns) * zoom);
  const TraceTime begin = extent.begin + Duration{(extent.Length().ns - length) / 2};
  double best = 1e9;
  int rects = 0;
  for (int i = 0; i < kFrames; ++i) {
    state.view = {begin + Duration{length / 1000 * i},
                  begin + Duration{length / 1000 * i + length}};
    ui.Frames();
    best = std::min(best, window.timeline_ms);
    rects = std::max(rects, ui.drawn().rects);
  }
  window.compare = true;
  ui.Frames();
  window.compare = false;
  const bool holds = best <= window.most_ms && rects <= kMostFrameRects;
  fmt::print(
      "  zoom {:<7} each event {:9.2f} ms   trainprof {:6.2f} ms {:6} rects; gate {:.1f} ms, {}: {}\n",
      zoom, window.each_event_ms, best, rects, window.most_ms, kMostFrameRects,
      holds ? "holds" : "FAILS");
  return holds;
}

class Stopwatch {
 public:
  double Ms() const {
    const auto passed = std::chrono::steady_clock::now() - begin_;
    return std::chrono::duration<double, std::milli>(passed).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Sixty frames a second, as a window draws them, until nothing is being made.
bool MeasureUntilIdle(const char* what, Window& window, UiDriver& ui, double first_ms) {
  constexpr std::chrono::milliseconds kBetweenFrames(16);
  double longest = first_ms;
  const Stopwatch watch;
  State& state = window.state;
  do {
    std::this_thread::sleep_for(kBetweenFrames);
    const double begin = CpuMs();
    UpdateSearch(state);
    const double update = CpuMs() - begin;
    ui.Frames();
    longest = std::max(longest, update + window.timeline_ms);
  } while (window.cache.Busy() || state.search.busy());
  const bool holds = longest <= window.most_ms;
  fmt::print("  {}: there after {:.0f} ms, longest frame {:.2f} ms; gate {:.1f} ms: {}\n", what,
             watch.Ms(), longest, window.most_ms, holds ? "holds" : "FAILS");
  return holds;
}

bool MeasureSearch(Window& window, UiDriver& ui) {
  bool good = true;
  for (const char* text : {"gemm", "dur>5us", "gemm_kernel_3 dur>5us"}) {
    const double begin = CpuMs();
    RunSearch(window.state, text);
    const double first = CpuMs() - begin;
    good &= MeasureUntilIdle(text, window, ui, first);
    fmt::print("    {} hits\n", window.state.search.hits.total);
  }
  RunSearch(window.state, "");
  return good;
}

int Run() {
  const char* wanted = std::getenv("TRAINPROF_BENCHMARK_EVENTS");
  const size_t events = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10'000'000;
  testing::ScratchFolder folder;
  testing::WriteBigRecording(folder.path() / "run", events, kThreads);
  State state;
  Open(state, folder.path() / "run");
  testing::WaitForAll(state);
  Window window{state, kMostFrameMs * Slowness()};
  UiDriver ui({kWidth, kHeight}, [&](const Theme& theme) { window.Draw(theme); });
  const double first_frame = window.longest_ms;  // of the first ones
  ImGui::GetIO().MousePos = {900, 400};          // which costs a tooltip
  bool good = MeasureUntilIdle("lanes in sight", window, ui, first_frame);
  const RowList& tracks = window.cache.timeline.layout.tracks;
  const size_t in_sight = tracks.Within(0, kHeight).second;
  size_t lanes = 0;
  for (size_t row = 0; row < in_sight; ++row) lanes += tracks.rows[row].lanes;
  fmt::print("{} events; {} lanes of {} tracks in sight\n", state.document->progress().events,
             lanes, in_sight);
  good &= MeasureSearch(window, ui);
  for (const double zoom : {1.0, 0.3, 0.1, 0.01, 0.001, 0.0001}) good &= Measure(zoom, window, ui);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace trainprof

int main() { return trainprof::Run(); }
