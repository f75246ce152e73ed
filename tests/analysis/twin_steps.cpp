// See twin_steps.h. Plain loops on purpose: each function is the sentence of the law that stands
// above it.
#include "tests/analysis/twin_steps.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "trace/build/missing_rows.h"

namespace trainprof {
namespace {

size_t DeviceOf(const Trace& trace, size_t op) {
  return Index(trace.tracks[Index(trace.device_ops.track[op])].device);
}

int64_t LengthOf(const Trace& trace, size_t op) {
  return (trace.device_ops.end(op) - trace.device_ops.begin[op]).ns;
}

int64_t WorkOf(const Trace& trace, size_t device) {
  int64_t work = 0;
  for (size_t op = 0; op < trace.device_ops.size(); ++op) {
    if (DeviceOf(trace, op) == device) work += LengthOf(trace, op);
  }
  return work;
}

// Did its device at least a hundredth of what the busiest did?
bool Counts(const Trace& trace, size_t op) {
  int64_t busiest = 0;
  for (size_t d = 0; d < trace.devices.size(); ++d) busiest = std::max(busiest, WorkOf(trace, d));
  return 100 * WorkOf(trace, DeviceOf(trace, op)) >= busiest;
}

// By begin, then by that of the call that asked for it, then by end.
std::tuple<int64_t, int64_t, int64_t> PlaceOf(const Trace& trace, size_t op) {
  const DeviceOpTable& ops = trace.device_ops;
  const Row call = ops.launch[op];
  const int64_t asked = call == kNoRow ? INT64_MAX : trace.api.begin[Index(call)].ns;
  return {ops.begin[op].ns, asked, ops.end(op).ns};
}

// The stream of the device with most kernel time; of several, the one that began first.
TrackId MainStream(const Trace& trace, size_t device) {
  TrackId main = kNoTrack;
  int64_t most = -1;
  int64_t began = INT64_MAX;
  for (uint32_t t = 0; t < trace.tracks.size(); ++t) {
    int64_t kernels = 0;
    int64_t first = INT64_MAX;
    bool any = false;
    for (size_t op = 0; op < trace.device_ops.size(); ++op) {
      if (trace.device_ops.track[op] != TrackId{t} || DeviceOf(trace, op) != device) continue;
      any = true;
      first = std::min(first, trace.device_ops.begin[op].ns);
      if (trace.device_ops.kind[op] == DeviceOpKind::kKernel) kernels += LengthOf(trace, op);
    }
    if (!any || kernels < most || (kernels == most && first >= began)) continue;
    most = kernels;
    began = first;
    main = TrackId{t};
  }
  return main;
}

// The step in whose span that moment is.
std::optional<size_t> StepAt(const std::vector<Interval>& spans, TraceTime at) {
  for (size_t s = 0; s < spans.size(); ++s) {
    if (spans[s].Contains(at)) return s;
  }
  return std::nullopt;
}

// When an operation was launched: its call's begin. Without a call its own begin, and no later than
// the next call of its stream; one that waited behind the first call of its device was launched
// before that call's step.
TraceTime LaunchOf(const Trace& trace, const std::vector<Interval>& spans, size_t op) {
  const DeviceOpTable& ops = trace.device_ops;
  if (ops.launch[op] != kNoRow) return trace.api.begin[Index(ops.launch[op])];
  size_t next = op + 1;
  while (next < ops.size() && ops.track[next] == ops.track[op] && ops.launch[next] == kNoRow) {
    ++next;
  }
  if (next == ops.size() || ops.track[next] != ops.track[op]) return ops.begin[op];
  const TraceTime call = trace.api.begin[Index(ops.launch[next])];
  if (ops.begin[op] < call) return ops.begin[op];
  for (size_t other = 0; other < ops.size(); ++other) {
    const bool is_before = ops.launch[other] != kNoRow && ops.begin[other] <= ops.begin[op] &&
                           DeviceOf(trace, other) == DeviceOf(trace, op);
    if (is_before) return call;
  }
  const auto step = StepAt(spans, call);
  return step ? spans[*step].begin - Duration{1} : call;
}

// More than one launch in four?
bool TooManyMissing(const Trace& trace, const std::vector<Row>& missing) {
  std::set<Row> shown;
  for (const Row launch : trace.device_ops.launch) {
    if (launch != kNoRow) shown.insert(launch);
  }
  return 4 * missing.size() > missing.size() + shown.size();
}

}  // namespace

std::vector<Interval> DeviceTimesByBruteForce(const Trace& trace,
                                              const std::vector<Interval>& spans) {
  const DeviceOpTable& ops = trace.device_ops;
  std::vector<size_t> counted;
  size_t with_call = 0;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (!Counts(trace, op)) continue;
    counted.push_back(op);
    if (ops.launch[op] != kNoRow) ++with_call;
  }
  if (counted.empty() || 2 * with_call < counted.size()) return spans;
  const std::vector<Row> missing = LaunchesWithoutRow(trace);
  std::vector<TraceTime> launch(ops.size());
  for (const size_t op : counted) launch[op] = LaunchOf(trace, spans, op);

  // The end of what that step put into a main stream.
  const auto main_end = [&](size_t step, size_t device) {
    std::optional<TraceTime> end;
    for (const size_t op : counted) {
      if (ops.track[op] != MainStream(trace, device) || StepAt(spans, launch[op]) != step) continue;
      end = std::max(end.value_or(ops.end(op)), ops.end(op));
    }
    return end;
  };
  // Beside the main stream, does it outlive what the next step put there?
  const auto outlives = [&](size_t op) {
    const size_t device = DeviceOf(trace, op);
    if (ops.track[op] == MainStream(trace, device)) return false;
    size_t next = 0;  // the first step that begins later; the operation's own where it is between
    while (next < spans.size() && spans[next].begin <= launch[op]) ++next;
    if (next == spans.size()) return false;
    const auto end = main_end(next, device);
    return end && ops.end(op) > *end;
  };
  // When all that was launched before a moment had ended, of what holds steps up.
  const auto done_by = [&](TraceTime moment) {
    TraceTime done{INT64_MIN};
    for (const size_t op : counted) {
      if (launch[op] < moment && !outlives(op)) done = std::max(done, ops.end(op));
    }
    return done;
  };
  const auto any_launch = [&](TraceTime from, TraceTime to) {
    return std::any_of(counted.begin(), counted.end(),
                       [&](size_t op) { return launch[op] >= from && launch[op] < to; });
  };
  // Has the last launch in it no operation?
  const auto end_is_unknown = [&](const Interval& span) {
    return std::any_of(missing.begin(), missing.end(), [&](Row call) {
      const TraceTime at = trace.api.begin[Index(call)];
      return span.Contains(at) && !any_launch(at, span.end);
    });
  };
  std::vector<Interval> times;
  for (size_t s = 0; s < spans.size(); ++s) {
    const Interval& span = spans[s];
    const bool follows = s > 0 && spans[s - 1].end == span.begin;
    TraceTime begin = follows ? times[s - 1].end : std::max(span.begin, done_by(span.begin));
    if (!any_launch(TraceTime{INT64_MIN}, span.begin) ||
        (follows && end_is_unknown(spans[s - 1]))) {
      // What was launched before is not recorded, or not when it ended: did something hold the first operation?
      std::optional<size_t> first;
      for (const size_t op : counted) {
        if (!span.Contains(launch[op])) continue;
        if (!first || PlaceOf(trace, op) < PlaceOf(trace, *first)) first = op;
      }
      if (first && ops.launch[*first] != kNoRow && ops.begin[*first] > begin &&
          trace.api.end(Index(ops.launch[*first])) + Microseconds(20) < ops.begin[*first]) {
        begin = ops.begin[*first];
        if (follows) times[s - 1].end = begin;
      }
    }
    TraceTime end = std::max(begin, done_by(span.end));
    if (!any_launch(span.begin, span.end)) end = std::max(end, span.end);
    if (end_is_unknown(span)) end = std::max(end, span.end);
    times.push_back({begin, end});
  }
  return times;
}

Interval DeviceExtentByBruteForce(const Trace& trace) {
  Interval extent{TraceTime{INT64_MAX}, TraceTime{INT64_MIN}};
  for (size_t op = 0; op < trace.device_ops.size(); ++op) {
    if (!Counts(trace, op)) continue;
    extent.begin = std::min(extent.begin, trace.device_ops.begin[op]);
    extent.end = std::max(extent.end, trace.device_ops.end(op));
  }
  const std::vector<Row> missing = LaunchesWithoutRow(trace);
  if (extent.begin >= extent.end || TooManyMissing(trace, missing)) return trace.extent;
  for (const Row call : missing) {
    const TraceTime at = trace.api.begin[Index(call)];
    extent.begin = std::min(extent.begin, at);
    bool is_last = true;
    for (size_t op = 0; op < trace.device_ops.size(); ++op) {
      const Row launch = trace.device_ops.launch[op];
      is_last &= launch == kNoRow || !Counts(trace, op) || trace.api.begin[Index(launch)] < at;
    }
    if (is_last) extent.end = trace.extent.end;
  }
  return extent;
}

std::vector<size_t> OpsInOrderByBruteForce(const Trace& trace, DeviceId device) {
  const DeviceOpTable& ops = trace.device_ops;
  std::vector<size_t> left;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (trace.tracks[Index(ops.track[op])].device == device) left.push_back(op);
  }
  const auto place = [&](size_t op) { return PlaceOf(trace, op); };
  std::vector<size_t> order;
  while (!left.empty()) {
    size_t first = 0;
    for (size_t i = 1; i < left.size(); ++i) {
      const bool is_next_of_stream = ops.track[left[i - 1]] != ops.track[left[i]];
      if (is_next_of_stream && place(left[i]) < place(left[first])) first = i;
    }
    order.push_back(left[first]);
    left.erase(left.begin() + static_cast<ptrdiff_t>(first));
  }
  return order;
}

}  // namespace trainprof
