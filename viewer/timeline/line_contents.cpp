#include "viewer/timeline/line_contents.h"

#include <algorithm>

#include "viewer/timeline/innermost.h"
#include "viewer/timeline/line_events.h"

namespace trainprof {
namespace {

// Arguments are looked at for each value.
constexpr size_t kEffortOfAValue = 5;
constexpr size_t kLeastEffort = 50;

const DeviceAccount* AccountFor(const Lines& lines, const Line& line) {
  for (const DeviceAccount& account : lines.AccountsOf(line.rank)) {
    if (account.device == line.device) return &account;
  }
  return nullptr;
}

template <class Segments>
void AddSegments(const Segments& segments, Table table, Duration shift, Lane& lane) {
  lane.Reserve(segments.size());
  uint32_t row = 0;
  for (const Segment<DeviceClass>& segment : segments) {
    CancelPoint(row);
    lane.Add(segment.interval.begin + shift, segment.interval.end + shift,
             CategoryOf(segment.value), table, Row{row++});
  }
}

// How many events each depth has: lanes as long as they will be are not copied as they grow, and
// take no more than they need.
std::vector<size_t> CountByDepth(const Lines& lines, const Line& line) {
  std::vector<size_t> count(line.lanes);
  DepthPlacer placer;
  VisitEvents(lines, line, [&](const Interval& event, Table, uint32_t) {
    const uint32_t depth = placer.Place(event);
    if (depth < count.size()) ++count[depth];
  });
  return count;
}

void AddEvents(const Lines& lines, const Line& line, const Categorizer& categorizer,
               std::vector<Lane>& lanes) {
  const std::vector<size_t> count = CountByDepth(lines, line);
  for (size_t depth = 0; depth < lanes.size(); ++depth) lanes[depth].Reserve(count[depth]);
  const Duration shift = lines.Shift(line.rank);
  DepthPlacer placer;
  VisitEvents(lines, line, [&](const Interval& event, Table table, uint32_t row) {
    const uint32_t depth = placer.Place(event);
    if (depth >= lanes.size()) return;
    lanes[depth].Add(event.begin + shift, event.end + shift, categorizer.Of(table, row), table,
                     Row{row});
  });
}

std::vector<Lane> MakeLanes(const Lines& lines, const Line& line, const Categorizer& categorizer) {
  std::vector<Lane> lanes(line.lanes);
  const Duration shift = lines.Shift(line.rank);
  if (line.kind == LineKind::kGpu || line.kind == LineKind::kIdle) {
    const DeviceAccount* account = AccountFor(lines, line);
    if (account != nullptr && line.kind == LineKind::kGpu) {
      AddSegments(BusyByClass(*account), Table::kBusy, shift, lanes[0]);
    } else if (account != nullptr) {
      AddSegments(account->idle, Table::kIdle, shift, lanes[0]);
    }
  } else {
    AddEvents(lines, line, categorizer, lanes);
  }
  for (Lane& lane : lanes) lane.Finish();
  return lanes;
}

Lane MakeInnermost(const Lines& lines, const Line& line, bool is_strip,
                   const Categorizer& categorizer) {
  const Duration shift = lines.Shift(line.rank);
  InnermostMaker maker(is_strip);
  DepthPlacer placer;
  VisitEvents(lines, line, [&](const Interval& event, Table table, uint32_t row) {
    const uint32_t depth = placer.Place(event);
    if (depth >= line.lanes) return;
    maker.Add({event.begin + shift, event.end + shift}, depth, categorizer.Of(table, row), table,
              Row{row});
  });
  return maker.Finish();
}

size_t RowsOf(const EventColumns& table, TrackId track) {
  const auto [first, last] = table.rows_of(track);
  return last - first;
}

}  // namespace

std::vector<Segment<DeviceClass>> BusyByClass(const DeviceAccount& account) {
  const IntervalSet compute =
      account.busy.Minus(account.exposed_communication).Minus(account.exposed_copy);
  std::vector<Segment<DeviceClass>> segments;
  const auto add = [&](const IntervalSet& set, DeviceClass value) {
    const size_t middle = segments.size();
    for (const Interval& interval : set.intervals()) segments.push_back({interval, value});
    std::inplace_merge(
        segments.begin(), segments.begin() + static_cast<std::ptrdiff_t>(middle), segments.end(),
        [](const auto& a, const auto& b) { return a.interval.begin < b.interval.begin; });
  };
  add(compute, DeviceClass::kCompute);
  add(account.exposed_communication, DeviceClass::kExposedCommunication);
  add(account.exposed_copy, DeviceClass::kExposedCopy);
  return segments;
}

LineContents MakeContents(const Lines& lines, uint32_t index, Form form,
                          const Categorizer& categorizer) {
  const Line& line = lines.lines()[index];
  LineContents contents;
  if (line.lanes == 0) {
    contents.series = MakeSeries(lines.TraceOf(index), lines.SeriesOf(line.rank)[line.series],
                                 lines.Shift(line.rank));
    contents.size_bytes = contents.series.size_bytes();
    return contents;
  }
  if (form == Form::kLanes || line.lanes == 1) {
    contents.lanes = MakeLanes(lines, line, categorizer);
  } else {
    contents.lanes.push_back(MakeInnermost(lines, line, form == Form::kStrip, categorizer));
  }
  for (const Lane& lane : contents.lanes) contents.size_bytes += lane.size_bytes();
  return contents;
}

size_t EffortFor(const Lines& lines, uint32_t index) {
  const Line& line = lines.lines()[index];
  const Trace& trace = lines.TraceOf(index);
  const RankAnalysis* const analysis = lines.ranks()[line.rank].analysis;
  size_t effort = line.lanes;
  switch (line.kind) {
    case LineKind::kRank:
      effort += analysis != nullptr ? analysis->steps.steps.size() : 0;
      break;
    case LineKind::kThread:
    case LineKind::kStream:
    case LineKind::kStreamRanges:
    case LineKind::kStreamSyncs:
      for (const auto& rows : line_events_internal::CursorsOf(trace, line.kind, line.track)) {
        effort += rows.end - rows.row;
      }
      break;
    case LineKind::kCopies:
      effort += trace.device_ops.size() + trace.tracks.size();
      break;
    case LineKind::kGpu:
    case LineKind::kIdle:
      if (const DeviceAccount* account = AccountFor(lines, line)) {
        effort += account->idle.size() + account->busy.intervals().size() +
                  account->exposed_communication.intervals().size() +
                  account->exposed_copy.intervals().size();
      }
      break;
    case LineKind::kMemory:
      effort += kEffortOfAValue * trace.instants.size();
      break;
    case LineKind::kCounter:
      effort += kEffortOfAValue * RowsOf(trace.counters, line.track);
      break;
  }
  return std::max(effort, kLeastEffort);
}

bool ShowTheSame(const Lines& before, const Lines& after, uint32_t index) {
  const Line& line = after.lines()[index];
  const bool analysed =
      line.kind == LineKind::kRank || line.kind == LineKind::kGpu || line.kind == LineKind::kIdle;
  return after.Shift(line.rank) == before.Shift(line.rank) &&
         (!analysed || after.ranks()[line.rank] == before.ranks()[line.rank]);
}

}  // namespace trainprof
