#include "analysis/steps/device_time.h"

#include <algorithm>
#include <optional>

#include "analysis/steps/device_rows.h"
#include "trace/base/cancel.h"
#include "trace/build/missing_rows.h"

namespace trainprof {
namespace {

constexpr TraceTime kNever{INT64_MIN};
constexpr uint32_t kNone = UINT32_MAX;

// Where something was launched: in step i (2 i + 1), before it and behind the one before (2 i), or
// behind the last (2 n).
using Place = uint32_t;

struct Launches {
  TraceTime done = kNever;     // when the last of them ends
  TraceTime last = kNever;     // when the last call began
  TraceTime missing = kNever;  // the same of calls without a row
  uint32_t first = kNone;      // row of device_ops: the one that began first
};

// A row of a kind that nobody here knows: work all the same.
struct Unknown {
  TrackId stream = kNoTrack;
  Interval interval;
  Row call = kNoRow;
};

class DeviceTimes {
 public:
  DeviceTimes(const Trace& trace, DeviceRows& rows, const std::vector<Step>& steps);

  bool LaunchesAreKnown() const { return 2 * with_call_ >= counted_ && counted_ > 0; }
  // Of those without a row nobody knows how long they took.
  bool RowsAreMissing() const;
  std::vector<Launches> LaunchesByPlace();
  Interval Extent() const;

 private:
  void FindUnknown();
  void FindStreams();
  Place PlaceOf(TraceTime launched);
  void PlaceStream(TrackId stream, std::vector<Launches>& all);
  void FindMainDone();
  bool Outlives(TrackId stream, Place place, TraceTime end) const;
  size_t DeviceOf(TrackId stream) const { return Index(trace_.tracks[Index(stream)].device); }
  TraceTime& MainDone(size_t step, size_t device) {
    return main_done_[step * trace_.devices.size() + device];
  }

  const Trace& trace_;
  const DeviceOpTable& ops_;
  const std::vector<Step>& steps_;
  std::vector<Unknown> unknown_;        // of devices that train
  std::vector<TrackId> streams_;        // of devices that train
  std::vector<TrackId> main_stream_;    // by device; kNoTrack: of those that do not
  std::vector<TraceTime> first_known_;  // by device: begin of its first operation with a call
  std::span<const Row> missing_;        // calls
  size_t counted_ = 0;
  size_t with_call_ = 0;
  std::vector<Place> places_;          // by row of device_ops
  std::vector<Place> unknown_places_;  // by unknown_
  std::vector<TraceTime> main_done_;   // by step and device: the end of its work in the main stream
  size_t near_ = 0;                    // the step of the last look-up
};

DeviceTimes::DeviceTimes(const Trace& trace, DeviceRows& rows, const std::vector<Step>& steps)
    : trace_(trace), ops_(trace.device_ops), steps_(steps) {
  FindUnknown();
  FindStreams();
  if (counted_ > 0) missing_ = rows.missing();
}

void DeviceTimes::FindUnknown() {
  const std::vector<Row> rows = UnknownDeviceRows(trace_);
  const std::vector<Row> calls = CallsOfUnknownRows(trace_, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const TrackId stream = trace_.ranges.track[Index(rows[i])];
    if (DeviceOf(stream) >= trace_.devices.size()) continue;
    unknown_.push_back({stream, trace_.ranges.interval(rows[i]), calls[i]});
  }
}

void DeviceTimes::FindStreams() {
  std::vector<Duration> work(trace_.devices.size());
  std::vector<Duration> kernels(trace_.tracks.size());
  for (uint32_t track = 0; track < trace_.tracks.size(); ++track) {
    const size_t device = DeviceOf(TrackId{track});
    const auto [first, last] = ops_.rows_of(TrackId{track});
    if (first == last || device >= work.size()) continue;
    for (uint32_t row = first; row < last; ++row) {
      CancelPoint(row);
      const Duration length = ops_.interval(Row{row}).Length();
      work[device] += length;
      if (ops_.kind[row] == DeviceOpKind::kKernel) kernels[track] += length;
    }
  }
  for (const Unknown& row : unknown_) {
    work[DeviceOf(row.stream)] += row.interval.Length();
    kernels[Index(row.stream)] += row.interval.Length();
  }
  const auto busiest = work.empty() ? Duration{} : *std::max_element(work.begin(), work.end());
  const auto trains = [&](TrackId stream) {
    const size_t device = DeviceOf(stream);
    return device < work.size() &&
           static_cast<double>(work[device].ns) >= kStrayShare * static_cast<double>(busiest.ns);
  };
  std::erase_if(unknown_, [&](const Unknown& row) { return !trains(row.stream); });
  counted_ = unknown_.size();
  for (const Unknown& row : unknown_) with_call_ += row.call != kNoRow ? 1 : 0;
  main_stream_.assign(work.size(), kNoTrack);
  first_known_.assign(work.size(), TraceTime{INT64_MAX});
  for (uint32_t track = 0; track < trace_.tracks.size(); ++track) {
    const auto [first, last] = ops_.rows_of(TrackId{track});
    if (!trains(TrackId{track}) || (first == last && kernels[track].ns == 0)) continue;
    streams_.push_back(TrackId{track});
    TrackId& main = main_stream_[DeviceOf(TrackId{track})];
    const auto place = [&](uint32_t of) {
      const auto rows = ops_.rows_of(TrackId{of});
      const TraceTime begin = rows.first < rows.second ? ops_.begin[rows.first] : TraceTime{};
      return std::pair(-kernels[of].ns, begin);
    };
    if (main == kNoTrack || place(track) < place(Index(main))) main = TrackId{track};
    counted_ += last - first;
    TraceTime& first_known = first_known_[DeviceOf(TrackId{track})];
    for (uint32_t row = first; row < last; ++row) {
      if (ops_.launch[row] == kNoRow) continue;
      ++with_call_;
      first_known = std::min(first_known, ops_.begin[row]);
    }
  }
}

bool DeviceTimes::RowsAreMissing() const {
  constexpr size_t kMostMissing = 4;  // one in so many
  if (missing_.empty()) return false;
  std::vector<bool> shown(trace_.api.size(), false);
  for (const Row launch : ops_.launch) {
    if (launch != kNoRow) shown[Index(launch)] = true;
  }
  const auto known = static_cast<size_t>(std::count(shown.begin(), shown.end(), true));
  return missing_.size() * kMostMissing > missing_.size() + known + unknown_.size();
}

Place DeviceTimes::PlaceOf(TraceTime launched) {
  // Most often it is the step of the operation before.
  if (near_ >= steps_.size() || launched < steps_[near_].span.begin ||
      (near_ + 1 < steps_.size() && launched >= steps_[near_ + 1].span.begin)) {
    const auto behind = std::partition_point(
        steps_.begin(), steps_.end(), [&](const Step& s) { return s.span.begin <= launched; });
    if (behind == steps_.begin()) return 0;
    near_ = static_cast<size_t>(behind - steps_.begin()) - 1;
  }
  const auto step = static_cast<Place>(near_);
  return launched < steps_[near_].span.end ? 2 * step + 1 : 2 * step + 2;
}

// Backwards: what has no call looks at the next one that has.
void DeviceTimes::PlaceStream(TrackId stream, std::vector<Launches>& all) {
  const auto [first, last] = ops_.rows_of(stream);
  TraceTime next{INT64_MAX};
  for (uint32_t row = last; row-- > first;) {
    CancelPoint(row);
    const Row call = ops_.launch[row];
    TraceTime launched = std::min(ops_.begin[row], next);
    if (call != kNoRow) {
      launched = next = trace_.api.begin[Index(call)];
    } else if (launched == next && ops_.begin[row] < first_known_[DeviceOf(stream)]) {
      const Place place = PlaceOf(next);
      if (place % 2 == 1) launched = steps_[place / 2].span.begin - Nanoseconds(1);
    }
    places_[row] = PlaceOf(launched);
    Launches& here = all[places_[row]];
    here.last = std::max(here.last, launched);
    const bool is_first =
        here.first == kNone || ops_.begin[row] < ops_.begin[here.first] ||
        (ops_.begin[row] == ops_.begin[here.first] && AskedForBefore(trace_, row, here.first));
    if (is_first) here.first = row;
  }
}

void DeviceTimes::FindMainDone() {
  main_done_.assign(steps_.size() * trace_.devices.size(), kNever);
  const auto add = [&](TrackId stream, Place place, TraceTime end) {
    const size_t device = DeviceOf(stream);
    if (stream != main_stream_[device] || place % 2 == 0) return;
    TraceTime& done = MainDone(place / 2, device);
    done = std::max(done, end);
  };
  for (const TrackId stream : streams_) {
    const auto [first, last] = ops_.rows_of(stream);
    for (uint32_t row = first; row < last; ++row) add(stream, places_[row], ops_.end(row));
  }
  for (size_t i = 0; i < unknown_.size(); ++i) {
    add(unknown_[i].stream, unknown_places_[i], unknown_[i].interval.end);
  }
}

bool DeviceTimes::Outlives(TrackId stream, Place place, TraceTime end) const {
  const size_t next = (place + 1) / 2;  // step
  const size_t device = DeviceOf(stream);
  if (stream == main_stream_[device] || next >= steps_.size()) return false;
  const TraceTime done = main_done_[next * trace_.devices.size() + device];
  return done != kNever && end > done;
}

std::vector<Launches> DeviceTimes::LaunchesByPlace() {
  std::vector<Launches> all(2 * steps_.size() + 1);
  places_.resize(ops_.size());
  for (const TrackId stream : streams_) PlaceStream(stream, all);
  for (const Unknown& row : unknown_) {
    const TraceTime launched =
        row.call == kNoRow ? row.interval.begin : trace_.api.begin[Index(row.call)];
    unknown_places_.push_back(PlaceOf(launched));
    Launches& here = all[unknown_places_.back()];
    here.last = std::max(here.last, launched);
  }
  for (const Row call : missing_) {
    const TraceTime launched = trace_.api.begin[Index(call)];
    Launches& here = all[PlaceOf(launched)];
    here.missing = std::max(here.missing, launched);
  }
  FindMainDone();
  const auto add = [&](TrackId stream, Place place, TraceTime end) {
    if (!Outlives(stream, place, end)) all[place].done = std::max(all[place].done, end);
  };
  for (const TrackId stream : streams_) {
    const auto [first, last] = ops_.rows_of(stream);
    for (uint32_t row = first; row < last; ++row) {
      CancelPoint(row);
      add(stream, places_[row], ops_.end(row));
    }
  }
  for (size_t i = 0; i < unknown_.size(); ++i) {
    add(unknown_[i].stream, unknown_places_[i], unknown_[i].interval.end);
  }
  return all;
}

Interval DeviceTimes::Extent() const {
  Interval extent{TraceTime{INT64_MAX}, kNever};
  TraceTime launched = kNever;  // the last that has a row
  const auto add = [&](const Interval& interval, Row call) {
    extent = {std::min(extent.begin, interval.begin), std::max(extent.end, interval.end)};
    if (call != kNoRow) launched = std::max(launched, trace_.api.begin[Index(call)]);
  };
  for (const TrackId stream : streams_) {
    const auto [first, last] = ops_.rows_of(stream);
    for (uint32_t row = first; row < last; ++row) add(ops_.interval(Row{row}), ops_.launch[row]);
  }
  for (const Unknown& row : unknown_) add(row.interval, row.call);
  if (extent.end <= extent.begin) return {};
  for (const Row call : missing_) {
    extent.begin = std::min(extent.begin, trace_.api.begin[Index(call)]);
    if (trace_.api.begin[Index(call)] > launched) extent.end = trace_.extent.end;
  }
  return extent;
}

// The end of the last gap that begins before `at`; kNever: there is none.
TraceTime ResumedBefore(const IntervalSet& gaps, TraceTime at) {
  const auto& all = gaps.intervals();
  const auto behind = std::partition_point(all.begin(), all.end(),
                                           [&](const Interval& gap) { return gap.begin < at; });
  return behind == all.begin() ? kNever : (behind - 1)->end;
}

// When the first of them began, if it had waited by then; kNever: it had not, or nobody knows.
TraceTime WaitingFirst(const Trace& trace, const Launches& launches) {
  if (launches.first == kNone) return kNever;
  const Row call = trace.device_ops.launch[launches.first];
  const TraceTime begin = trace.device_ops.begin[launches.first];
  if (call == kNoRow || trace.api.end(Index(call)) + kLaunchLatency >= begin) return kNever;
  return begin;
}

// How long a step was on the devices before the first of its operations began; nothing where it
// launched none.
std::optional<Duration> LeadOf(const Trace& trace, const Step& step, const Launches& own) {
  if (own.first == kNone) return std::nullopt;
  return std::max(Duration{}, trace.device_ops.begin[own.first] - step.device.begin);
}

// Of steps that the host's clock begins, on devices that had nothing to do: whether they begin as
// late before their operations as those that begin where another one ended. A little: `margin`.
void SetIsKnownByLeads(const Trace& trace, const std::vector<Launches>& launches, Duration margin,
                       std::vector<Step>& steps) {
  const auto lead = [&](size_t i) { return LeadOf(trace, steps[i], launches[2 * i + 1]); };
  std::optional<Duration> least;
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i - 1].span.end != steps[i].span.begin || !steps[i - 1].end_is_known) continue;
    const std::optional<Duration> length = lead(i);
    if (length && (!least || *length < *least)) least = length;
  }
  if (!least) return;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool follows = i > 0 && steps[i - 1].span.end == steps[i].span.begin;
    if (follows || steps[i].device.begin != steps[i].span.begin) continue;
    const std::optional<Duration> length = lead(i);
    if (length && *length + margin < *least) steps[i].begin_is_known = false;
  }
}

}  // namespace

bool SetDeviceTimes(const Trace& trace, DeviceRows& rows, std::vector<Step>& steps) {
  for (Step& step : steps) step.device = step.span;
  DeviceTimes times(trace, rows, steps);
  if (!times.LaunchesAreKnown()) return false;
  const std::vector<Launches> launches = times.LaunchesByPlace();
  const IntervalSet gaps = DeviceGaps(trace);
  TraceTime done = kNever;      // of all that was launched until here
  TraceTime launched = kNever;  // the last of it
  const auto take = [&](const Launches& some) {
    done = std::max(done, some.done);
    launched = std::max(launched, some.last);
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    const Launches& own = launches[2 * i + 1];
    take(launches[2 * i]);
    Step* const before =
        i > 0 && steps[i - 1].span.end == step.span.begin ? &steps[i - 1] : nullptr;
    TraceTime begin = before != nullptr ? before->device.end : std::max(step.span.begin, done);
    const bool before_is_known = launched != kNever &&
                                 launched >= ResumedBefore(gaps, step.span.begin) &&
                                 (before == nullptr || before->end_is_known);
    const TraceTime first = WaitingFirst(trace, own);
    if (!before_is_known && first > begin) {
      begin = first;
      if (before != nullptr) before->device.end = begin;
    }
    take(own);
    step.begin_is_known = before_is_known || first >= begin;
    step.end_is_known = own.missing <= own.last;
    step.device = {begin, std::max(begin, done)};
    const bool ends_early = i + 1 == steps.size() && trace.quality.CountOf(kTruncatedInput) > 0;
    const TraceTime resumed = ResumedBefore(gaps, step.span.end);
    if (launched < std::max(step.span.begin, resumed) || !step.end_is_known || ends_early) {
      step.device.end = std::max(step.device.end, step.span.end);
    }
  }
  if (steps.empty()) return true;
  const Duration all = steps.back().device.end - steps.front().device.begin;
  const Duration negligible{static_cast<int64_t>(kNegligible * static_cast<double>(all.ns))};
  for (Step& step : steps) {
    step.begin_is_known |= step.device.end - step.span.end <= negligible;
  }
  SetIsKnownByLeads(trace, launches, negligible, steps);
  return true;
}

void SetUnknownTimes(Duration work, const Steps& known, Steps& steps) {
  std::vector<Step>& all = steps.steps;
  auto next = known.steps.begin();  // known, not before the step at hand
  for (size_t i = 0; i < all.size(); ++i) {
    while (next != known.steps.end() && next->span.begin < all[i].span.begin) ++next;
    if (next != known.steps.end() && next->span == all[i].span) continue;
    Interval& device = all[i].device;
    const bool follows = i > 0 && all[i - 1].span.end == all[i].span.begin;
    if (follows) device.begin = all[i - 1].device.end;
    device.end = std::max(device.end, device.begin + work);
    if (next == known.steps.end()) continue;
    device.end = std::min(device.end, next->device.begin);
    device.begin = std::min(device.begin, device.end);
    if (follows) continue;
    const Duration least = std::max(work, all[i].span.Length());
    device.begin = std::max(device.begin, device.end - least);
  }
  steps.Cover();
}

Interval DeviceExtent(const Trace& trace, DeviceRows& rows) {
  const std::vector<Step> no_steps;
  const DeviceTimes times(trace, rows, no_steps);
  const Interval extent = times.Extent();
  if (extent.Empty()) return {};
  const bool any_may_be_missing =
      trace.quality.CountOf(kTruncatedInput) > 0 || times.RowsAreMissing();
  return any_may_be_missing ? trace.extent : extent;
}

}  // namespace trainprof
