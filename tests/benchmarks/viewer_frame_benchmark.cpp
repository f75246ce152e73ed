// Building one frame of 10 million events in 40 lanes, without a window: against drawing each
// visible event, and against folding as Tracy does (zones under 3 px join while their gaps are
// under 3 px; each step is a binary search over the rest of the lane).
//
//   cmake --preset release && cmake --build build/release --target viewer_frame_benchmark
//   build/release/bin/viewer_frame_benchmark      # half a minute, 0.5 GB of memory
//
// CPU time, the best of several rounds, so that another program's load does not count. TRAINPROF_
// BENCHMARK_EVENTS sets the number of events. Exit status: 0 all gates hold, 1 one does not.
#include <fmt/format.h>
#include <time.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>

#include "tests/benchmarks/machine_unit.h"
#include "viewer/timeline/frame.h"

namespace trainprof {
namespace {

constexpr double kMostFrameMs = 2;
constexpr size_t kLanes = 40;
constexpr int32_t kWidth = 1600;
constexpr int kRounds = 7;

double CpuMs() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

// Kernels of 5 us in the median, phases of 512, a pause of some ms every 2048. `outlier`: and one
// event half an hour later, so that all others share a few bins of the pyramid.
std::vector<Lane> MakeLanes(size_t events, bool outlier) {
  std::vector<Lane> lanes(kLanes);
  std::mt19937_64 random(42);
  std::lognormal_distribution<double> length(8.5, 1.3);
  std::exponential_distribution<double> gap(1 / 6000.0);
  for (size_t l = 0; l < kLanes; ++l) {
    int64_t at = static_cast<int64_t>(l) * 1000;
    for (size_t i = 0; i < events / kLanes; ++i) {
      at += static_cast<int64_t>(gap(random));
      if (i % 2048 == 2047) at += 4'000'000 + static_cast<int64_t>(random() % 4'000'000);
      const auto end = at + static_cast<int64_t>(std::min(5e7, length(random) + 200));
      const size_t phase = i / 512 % 6;
      const auto category = static_cast<Category>(random() % 10 < 7 ? phase : random() % 7);
      lanes[l].Add({at}, {end}, category, Table::kDeviceOps, Row{static_cast<uint32_t>(i)});
      at = end;
    }
    const int64_t far = at + 1'800'000'000'000;
    if (outlier) lanes[l].Add({far}, {far + 1000}, Category::kCopy, Table::kDeviceOps, {});
  }
  return lanes;
}

using Build = std::function<void(const std::vector<const Lane*>&, const Interval&, Frame&)>;

void BuildNaive(const std::vector<const Lane*>& lanes, const Interval& view, Frame& frame) {
  frame.rects.clear();
  frame.scale = Scale::Of(view, kWidth);
  for (uint32_t l = 0; l < lanes.size(); ++l) {
    for (uint32_t i = 0; i < lanes[l]->size(); ++i) {
      const Interval shown = Intersect(lanes[l]->interval(i), view);
      if (shown.Empty()) continue;
      frame.rects.push_back({frame.scale.PixelOf(shown.begin), frame.scale.PixelOf(shown.end), l, i,
                             lanes[l]->category(i), kShades});
    }
  }
}

// The first event in [from, to) that ends at or after `t`.
size_t LowerBoundByEnd(const Lane& lane, size_t from, size_t to, TraceTime t) {
  while (from < to) {
    const size_t middle = (from + to) / 2;
    lane.interval(middle).end < t ? from = middle + 1 : to = middle;
  }
  return from;
}

void BuildTracyFold(const std::vector<const Lane*>& lanes, const Interval& view, Frame& frame) {
  frame.rects.clear();
  frame.scale = Scale::Of(view, kWidth, 3);
  const Duration least = frame.scale.event_length;
  for (uint32_t l = 0; l < lanes.size(); ++l) {
    const Lane& lane = *lanes[l];
    const size_t last = lane.FirstBeginningAt(view.end);
    size_t i = LowerBoundByEnd(lane, 0, last, view.begin);
    while (i < last) {
      size_t next = i + 1;
      const bool folded = lane.interval(i).Length() < least;
      if (folded) {
        TraceTime until = lane.interval(i).end + least;
        while (true) {
          next = LowerBoundByEnd(lane, next, last, until);
          if (next == last) break;
          const TraceTime end = lane.interval(next).end;
          if (end - lane.interval(next - 1).end >= least) break;
          until = end + least;
        }
      }
      const Interval shown = Intersect({lane.interval(i).begin, lane.interval(next - 1).end}, view);
      frame.rects.push_back({frame.scale.PixelOf(shown.begin), frame.scale.PixelOf(shown.end), l,
                             folded ? kNoEvent : static_cast<uint32_t>(i),
                             folded ? Category::kOther : lane.category(i), kShades});
      i = next;
    }
  }
}

void BuildOurs(const std::vector<const Lane*>& lanes, const Interval& view, Frame& frame) {
  BuildFrame(std::vector<FrameLane>(lanes.begin(), lanes.end()), view, kWidth, frame);
}

struct Contender {
  const char* name;
  Build build;
  bool is_ours;
};

// One line a contender and a zoom; whether ours stays below its limits.
bool Compare(const std::vector<const Lane*>& lanes, int64_t extent, double most_ms) {
  const Contender contenders[] = {{"each event", BuildNaive, false},
                                  {"fold as Tracy", BuildTracyFold, false},
                                  {"trainprof", BuildOurs, true}};
  bool good = true;
  for (const double zoom : {1.0, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001}) {
    const auto half = static_cast<int64_t>(static_cast<double>(extent) * zoom / 2);
    const Interval view{{extent / 2 - half}, {extent / 2 + half}};
    for (const Contender& contender : contenders) {
      double best = 1e9;
      Frame frame;
      for (int round = 0; round < kRounds; ++round) {
        const double begin = CpuMs();
        contender.build(lanes, view, frame);
        best = std::min(best, CpuMs() - begin);
      }
      const bool holds = best <= most_ms && frame.rects.size() <= kMostRects;
      fmt::print(
          "  zoom {:<7} {:<14} {:9.3f} ms {:9} rects{}\n", zoom, contender.name, best,
          frame.rects.size(),
          !contender.is_ours
              ? ""
              : fmt::format(", events from {} px; gate {:.1f} ms, {} rects: {}",
                            frame.scale.event_px, most_ms, kMostRects, holds ? "holds" : "FAILS"));
      good &= holds || !contender.is_ours;
    }
  }
  return good;
}

bool RunOn(const char* what, size_t events, bool outlier, double most_ms) {
  std::vector<Lane> lanes = MakeLanes(events, outlier);
  const double begin = CpuMs();
  for (Lane& lane : lanes) lane.Finish();
  const double finish_ms = CpuMs() - begin;
  size_t bytes = 0;
  size_t pyramid_bytes = 0;
  std::vector<const Lane*> shown;
  for (const Lane& lane : lanes) {
    bytes += lane.size_bytes();
    pyramid_bytes += lane.pyramid().size_bytes();
    shown.push_back(&lane);
  }
  const auto count = static_cast<double>(events);
  fmt::print(
      "{}: {} events, {} lanes; sums and pyramids {:.0f} ms, {:.1f} B/event, pyramids {:.2f}\n",
      what, events, kLanes, finish_ms, static_cast<double>(bytes) / count,
      static_cast<double>(pyramid_bytes) / count);
  const size_t last = lanes[0].size() - (outlier ? 2 : 1);
  return Compare(shown, lanes[0].interval(last).end.ns, most_ms);
}

int Run() {
  const char* wanted = std::getenv("TRAINPROF_BENCHMARK_EVENTS");
  const size_t events = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10'000'000;
  const double most_ms = kMostFrameMs * Slowness();
  const bool even = RunOn("spread evenly", events, false, most_ms);
  const bool crowded = RunOn("with an event half an hour later", events, true, most_ms);
  return even && crowded ? 0 : 1;
}

}  // namespace
}  // namespace trainprof

int main() { return trainprof::Run(); }
