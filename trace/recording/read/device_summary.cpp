// What DeviceDecoder can say only when it has all rows of a segment: who waited for which event,
// how memory grew, what is missing.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "trace/recording/read/cupti_names.h"
#include "trace/recording/read/device_decoder.h"
#include "trace/recording/wire/facts.h"

namespace trainprof::recording {
namespace {

constexpr int64_t kTimesHostFunctions = 130100;  // CUPTI's own version

int64_t NumberIn(const std::string& text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::max<int64_t>(number, 0);
}

// Facts that count losses, and what reports call them.
struct Loss {
  const char* fact;
  const char* kind;
  QualitySeverity severity;
  const char* detail;
};
constexpr Loss kLosses[] = {
    {fact::kCuptiDropped, "dropped_device_records", QualitySeverity::kDataLoss,
     "records that CUPTI dropped: its buffers were full"},
    {fact::kCuptiUntimed, "zero_start_records", QualitySeverity::kDataLoss,
     "device records without a start time; left out"},
    {fact::kCuptiInFlight, "in_flight_at_exit", QualitySeverity::kInfo,
     "operations of devices that were under way when the program ended, without waiting for them; left "
     "out"},
    {fact::kCuptiUnderWay, "calls_at_exit", QualitySeverity::kInfo,
     "calls that had not returned when the program ended; they are shown up to there"},
    {fact::kCuptiUnreadableBytes, "unreadable_device_bytes", QualitySeverity::kDataLoss,
     "bytes of CUPTI's buffers that are no records"},
    {fact::kCuptiOverwrittenBytes, "overwritten_device_bytes", QualitySeverity::kDataLoss,
     "bytes of device records for which no buffer was free"},
    {fact::kCuptiRefusedBuffers, "refused_buffers", QualitySeverity::kWarning,
     "buffers that CUPTI asked for and did not get"},
    {fact::kCuptiUnnamedKernels, "lost_name", QualitySeverity::kWarning,
     "kernels whose names CUPTI had not delivered when the process ended"},
    {fact::kCuptiNamelessKernels, "kernels_without_name", QualitySeverity::kWarning,
     "kernels that CUPTI gave no name"},
    {fact::kCuptiStacksSkipped, "stacks_skipped", QualitySeverity::kInfo,
     "calls without a stack: taking one would have cost the program more than 1 % of its time"},
    {fact::kCuptiStacksScanned, "stacks_scanned", QualitySeverity::kInfo,
     "stacks of calls whose frames in CUDA's libraries cannot be unwound: their lines were found on "
     "the stack, and one may be an earlier call's"},
    {fact::kCuptiForks, "forked_after_cuda", QualitySeverity::kInfo,
     "processes forked after CUDA was set up; GPU recording is off in them"},
    {fact::kCuptiReorderedBuffers, "reordered_buffers", QualitySeverity::kInfo,
     "buffers that CUPTI delivered after younger ones; their records were put in order"},
    {fact::kCuptiTaken, "cupti_taken_over", QualitySeverity::kWarning,
     "times another profiler in the process took CUPTI over: what the GPU did meanwhile, and up to a "
     "second before, is not recorded"},
    {fact::kCuptiMisdated, "misdated_records", QualitySeverity::kDataLoss,
     "records whose times are not of this run; left out"},
    {fact::kCuptiRepeatedCallbacks, "repeated_callbacks", QualitySeverity::kInfo,
     "callbacks that CUPTI gave once more; each call is taken once"},
};

}  // namespace

std::string DeviceDecoder::Fact(const char* name) const {
  const auto it = scan_.facts.find(name);
  return it == scan_.facts.end() ? std::string() : it->second;
}

// It stands in parentheses behind CUDA's.
int64_t DeviceDecoder::CuptiVersion() const {
  const std::string fact = Fact(fact::kCuptiVersion);
  const size_t open = fact.find('(');
  return open == std::string::npos ? 0 : std::atoll(fact.c_str() + open + 1);
}

// The last one before the wait, of correlation 0 where there is none. An event may be of another
// device than the stream that waits for it: before 12.8, which pairs them, its number tells where only
// one context has it.
DeviceDecoder::EventRecord DeviceDecoder::RecordWaitedFor(const DeviceRow& wait) const {
  const auto paired = event_of_sync_.find(wait.sync.sync_id);
  if (wait.sync.sync_id != 0 && paired != event_of_sync_.end()) return paired->second;
  const uint32_t event = wait.sync.event;
  auto records = events_.find({event, wait.context});
  if (records == events_.end()) {
    records = events_.lower_bound({event, 0});
    const auto is_it = [&](auto entry) {
      return entry != events_.end() && entry->first.first == event;
    };
    if (!is_it(records) || is_it(std::next(records))) return {};
  }
  const auto after = records->second.upper_bound(wait.correlation);
  return after == records->second.begin() ? EventRecord{} : std::prev(after)->second;
}

void DeviceDecoder::AddSync(const DeviceRow& row) {
  const SyncKind kind =
      row.type == DeviceRowType::kEvent ? SyncKind::kEventRecord : SyncKindOf(row.detail);
  int64_t waited_event = kNoCorrelation;
  EventRecord waited;
  if (kind == SyncKind::kEvent || kind == SyncKind::kStreamWaits) {
    waited_event = row.sync.event;
    waited = RecordWaitedFor(row);
  }
  const bool known = waited.correlation != 0;
  const bool of_host = kind == SyncKind::kHostFunction;
  const TrackId track = Stream(row.device, row.context, row.stream);
  builder_.AddRow(builder_.trace().syncs, EventOf(row, builder_.Intern(Name(kind)), track),
                  kEmptyString, CorrelationOf(row.correlation), kind, int64_t{row.context},
                  waited_event, known ? int64_t{waited.stream} : kNoCorrelation,
                  known ? builder_.device(DeviceOf(waited.device)).id : kNoCorrelation,
                  CorrelationOf(waited.correlation),
                  of_host ? int64_t{row.sync.thread} : kNoCorrelation);
}

// As torch's profiler shows its allocator: one instant each, with the total so far.
void DeviceDecoder::AddMemory(const DeviceRow& row) {
  Allocation allocation;
  allocation.kind = MemoryKindOf(row.source_kind);
  const bool on_host =
      allocation.kind == MemoryKind::kPageable || allocation.kind == MemoryKind::kPinned;
  const auto bytes = static_cast<int64_t>(std::min<uint64_t>(row.memory.bytes, INT64_MAX / 4));
  const bool release = row.detail == kReleaseOperation;
  allocation.bytes = release ? -bytes : bytes;
  int64_t& total = memory_total_[{row.device, on_host}];
  if (row.memory.pool_bytes == 0) {
    total = std::clamp<int64_t>(total + allocation.bytes, 0, INT64_MAX / 2);
  } else {
    allocation.pool_bytes = static_cast<int64_t>(row.memory.pool_bytes);
    allocation.pool_used_bytes = static_cast<int64_t>(row.memory.pool_used_bytes);
  }
  const MemoryTotal which = on_host ? MemoryTotal::kHost : MemoryTotal::kReserved;
  allocation.totals[static_cast<size_t>(which)] = total;
  allocation.address = static_cast<int64_t>(row.memory.address);
  if (!on_host) allocation.device_id = builder_.device(DeviceOf(row.device)).id;
  allocation.source = StringId{row.name};
  const auto thread = allocating_thread_.find(row.correlation);
  const TrackId track = thread != allocating_thread_.end()
                            ? builder_.FindOrAddThread(process_, int64_t{thread->second})
                            : Stream(row.device, row.context, row.stream);
  Event event = EventOf(row, builder_.Intern("[memory]"), track);
  event.category = builder_.Intern("cpu_instant_event");
  builder_.AddInstant(event, 't', builder_.AddAllocation(allocation));
}

void DeviceDecoder::Finish(TraceTime end) {
  for (const DeviceRow& row : syncs_) AddSync(row);
  std::stable_sort(memory_.begin(), memory_.end(),
                   [](const DeviceRow& a, const DeviceRow& b) { return a.begin_ns < b.begin_ns; });
  for (const DeviceRow& row : memory_) AddMemory(row);
  AddFacts();
  CountLosses();
  CountOddities();
  CountFailedCalls();
  CountMissingKernels();
  CountUntimedHostFunctions();
  // Of a process that runs, or was killed, calls and device work come with a delay, and apart: what
  // both tell ends with the one that lags.
  if (any() && !info_.clean_exit) AddGap(At(std::min(last_device_ns_, last_call_ns_)), end);
}

void DeviceDecoder::AddGap(TraceTime begin, TraceTime end) {
  if (end <= begin) return;
  builder_.AddGap({.interval = {begin, end},
                   .process = process_,
                   .reason = builder_.Intern("GPU records not delivered"),
                   .kind = GapKind::kDevice});
}

// Of several processes the one that used a device speaks for all.
void DeviceDecoder::AddFacts() {
  auto& environment = builder_.trace().environment;
  for (const auto& [name, value] : scan_.facts) {
    if (name.starts_with(fact::kPythonCell)) continue;  // said by the frames' own files
    const auto known = std::find_if(environment.begin(), environment.end(),
                                    [&key = name](const auto& fact) { return fact.first == key; });
    if (known == environment.end()) {
      environment.emplace_back(name, value);
    } else if (any()) {
      known->second = value;
    }
  }
}

void DeviceDecoder::CountLosses() {
  for (const Loss& loss : kLosses) {
    builder_.quality().Count(loss.kind, loss.severity, NumberIn(Fact(loss.fact)), loss.detail);
  }
  const auto count = [&](const char* kind, uint64_t records, const char* detail) {
    builder_.quality().Count(kind, QualitySeverity::kDataLoss, static_cast<int64_t>(records),
                             detail);
  };
  count("zero_start_records", zero_start_, "device records without a start time; left out");
  count("reversed_records", reversed_, "device records that end before they begin; left out");
  count("straddling_records", straddling_,
        "device records that begin before a pause of the recording and end behind it, where CUPTI "
        "noticed their end; left out");
}

// What a reader of the figures wants to know, although nothing was lost by it.
void DeviceDecoder::CountOddities() {
  using enum QualitySeverity;
  constexpr int64_t kSlowSetupMs = 100;
  constexpr int64_t kLateMs = 3000;  // a flush a second is the rule
  Quality& quality = builder_.quality();
  const std::string state = Fact(fact::kCuptiState);
  if (any() && !state.empty() && state != fact::kGpuRecording) {
    quality.Count("gpu_recording_ended", kWarning, 1, state);
  }
  if (const std::string refused = Fact(fact::kCuptiRefused); !refused.empty()) {
    quality.Count("cupti_calls_refused", kWarning,
                  1 + std::count(refused.begin(), refused.end(), ';'), refused);
  }
  if (const std::string kept = Fact(fact::kCuptiKeptOn); !kept.empty()) {
    quality.Count(
        "kernels_kept_on", kInfo, 1,
        "between its samples the recording costs the program as much as in them: " + kept);
  }
  if (const std::string hw_trace = Fact(fact::kCuptiHwTrace); !hw_trace.empty()) {
    quality.Count("cupti_hw_trace", kInfo, 1, hw_trace);
  }
  if (const int64_t ms = NumberIn(Fact(fact::kCuptiSetupUs)) / 1000; ms >= kSlowSetupMs) {
    quality.Count(
        "slow_cupti_setup", kInfo, 1,
        fmt::format("CUPTI set-up took {} ms; the step that it fell into is set aside", ms));
  }
  if (const int64_t ms = NumberIn(Fact(fact::kCuptiLargestUndeliveredMs)); ms >= kLateMs) {
    quality.Count("late_delivery", kInfo, 1,
                  fmt::format("CUPTI held records back for up to {:.1f} s; a kill loses as much",
                              static_cast<double>(ms) / 1e3));
  }
  const bool has_sync_record = std::any_of(syncs_.begin(), syncs_.end(), [](const DeviceRow& row) {
    return row.type == DeviceRowType::kSync && !IsHostFunction(row);
  });
  if (sync_calls_ > 0 && !has_sync_record && device_rows_ > 0) {
    quality.Count(
        "no_sync_records", kInfo, static_cast<int64_t>(sync_calls_),
        "synchronizing calls, and no synchronization record of CUPTI's (13.0.0 has none); "
        "the calls tell how long the host waited");
  }
}

// Calls of the program's that did not succeed: an allocation that failed costs time even where a
// framework's allocator tries again.
void DeviceDecoder::CountFailedCalls() {
  constexpr size_t kMostNamed = 3;
  std::vector<std::pair<size_t, std::string>> failed;
  size_t total = 0;
  for (const auto& [what, count] : failures_) {
    const auto& [call, result] = what;
    const std::string_view error = ErrorName(result);
    failed.emplace_back(
        count, fmt::format("{} x {} gives error {}{}", count, builder_.trace().Text(call), result,
                           error.empty() ? "" : fmt::format(" ({})", error)));
    total += count;
  }
  std::stable_sort(failed.begin(), failed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string detail;
  for (size_t i = 0; i < std::min(failed.size(), kMostNamed); ++i) {
    detail += (i == 0 ? "" : "; ") + failed[i].second;
  }
  if (failed.size() > kMostNamed) detail += "; ...";
  builder_.quality().Count("failed_calls", QualitySeverity::kInfo, static_cast<int64_t>(total),
                           detail);
}

std::string DeviceDecoder::CauseOfMissingKernels() const {
  const std::string state = Fact(fact::kCuptiState);
  if (!state.empty() && state != fact::kGpuRecording) return state;
  if (const int64_t dropped = NumberIn(Fact(fact::kCuptiDropped)); dropped > 0) {
    return fmt::format("CUPTI dropped {} records", dropped);
  }
  const int64_t untimed = NumberIn(Fact(fact::kCuptiUntimed)) + static_cast<int64_t>(zero_start_);
  if (untimed > 0) return fmt::format("CUPTI gave {} records no times", untimed);
  if (!info_.clean_exit) return "the process ended, or still runs, before CUPTI delivered them";
  return "the cause is not recorded";
}

// Takes out those that were made while a stream was being captured, whose work is a graph's. Ids count
// up through all threads.
int64_t DeviceDecoder::TakeCaptured(std::vector<Launch>& launches) const {
  int64_t open = 0;
  int64_t least = 0;
  for (const auto& [id, edge] : capture_edges_) least = std::min(least, open += edge);
  open = -least;  // begun before calls were recorded
  std::sort(launches.begin(), launches.end(),
            [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
  auto edge = capture_edges_.begin();
  const auto is_captured = [&](const Launch& launch) {
    for (; edge != capture_edges_.end() && edge->first < launch.correlation; ++edge) {
      open += edge->second;
    }
    return open > 0;
  };
  const size_t before = launches.size();
  launches.erase(std::remove_if(launches.begin(), launches.end(), is_captured), launches.end());
  return static_cast<int64_t>(before - launches.size());
}

// Of calls that start work on a device, those that did not fail; in the order of the rows.
std::vector<DeviceDecoder::Launch> DeviceDecoder::Launches() const {
  const ApiTable& api = builder_.trace().api;
  std::vector<Launch> launches;
  auto failed = failed_launches_.begin();
  for (auto row = first_call_; row < api.size(); ++row) {
    if (!StartsKernels(api.kind[row]) || api.correlation[row] == kNoCorrelation) continue;
    failed = std::lower_bound(failed, failed_launches_.end(), row);
    if (failed != failed_launches_.end() && *failed == row) continue;
    launches.push_back({api.begin[row], static_cast<uint32_t>(api.correlation[row]), api.track[row],
                        api.kind[row] == ApiKind::kGraphLaunch});
  }
  return launches;
}

// Every launch is answered by a record of the device, or there is a reason why not. Those behind
// the last that was answered are on their way, or died with the process; what they do is unknown. CUPTI has buffers for
// each thread, and delivers them one by one: of a killed process each thread's last answer counts, as long as it is no
// older than CUPTI lets one become.
void DeviceDecoder::CountMissingKernels() {
  if (launched_.IsWithin(answered_, host_functions_)) return;
  constexpr Duration kOldestBuffer = Seconds(2);  // flushed once a second
  constexpr TraceTime kNever{INT64_MIN / 2};
  const std::vector<Launch> launches = Launches();
  std::vector<Launch> missing;
  TraceTime last_answered = kNever;
  std::map<TrackId, TraceTime> last_of_thread;
  Interval unknown{TraceTime{INT64_MAX}, TraceTime{INT64_MIN}};
  const auto is_unknown = [&](const Launch& launch) {
    unknown.begin = std::min(unknown.begin, launch.begin);
    unknown.end = std::max(unknown.end, launch.begin + Nanoseconds(1));
  };
  for (const Launch& launch : launches) {
    const bool is_answered =
        answered_.Contains(launch.correlation) || host_functions_.Contains(launch.correlation);
    if (is_answered) {
      last_answered = std::max(last_answered, launch.begin);
      TraceTime& last = last_of_thread.try_emplace(launch.thread, kNever).first->second;
      last = std::max(last, launch.begin);
    } else if (in_flight_.Contains(launch.correlation)) {
      is_unknown(launch);
    } else {
      missing.push_back(launch);
    }
  }
  using enum QualitySeverity;
  builder_.quality().Count("captured_launches", kInfo, TakeCaptured(missing),
                           "launches that became nodes of CUDA graphs");
  const bool is_behind_nothing = answered_.empty() && in_flight_.empty();
  if (is_behind_nothing || (info_.clean_exit && missing.size() == launches.size())) {
    builder_.quality().Count("launches_without_kernel", kDataLoss,
                             static_cast<int64_t>(missing.size()),
                             fmt::format("{} launches but 0 kernel records: {}", launches.size(),
                                         CauseOfMissingKernels()));
    return;
  }
  const auto is_delivered = [&](const Launch& launch) {
    if (info_.clean_exit) return launch.begin <= last_answered;
    const auto last = last_of_thread.find(launch.thread);
    return launch.begin <= last_answered - kOldestBuffer ||
           (last != last_of_thread.end() && launch.begin <= last->second);
  };
  const auto behind = std::partition(missing.begin(), missing.end(), is_delivered);
  const auto kernels =
      std::partition(missing.begin(), behind, [](const Launch& launch) { return launch.of_graph; });
  builder_.quality().Count(
      "graph_launches_without_nodes", kDataLoss, kernels - missing.begin(),
      "launches of CUDA graphs of which CUPTI reported no node: made while it recorded "
      "no kernels, or of host functions alone, which it tells of from 13.1 on, or, before CUPTI 13.1 update 1, taken for other calls' after a pause "
      "of the recording (--full has none)");
  builder_.quality().Count("launches_without_kernel", kDataLoss, behind - kernels,
                           fmt::format("of {} launches, without a kernel record: {}",
                                       launches.size(), CauseOfMissingKernels()));
  if (behind != missing.end()) {
    const auto [first, last] = std::minmax_element(
        behind, missing.end(), [](const Launch& a, const Launch& b) { return a.begin < b.begin; });
    builder_.quality().Count(
        "undelivered_at_end", kWarning, missing.end() - behind,
        fmt::format("launches of the last {:.3f} s whose kernels CUPTI had not delivered{}",
                    static_cast<double>((last->begin - first->begin).ns) * 1e-9,
                    info_.clean_exit
                        ? ""
                        : ": of a killed process calls are there up to its end, device "
                          "work up to CUPTI's last flush, some second before"));
    std::for_each(behind, missing.end(), is_unknown);
  }
  AddGap(unknown.begin, unknown.end);
}

// CUPTI tells of a host function when it has ended, from 13.1 on. Those that had not when a window's end
// had waited for them, or when the program ended, have no row.
void DeviceDecoder::CountUntimedHostFunctions() {
  const std::string refused = Fact(fact::kCuptiRefused);
  if (CuptiVersion() < kTimesHostFunctions || refused.find("HOST_LAUNCH") != std::string::npos)
    return;
  std::vector<Launch> missing;
  for (const Launch& launch : host_launches_) {
    if (!host_functions_.Contains(launch.correlation)) missing.push_back(launch);
  }
  TakeCaptured(missing);
  builder_.quality().Count(
      "host_functions_without_time", QualitySeverity::kWarning,
      static_cast<int64_t>(missing.size()),
      fmt::format("of {} host functions in streams: they had not ended when recording did, or were "
                  "not delivered",
                  host_launches_.size()));
}

}  // namespace trainprof::recording
