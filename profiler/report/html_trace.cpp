#include "profiler/report/html_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/model.h"
#include "analysis/tables/name_table.h"
#include "analysis/tables/site_table.h"
#include "profiler/report/html_picture.h"
#include "profiler/report/html_text.h"
#include "profiler/report/text.h"

namespace trainprof::html {
namespace {

constexpr size_t kMostStreams = 4;
constexpr uint32_t kMostDepth = 3;
constexpr size_t kMostNames = 40;
constexpr size_t kMostPictures = 10;  // of evidence

// Draws parts of one rank's time.
class Painter {
 public:
  explicit Painter(const RankModel& model)
      : model_(model), trace_(model.trace), categorizer_(model.trace) {
    for (const DeviceAccount& account : model.devices) {
      if (device_ == nullptr || account.busy.Total() > device_->busy.Total()) device_ = &account;
    }
  }

  std::string Draw(const std::string& title, const Interval& view, bool brief) const {
    std::vector<PictureLane> lanes;
    if (device_ != nullptr) lanes.push_back(AccountLane(view));
    if (!brief) AddStreams(view, lanes);
    AddPhases(view, lanes);
    if (!brief) AddRanges(view, lanes);
    AddCalls(view, lanes);
    return LanesSvg(title, view, lanes);
  }

 private:
  static bool Touches(const Interval& time, const Interval& view) {
    return time.begin < view.end && view.begin < time.end;
  }

  PictureLane AccountLane(const Interval& view) const {
    PictureLane lane{fmt::format("GPU {}: what it did, and why it was idle",
                                 trace_.devices[Index(device_->device)].id),
                     {}};
    const auto add = [&](const IntervalSet& set, DeviceClass c) {
      const IntervalSet shown = set.Clip(view);
      for (const Interval& time : shown.intervals()) {
        lane.bars.push_back({time, CategoryOf(c), false, Title(c)});
      }
    };
    add(device_->busy.Minus(device_->exposed_communication).Minus(device_->exposed_copy),
        DeviceClass::kCompute);
    add(device_->exposed_communication, DeviceClass::kExposedCommunication);
    add(device_->exposed_copy, DeviceClass::kExposedCopy);
    for (const auto& idle : device_->idle) {
      if (!Touches(idle.interval, view)) continue;
      lane.bars.push_back({idle.interval, CategoryOf(idle.value), true, Title(idle.value)});
    }
    return lane;
  }

  void AddStreams(const Interval& view, std::vector<PictureLane>& lanes) const {
    std::map<TrackId, std::pair<Duration, PictureLane>> streams;
    const DeviceOpTable& ops = trace_.device_ops;
    for (uint32_t row = 0; row < ops.size(); ++row) {
      const Interval time = ops.interval(Row{row});
      if (!Touches(time, view)) continue;
      auto& [total, lane] = streams[ops.track[row]];
      total += Intersect(time, view).Length();
      lane.bars.push_back({time, categorizer_.OfDeviceOp(row), false, trace_.Text(ops.name[row])});
    }
    std::vector<std::pair<Duration, PictureLane>> order;
    for (auto& [track, stream] : streams) {
      const Track& of = trace_.tracks[Index(track)];
      stream.second.label =
          of.device == kNoDevice
              ? fmt::format("stream {}", of.tid)
              : fmt::format("GPU {}, stream {}", trace_.devices[Index(of.device)].id, of.tid);
      order.push_back(std::move(stream));
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < std::min(order.size(), kMostStreams); ++i) {
      lanes.push_back(std::move(order[i].second));
    }
    if (order.size() > kMostStreams) {
      lanes.back().label +=
          fmt::format(" (and {} streams that did less)", order.size() - kMostStreams);
    }
  }

  void AddPhases(const Interval& view, std::vector<PictureLane>& lanes) const {
    PictureLane lane{"the stepping thread: its phases", {}};
    for (const auto& segment : model_.host.phases) {
      const HostClass c = ClassOf(segment.value);
      if (!Touches(segment.interval, view) || c == HostClass::kOther) continue;
      lane.bars.push_back({segment.interval, CategoryOf(c), false, Title(c)});
    }
    for (const auto& [c, set] : model_.host.Unnamed()) {
      const IntervalSet shown = set->Clip(view);
      for (const Interval& time : shown.intervals()) {
        lane.bars.push_back({time, CategoryOf(c), false, Title(c)});
      }
    }
    if (!lane.bars.empty()) lanes.push_back(std::move(lane));
  }

  // The outermost ranges that lie within the view, or begin or end there.
  void AddRanges(const Interval& view, std::vector<PictureLane>& lanes) const {
    std::vector<uint32_t> rows;
    const RangeTable& ranges = trace_.ranges;
    for (uint32_t row = 0; row < ranges.size(); ++row) {
      const Interval time = ranges.interval(Row{row});
      const bool covers = time.begin <= view.begin && view.end <= time.end;
      if (ranges.track[row] != model_.steps.thread || !Touches(time, view) || covers ||
          ranges.kind[row] == RangeKind::kPythonFunction) {
        continue;
      }
      rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) {
      const Interval x = ranges.interval(Row{a});
      const Interval y = ranges.interval(Row{b});
      return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
    });
    std::vector<PictureLane> deep;
    std::vector<TraceTime> open;
    for (const uint32_t row : rows) {
      const Interval time = ranges.interval(Row{row});
      while (!open.empty() && open.back() <= time.begin) open.pop_back();
      const size_t depth = open.size();
      open.push_back(time.end);
      if (depth >= kMostDepth) continue;
      if (depth >= deep.size()) {
        deep.push_back(
            {depth == 0 ? "the stepping thread: ranges and operators" : "within them", {}});
      }
      deep[depth].bars.push_back(
          {time, categorizer_.OfRange(row), false, trace_.Text(ranges.name[row])});
    }
    for (PictureLane& lane : deep) lanes.push_back(std::move(lane));
  }

  void AddCalls(const Interval& view, std::vector<PictureLane>& lanes) const {
    PictureLane lane{"the stepping thread: CUDA calls", {}};
    const ApiTable& calls = trace_.api;
    for (uint32_t row = 0; row < calls.size(); ++row) {
      if (calls.track[row] != model_.steps.thread || !Touches(calls.interval(Row{row}), view))
        continue;
      lane.bars.push_back({calls.interval(Row{row}), categorizer_.OfCall(row), false,
                           trace_.Text(calls.name[row])});
    }
    if (!lane.bars.empty()) lanes.push_back(std::move(lane));
  }

  const RankModel& model_;
  const Trace& trace_;
  Categorizer categorizer_;
  const DeviceAccount* device_ = nullptr;
};

Interval TimeOf(const Steps& steps, const Step& step) {
  return steps.clock == StepClock::kDevice && !step.device.Empty() ? step.device : step.span;
}

std::string Timelines(const RankAnalysis& rank, const Interval& extent, const Painter& painter) {
  const Steps& steps = rank.device_steps.count() > 0 ? rank.device_steps : rank.steps;
  if (steps.count() == 0) return painter.Draw("The whole time", extent, false);
  const Duration median = steps.Median();
  const Step* worst = &steps.steps.front();
  const Step* typical = worst;
  const auto far = [&](const Step& step) {
    return std::abs((TimeOf(steps, step).Length() - median).ns);
  };
  for (const Step& step : steps.steps) {
    if (TimeOf(steps, step).Length() > TimeOf(steps, *worst).Length()) worst = &step;
    if (far(step) < far(*typical)) typical = &step;
  }
  std::string text;
  const auto draw = [&](const char* what, const Step& step) {
    const Interval view = TimeOf(steps, step);
    const std::string title =
        fmt::format("{}, number {}: {:.3f} ms", what, step.number, view.Length().ToMilliseconds());
    text += fmt::format("<h3>{}</h3>\n{}", title, painter.Draw(title, view, false));
  };
  draw("The longest step", *worst);
  if (typical != worst) draw("A typical step", *typical);
  return text;
}

std::string Ms(Duration total, int64_t steps) {
  return fmt::format("{:.4f}", total.ToMilliseconds() / static_cast<double>(steps));
}

std::string NamesTable(const RankModel& model, const char* caption, NamedEvents what,
                       const Steps& steps, const IntervalSet& window) {
  NameTable table = MakeNameTable(model.trace, what, window);
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const NameRow& a, const NameRow& b) { return a.self > b.self; });
  const char* const unit = steps.count() > 0 ? "ms a step" : "ms";
  TableText text(caption, {Words("name"),
                           {unit},
                           {"share"},
                           {steps.count() > 0 ? "times a step" : "times"},
                           {"median us"},
                           {"longest us"}});
  for (const NameRow& row : table.rows) {
    if (text.rows() == kMostNames) break;
    text.Row({Swatch(row.category, false) + "<code>" +
                  Escaped(ShortName(model.trace.Text(row.name), 160)) + "</code>",
              Ms(row.self, steps.divisor()),
              fmt::format("{:.1f} %", 100 * RankAnalysis::Part(row.self, table.self)),
              fmt::format("{:.1f}",
                          static_cast<double>(row.count) / static_cast<double>(steps.divisor())),
              fmt::format("{:.1f}", 1000 * row.median.ToMilliseconds()),
              fmt::format("{:.1f}", 1000 * row.longest.ToMilliseconds())});
  }
  if (text.rows() == 0) return "";
  std::string out = std::move(text).Finish();
  if (table.rows.size() > kMostNames) {
    out += fmt::format("<p class=\"dim\">and {} names that take less</p>\n",
                       table.rows.size() - kMostNames);
  }
  return out;
}

std::string SitesTable(const RankModel& model) {
  const std::vector<SiteRow> rows = MakeSiteTable(model, model.device_steps.window);
  const int64_t steps = model.device_steps.divisor();
  TableText text("Lines of the source, by how long their calls wait for the GPU",
                 {Words("line"),
                  {model.device_steps.count() > 0 ? "ms waiting a step" : "ms waiting"},
                  {"calls"},
                  {"launches"},
                  {"allocations"}});
  for (const SiteRow& row : rows) {
    if (text.rows() == kMostNames) break;
    text.Row({Escaped(ShortName(SiteText(row.site), 200)), Ms(row.blocked, steps),
              fmt::format("{}", row.site.count), fmt::format("{}", row.launches),
              fmt::format("{}", row.allocations)});
  }
  return text.rows() == 0 ? "" : std::move(text).Finish();
}

TraceParts PartsOf(const RankAnalysis& rank, const Trace& trace) {
  const bool own = rank.source == SourceKind::kRecording;
  const RankModel model(trace, own ? std::optional(rank.steps.warmup_steps) : std::nullopt);
  const Painter painter(model);
  TraceParts parts;
  parts.timelines = Timelines(rank, trace.extent, painter);
  for (const Finding& finding : rank.findings) {
    parts.evidence.emplace_back();
    if (finding.evidence.empty() || parts.evidence.size() > kMostPictures) continue;
    const Interval when = finding.evidence.front().when;
    const Duration room{std::max<int64_t>(when.Length().ns / 5, 1000)};
    const std::string title = fmt::format(
        "the worst of finding {}, with some time before and after", parts.evidence.size());
    parts.evidence.back() = painter.Draw(title, {when.begin - room, when.end + room}, true);
  }
  const Steps& steps = model.steps;
  const Steps& device = model.device_steps;
  parts.tables =
      NamesTable(model, "Kernels and copies", NamedEvents::kDeviceOps, device,
                 device.device_window) +
      SitesTable(model) +
      NamesTable(model, "Operators and ranges of all threads, without what is inside them",
                 NamedEvents::kOperators, steps, steps.window) +
      NamesTable(model, "CUDA calls", NamedEvents::kCalls, steps, steps.window);
  return parts;
}

}  // namespace

Result<TraceParts> PartsOfTrace(const RankAnalysis& rank, const RenderOptions& options) {
  TraceParts parts;
  int64_t place = 0;
  bool is_seen = false;
  const Result<void> read = options.visit_traces([&](Trace trace) -> Result<void> {
    if (place++ != rank.place) return {};
    parts = PartsOf(rank, trace);
    is_seen = true;
    return Error{"the others need not be read"};
  });
  if (!is_seen) return Error{read.ok() ? "the rank's trace is not there any more" : read.error()};
  return parts;
}

}  // namespace trainprof::html
