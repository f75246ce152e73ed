#include "trace/build/missing_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// Of the calls that copy or set memory, as a share: 1 in kManyCopies without a row is no accident.
constexpr size_t kManyCopies = 4;
// As many launches as a device's queue holds (CUDA's has 1,024 places): so many may have been
// waiting when the recording ended.
constexpr size_t kQueueDepth = 1024;

// Ids count within a process; imports join by the id alone wherever they can.
using Id = std::pair<ProcessId, int64_t>;
Id IdOf(const Trace& trace, TrackId track, int64_t correlation) {
  const bool recorded = trace.source == SourceKind::kRecording;
  return {recorded ? trace.ProcessOf(track) : ProcessId{0}, correlation};
}

// A call that returns sooner has copied 0 bytes: others take 2 us at least (H200, and the traces of others).
constexpr Duration kLeastCopy = Microseconds(1);

// While a process captured a graph: what it launched then did not run.
std::map<ProcessId, IntervalSet> Captures(const Trace& trace) {
  std::vector<int8_t> meaning(trace.strings.size(), -1);
  const auto meaning_of = [&](StringId name) {
    int8_t& known = meaning[Index(name)];
    if (known < 0) {
      const std::string_view text = trace.Text(name);
      known = text.find("StreamBeginCapture") != std::string_view::npos ? 1
              : text.find("StreamEndCapture") != std::string_view::npos ? 2
                                                                        : 0;
    }
    return known;
  };
  std::map<ProcessId, std::vector<Interval>> found;
  const ApiTable& api = trace.api;
  constexpr uint32_t kNone = UINT32_MAX;
  uint32_t open = kNone;
  const auto close = [&](TraceTime end) {
    if (open == kNone) return;
    found[trace.ProcessOf(api.track[open])].push_back({api.begin[open], end});
    open = kNone;
  };
  for (uint32_t row = 0; row < api.size(); ++row) {
    CancelPoint(row);
    if (open != kNone && api.track[row] != api.track[open]) close(TraceTime{INT64_MAX});
    const int8_t what = meaning_of(api.name[row]);
    if (what == 1 && open == kNone) open = row;
    if (what == 2) close(api.end(row));
  }
  close(TraceTime{INT64_MAX});
  std::map<ProcessId, IntervalSet> captures;
  for (auto& [process, intervals] : found) captures[process] = IntervalSet::Union(intervals);
  return captures;
}

bool Failed(const Trace& trace, StringId key, uint32_t call) {
  if (key == kEmptyString) return false;
  const std::optional<ArgValue> result = trace.args.Find(trace.api.args[call], key);
  return result && result->type == ArgValue::Type::kInt && result->integer != 0;
}

// Calls that start work and that no operation was joined to, by id; of several of one id (a runtime
// call and the driver call in it) the first.
std::vector<std::pair<Id, uint32_t>> Unjoined(const Trace& trace) {
  const ApiTable& api = trace.api;
  std::vector<bool> joined(api.size(), false);
  for (const Row launch : trace.device_ops.launch) {
    if (launch != kNoRow) joined[Index(launch)] = true;
  }
  const StringId result = trace.strings.Find("result");
  std::vector<std::pair<Id, uint32_t>> calls;
  for (uint32_t row = 0; row < api.size(); ++row) {
    CancelPoint(row);
    if (joined[row] || !StartsWork(api.kind[row])) continue;
    if (api.correlation[row] == kNoCorrelation || Failed(trace, result, row)) continue;
    calls.emplace_back(IdOf(trace, api.track[row], api.correlation[row]), row);
  }
  std::sort(calls.begin(), calls.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  calls.erase(std::unique(calls.begin(), calls.end(), same), calls.end());
  return calls;
}

}  // namespace

std::vector<Row> UnknownDeviceRows(const Trace& trace) {
  std::vector<Row> rows;
  const std::vector<RangeKind>& kinds = trace.ranges.kind;
  const auto next = [&](size_t row) -> const RangeKind* {
    constexpr int kWanted = static_cast<int>(RangeKind::kDeviceRow);
    static_assert(sizeof(RangeKind) == 1);
    return row == kinds.size() ? nullptr
                               : static_cast<const RangeKind*>(
                                     memchr(kinds.data() + row, kWanted, kinds.size() - row));
  };
  for (const RangeKind* it = next(0); it != nullptr;) {
    const auto row = static_cast<size_t>(it - kinds.data());
    rows.push_back(Row{static_cast<uint32_t>(row)});
    it = next(row + 1);
  }
  return rows;
}

std::vector<Row> CallsOfUnknownRows(const Trace& trace, const std::vector<Row>& rows) {
  std::vector<Row> found(rows.size(), kNoRow);
  const StringId key = trace.strings.Find("correlation");
  if (rows.empty() || key == kEmptyString) return found;
  std::vector<std::pair<int64_t, size_t>> ids;  // with the place in `rows`
  for (size_t i = 0; i < rows.size(); ++i) {
    CancelPoint(i);
    const auto id = trace.args.Find(trace.ranges.args[Index(rows[i])], key);
    if (id && id->type == ArgValue::Type::kInt) ids.emplace_back(id->integer, i);
  }
  std::sort(ids.begin(), ids.end());
  for (uint32_t call = 0; call < trace.api.size() && !ids.empty(); ++call) {
    CancelPoint(call);
    auto it =
        std::lower_bound(ids.begin(), ids.end(), std::pair(trace.api.correlation[call], size_t{0}));
    for (; it != ids.end() && it->first == trace.api.correlation[call]; ++it) {
      Row& first = found[it->second];
      const bool is_first =
          first == kNoRow || trace.api.begin[call] < trace.api.begin[Index(first)];
      if (is_first) first = Row{call};
    }
  }
  return found;
}

namespace {

// As LaunchesWithoutRow, with all memsets.
std::vector<Row> AllWithoutRow(const Trace& trace) {
  std::vector<std::pair<Id, uint32_t>> calls = Unjoined(trace);
  if (calls.empty()) return {};
  std::vector<bool> has_row(calls.size(), false);
  // Whether there may be a call of that id: of most there is none.
  std::vector<bool> may_be(std::bit_ceil(16 * calls.size()), false);
  const auto place_of = [&](int64_t id) { return static_cast<size_t>(id) & (may_be.size() - 1); };
  for (const auto& [id, call] : calls) may_be[place_of(id.second)] = true;
  bool any_without_id = false;
  const auto answer = [&](TrackId track, int64_t correlation) {
    if (correlation == kNoCorrelation) {
      any_without_id = true;
      return;
    }
    if (!may_be[place_of(correlation)]) return;
    const std::pair<Id, uint32_t> key{IdOf(trace, track, correlation), 0};
    const auto it = std::lower_bound(calls.begin(), calls.end(), key);
    if (it != calls.end() && it->first == key.first) has_row[it - calls.begin()] = true;
  };
  const DeviceOpTable& ops = trace.device_ops;
  // Also of those that were joined: the driver call may be another one, in the runtime call that was joined.
  for (uint32_t row = 0; row < ops.size(); ++row) {
    CancelPoint(row);
    answer(ops.track[row], ops.correlation[row]);
  }
  const SyncTable& syncs = trace.syncs;
  for (uint32_t row = 0; row < syncs.size(); ++row) {  // of graphs that have nothing else
    CancelPoint(row);
    if (syncs.kind[row] == SyncKind::kHostFunction) {
      answer(syncs.track[row], syncs.correlation[row]);
    }
  }
  const StringId key = trace.strings.Find("correlation");
  for (const Row row : UnknownDeviceRows(trace)) {
    const auto id =
        key == kEmptyString ? std::nullopt : trace.args.Find(trace.ranges.args[Index(row)], key);
    const bool has_id = id && id->type == ArgValue::Type::kInt;
    answer(trace.ranges.track[Index(row)], has_id ? id->integer : kNoCorrelation);
  }
  if (std::find(has_row.begin(), has_row.end(), false) == has_row.end()) return {};
  const std::map<ProcessId, IntervalSet> captures = Captures(trace);
  std::vector<Row> missing;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (has_row[i]) continue;
    const uint32_t call = calls[i].second;
    const auto capture = captures.find(trace.ProcessOf(trace.api.track[call]));
    const TraceTime begin = trace.api.begin[call];
    if (capture != captures.end() &&
        capture->second.TotalWithin({begin, begin + Nanoseconds(1)}).ns > 0) {
      continue;
    }
    missing.push_back(Row{call});
  }
  const auto& launch = trace.device_ops.launch;
  const bool any_joined =
      std::any_of(launch.begin(), launch.end(), [](Row l) { return l != kNoRow; });
  if (any_without_id && !any_joined) return {};
  std::sort(missing.begin(), missing.end(), [&](Row a, Row b) {
    return std::pair(trace.api.begin[Index(a)], a) < std::pair(trace.api.begin[Index(b)], b);
  });
  return missing;
}

std::vector<Row> WithoutEmpty(const Trace& trace, std::vector<Row> missing) {
  const auto& kind = trace.api.kind;
  const auto& ops = trace.device_ops.kind;
  if (std::find(ops.begin(), ops.end(), DeviceOpKind::kMemset) != ops.end()) {
    std::erase_if(missing, [&](Row call) { return kind[Index(call)] == ApiKind::kMemset; });
  }
  std::erase_if(missing, [&](Row call) {
    return kind[Index(call)] == ApiKind::kCopy && trace.api.interval(call).Length() < kLeastCopy;
  });
  return missing;
}

}  // namespace

std::vector<Row> LaunchesWithoutRow(const Trace& trace) {
  return WithoutEmpty(trace, AllWithoutRow(trace));
}

std::string NamesOfUnknownDeviceRows(const Trace& trace) {
  constexpr size_t kMostNamed = 5;
  std::map<std::string_view, size_t> counts;
  for (const Row row : UnknownDeviceRows(trace)) {
    ++counts[trace.Text(trace.ranges.category[Index(row)])];
  }
  std::vector<std::pair<size_t, std::string_view>> sorted;
  for (const auto& [category, count] : counts) sorted.emplace_back(count, category);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kMostNamed); ++i) {
    const auto& [count, category] = sorted[i];
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", count,
                        category.empty() ? "without a category" : fmt::format("x {}", category));
  }
  if (sorted.size() > kMostNamed) text += ", ...";
  return text;
}

namespace {

// Launches of kernels behind the last that has a row, where the queue may have held them when the
// recording ended: no more than fit in, and nobody waited for them.
int64_t CountQueuedAtEnd(const Trace& trace, const std::vector<Row>& missing) {
  const ApiTable& api = trace.api;
  TraceTime last_answered{INT64_MIN};
  for (const Row launch : trace.device_ops.launch) {
    if (launch != kNoRow) last_answered = std::max(last_answered, api.begin[Index(launch)]);
  }
  TraceTime last_wait{INT64_MIN};
  for (uint32_t row = 0; row < api.size(); ++row) {
    if (api.kind[row] == ApiKind::kSync) last_wait = std::max(last_wait, api.begin[row]);
  }
  int64_t queued = 0;
  for (const Row call : missing) {
    const TraceTime begin = api.begin[Index(call)];
    if (!StartsKernels(api.kind[Index(call)]) || begin <= last_answered) continue;
    if (begin < last_wait) return 0;
    ++queued;
  }
  return queued <= static_cast<int64_t>(kQueueDepth) ? queued : 0;
}

void CountLaunches(Trace& trace) {
  using enum QualitySeverity;
  const std::vector<Row> all_missing = AllWithoutRow(trace);
  if (all_missing.empty()) return;
  const std::vector<Row> missing = WithoutEmpty(trace, all_missing);
  const auto is_kernel = [&](Row call) { return StartsKernels(trace.api.kind[Index(call)]); };
  const auto kernels = std::count_if(missing.begin(), missing.end(), is_kernel);
  const auto copies = static_cast<int64_t>(missing.size()) - kernels;
  if (trace.device_ops.size() == 0 && UnknownDeviceRows(trace).empty()) {
    trace.quality.Count(
        "launches_without_kernel", kDataLoss, static_cast<int64_t>(missing.size()),
        fmt::format("{} launches and copies, and no row of what a device did: its activity was not "
                    "recorded (torch.profiler: ProfilerActivity.CUDA), or is lost",
                    missing.size()));
    return;
  }
  const auto starts_copy = [](ApiKind kind) {
    return kind == ApiKind::kCopy || kind == ApiKind::kMemset;
  };
  const auto& kinds = trace.api.kind;
  const auto all_kernels = std::count_if(kinds.begin(), kinds.end(), StartsKernels);
  const auto all_copies = std::count_if(kinds.begin(), kinds.end(), starts_copy);
  const int64_t queued = CountQueuedAtEnd(trace, missing);
  trace.quality.Count("launches_without_kernel", kDataLoss, kernels - queued,
                      fmt::format("of {} launches, have no row of what the device did: rows are "
                                  "missing",
                                  all_kernels));
  trace.quality.Count("undelivered_at_end", kWarning, queued,
                      "launches at the end whose kernels had not run when the recording ended");
  const bool many = copies * static_cast<int64_t>(kManyCopies) >= all_copies;
  trace.quality.Count(
      "copies_without_row",
      copies == 0 ? kInfo
      : many      ? kDataLoss
                  : kWarning,
      static_cast<int64_t>(all_missing.size()) - kernels,
      fmt::format("of {} calls that copy or set memory, have no row of what the device did{}",
                  all_copies, copies > 0 ? ": rows are missing" : " (those of 0 bytes have none)"));
}

}  // namespace

void CountMissingRows(Trace& trace) {
  if (trace.source != SourceKind::kRecording) CountLaunches(trace);
  const auto unknown = static_cast<int64_t>(UnknownDeviceRows(trace).size());
  if (unknown == 0) return;
  trace.quality.Count(
      "unknown_device_rows", QualitySeverity::kDataLoss, unknown,
      fmt::format("device rows of kinds that trainprof does not know ({}): what the device did "
                  "then is in no figure",
                  NamesOfUnknownDeviceRows(trace)));
}

}  // namespace trainprof
