#include "analysis/account/phase_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>

#include "trace/base/cancel.h"
#include "trace/symbols/hook_frames.h"

namespace trainprof {
namespace {

// What is one line of a list: the user's frame, and the function that it had called.
struct Place {
  std::optional<FrameId> users;
  StringId callee = kEmptyString;
  StringId callee_file = kEmptyString;
  auto operator<=>(const Place&) const = default;
};

class Places {
 public:
  explicit Places(const Trace& trace) : trace_(trace) {}

  const Place& Of(StackId stack) {
    const auto [it, is_new] = known_.try_emplace(stack);
    if (is_new) it->second = Find(stack);
    return it->second;
  }
  BatchWork WorkOf(StackId stack) {
    const auto [it, is_new] = work_.try_emplace(stack);
    if (is_new) it->second = trainprof::WorkOf(trace_, stack);
    return it->second;
  }
  // Whether multiprocessing made the process, as it makes a loader's workers.
  bool IsOfChild(StackId stack) {
    const auto [it, is_new] = of_child_.try_emplace(stack);
    if (!is_new) return it->second;
    bool found = false;
    trace_.stacks.ForEachFrame(stack, [&](const CallFrame& frame) {
      found = IsForkedStart(trace_.Text(frame.function), trace_.Text(frame.file));
      return !found;
    });
    return it->second = found;
  }

 private:
  Place Find(StackId stack) const {
    Place place;
    const StackTable& stacks = trace_.stacks;
    for (StackId at = stack; at != kNoStack; at = stacks.caller(at)) {
      const CallFrame& frame = stacks.frame(stacks.innermost(at));
      // A forked worker's stack goes on with that of the process it was forked from.
      if (IsForkedStart(trace_.Text(frame.function), trace_.Text(frame.file))) break;
      if (!frame.is_user) continue;
      place.users = stacks.innermost(at);
      break;
    }
    const auto file_of = [&](StackId at) {
      return at == kNoStack ? "" : trace_.Text(stacks.frame(stacks.innermost(at)).file);
    };
    const StackId built_in = file_of(stack) == kBuiltInFile ? stack : kNoStack;
    if (built_in != kNoStack) stack = stacks.caller(stack);
    while (IsHookFrame(file_of(stack))) stack = stacks.caller(stack);
    if (stack == kNoStack || place.users == stacks.innermost(stack)) stack = built_in;
    if (stack == kNoStack) return place;
    const CallFrame& callee = stacks.frame(stacks.innermost(stack));
    place.callee = callee.function;
    place.callee_file = callee.file;
    return place;
  }

  const Trace& trace_;
  std::unordered_map<StackId, Place> known_;
  std::unordered_map<StackId, bool> of_child_;
  std::unordered_map<StackId, BatchWork> work_;
};

struct Weight {
  int64_t all_ns = 0;
  int64_t waiting_ns = 0;
  int64_t gil_ns = 0;
  int64_t count = 0;

  void operator+=(const Weight& other) {
    all_ns += other.all_ns;
    waiting_ns += other.waiting_ns;
    gil_ns += other.gil_ns;
    count += other.count;
  }
};
using Weights = std::map<Place, Weight>;

void Add(const SampleTable& samples, size_t row, const Place& place, Weights& weights) {
  Weight& weight = weights[place];
  // What stands for no time still says that something was there.
  const int64_t ns = std::max<int64_t>(samples.WeightNs(row), 1);
  weight.all_ns += ns;
  const ThreadState state = samples.state[row];
  if (state == ThreadState::kWaiting || state == ThreadState::kGil) weight.waiting_ns += ns;
  if (state == ThreadState::kGil) weight.gil_ns += ns;
  ++weight.count;
}

LineTime LineOf(const Trace& trace, const Place& place) {
  LineTime line;
  if (place.users) {
    const CallFrame& frame = trace.stacks.frame(*place.users);
    line.file = trace.Text(frame.file);
    line.line = frame.line;
    line.function = trace.Text(frame.function);
  }
  line.callee = WithoutAddress(trace.Text(place.callee));
  line.callee_file = trace.Text(place.callee_file);
  return line;
}

// `total` in the proportions of the weights, in their order, to the nanosecond.
std::vector<Duration> Shares(const std::vector<int64_t>& weights_ns, Duration total) {
  double whole = 0;
  for (const int64_t weight_ns : weights_ns) whole += static_cast<double>(weight_ns);
  if (whole <= 0) return std::vector<Duration>(weights_ns.size());
  std::vector<Duration> shares;
  double so_far = 0;
  int64_t given_ns = 0;
  for (const int64_t weight_ns : weights_ns) {
    so_far += static_cast<double>(weight_ns);
    // Where weights are the time itself, they are given as they are: no quotient rounds them.
    const auto end_ns =
        whole == static_cast<double>(total.ns)
            ? given_ns + weight_ns
            : static_cast<int64_t>(static_cast<double>(total.ns) * (so_far / whole));
    shares.push_back(Duration{end_ns - given_ns});
    given_ns = end_ns;
  }
  return shares;
}

Duration PartOf(Duration total, int64_t part_ns, int64_t all_ns) {
  const double share = static_cast<double>(part_ns) / static_cast<double>(all_ns);
  return Duration{static_cast<int64_t>(static_cast<double>(total.ns) * share)};
}

// `total` by line; largest first.
std::vector<LineTime> Divide(const Trace& trace, const Weights& weights, Duration total) {
  const auto key = [](const LineTime& line) {
    return std::tie(line.file, line.line, line.function, line.callee, line.callee_file);
  };
  const auto by_key = [&](const LineTime& a, const LineTime& b) { return key(a) < key(b); };
  std::map<LineTime, Weight, decltype(by_key)> of_line(by_key);
  for (const auto& [place, weight] : weights) of_line[LineOf(trace, place)] += weight;
  std::vector<std::pair<LineTime, Weight>> all(of_line.begin(), of_line.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second.all_ns > b.second.all_ns; });
  std::vector<int64_t> weights_ns;
  for (const auto& [line, weight] : all) weights_ns.push_back(weight.all_ns);
  const std::vector<Duration> shares = Shares(weights_ns, total);
  std::vector<LineTime> lines;
  for (size_t i = 0; i < all.size(); ++i) {
    auto& [line, weight] = all[i];
    line.total = shares[i];
    line.waiting = PartOf(line.total, weight.waiting_ns, weight.all_ns);
    line.gil = PartOf(line.total, weight.gil_ns, weight.all_ns);
    line.count = weight.count;
    lines.push_back(std::move(line));
  }
  return lines;
}

using WorkWeights = std::array<int64_t, kBatchWorks>;  // ns

std::vector<WorkTime> Divide(const WorkWeights& weights, Duration total) {
  std::vector<WorkTime> works;
  const std::vector<Duration> shares = Shares({weights.begin(), weights.end()}, total);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) works.push_back({static_cast<BatchWork>(i), shares[i]});
  }
  std::stable_sort(works.begin(), works.end(),
                   [](const WorkTime& a, const WorkTime& b) { return a.total > b.total; });
  return works;
}

// The phase of each moment of the steps.
class Classes {
 public:
  Classes(const Steps& steps, const HostAccount& account) : steps_(steps), account_(account) {}

  std::optional<HostClass> At(TraceTime at) const {
    const Interval moment{at, at + Nanoseconds(1)};
    if (steps_.window.TotalWithin(moment).ns == 0) return std::nullopt;
    const auto parts = account_.Within(moment);
    const auto found =
        std::find_if(parts.begin(), parts.end(), [](Duration part) { return part.ns > 0; });
    return static_cast<HostClass>(found - parts.begin());
  }

 private:
  const Steps& steps_;
  const HostAccount& account_;
};

// The stepping thread's time, by the innermost recorded Python function.
class FunctionTime {
 public:
  FunctionTime(const Trace& trace, const Steps& steps, const HostAccount& account)
      : trace_(trace), account_(account), window_(steps.window.intervals()) {}

  // In the order of the table: by begin, outer first.
  void Add(Row row) {
    const StackId stack = trace_.ranges.stack[Index(row)];
    if (stack == kNoStack) return;
    const Interval interval = trace_.ranges.interval(row);
    GiveUntil(interval.begin);
    Place place = open_.empty() ? Place{} : open_.back().place;
    const FrameId id = trace_.stacks.innermost(stack);
    const CallFrame& frame = trace_.stacks.frame(id);
    place.callee = frame.is_user ? kEmptyString : frame.function;
    place.callee_file = frame.is_user ? kEmptyString : frame.file;
    if (frame.is_user) place.users = id;
    open_.push_back({interval.end, place});
  }
  std::array<Weights, kHostClasses> Finish() {
    GiveUntil(TraceTime{INT64_MAX});
    for (size_t c = 0; c < kHostClasses; ++c) {
      int64_t rest_ns = account_.total[c].ns;
      for (const auto& [place, weight] : own_[c]) rest_ns -= weight.all_ns;
      if (!own_[c].empty() && rest_ns > 0) own_[c][Place{}].all_ns += rest_ns;
    }
    return std::move(own_);
  }

 private:
  struct Open {
    TraceTime end;
    Place place;
  };

  void GiveUntil(TraceTime until) {
    while (!open_.empty() && at_ < until) {
      const TraceTime end = std::min(open_.back().end, until);
      if (at_ < end) Give({at_, end}, open_.back().place);
      at_ = std::max(at_, end);
      if (open_.back().end <= at_) open_.pop_back();
    }
    while (!open_.empty() && open_.back().end <= until) open_.pop_back();
    at_ = std::max(at_, until);
  }
  void Give(const Interval& interval, const Place& place) {
    while (next_ < window_.size() && window_[next_].end <= interval.begin) ++next_;
    for (size_t i = next_; i < window_.size() && window_[i].begin < interval.end; ++i) {
      const auto parts = account_.Within(Intersect(window_[i], interval));
      for (size_t c = 0; c < kHostClasses; ++c) {
        if (parts[c].ns == 0) continue;
        Weight& weight = own_[c][place];
        weight.all_ns += parts[c].ns;
        ++weight.count;
      }
    }
  }

  const Trace& trace_;
  const HostAccount& account_;
  std::span<const Interval> window_;
  size_t next_ = 0;
  TraceTime at_{INT64_MIN};
  std::vector<Open> open_;
  std::array<Weights, kHostClasses> own_;
};

// What the account is divided by.
struct Seen {
  bool by_samples = true;
  std::array<Weights, kHostClasses> own;  // of the stepping thread
  Weights producers;
  WorkWeights own_work{};  // of its input wait
  WorkWeights producers_work{};
};

std::vector<PhaseLines> PhasesOf(const Trace& trace, const HostAccount& account, const Seen& seen) {
  std::vector<PhaseLines> phases;
  for (size_t c = 0; c < kHostClasses; ++c) {
    if (seen.own[c].empty()) continue;
    PhaseLines& lines = phases.emplace_back();
    lines.phase = static_cast<HostClass>(c);
    lines.total = account.total[c];
    lines.sampled = seen.by_samples;
    for (const auto& [place, weight] : seen.own[c]) lines.count += weight.count;
    lines.lines = Divide(trace, seen.own[c], lines.total);
    if (lines.phase != HostClass::kInputWait) continue;
    lines.producers = Divide(trace, seen.producers, lines.total);
    lines.work = Divide(seen.producers.empty() ? seen.own_work : seen.producers_work, lines.total);
  }
  return phases;
}

std::vector<PhaseLines> OpenByFunction(const Trace& trace, const Steps& steps,
                                       const HostAccount& account) {
  if (steps.thread == kNoTrack) return {};
  FunctionTime time(trace, steps, account);
  const auto [first, last] = trace.ranges.rows_of(steps.thread);
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    if (trace.ranges.kind[row] == RangeKind::kPythonFunction) time.Add(Row{row});
  }
  Seen seen;
  seen.by_samples = false;
  seen.own = time.Finish();
  return PhasesOf(trace, account, seen);
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

TrackId SampledThread(const Trace& trace, const Steps& steps) {
  if (trace.samples.size() == 0) return kNoTrack;
  if (steps.thread != kNoTrack) {
    const auto [first, last] = trace.samples.rows_of(steps.thread);
    if (first < last) return steps.thread;
  }
  std::map<TrackId, std::pair<int64_t, int64_t>> seen;  // ns running, ns in all
  for (size_t row = 0; row < trace.samples.size(); ++row) {
    auto& [running, all] = seen[trace.samples.track[row]];
    const int64_t weight_ns = trace.samples.WeightNs(row);
    if (trace.samples.state[row] == ThreadState::kRunning) running += weight_ns;
    all += weight_ns;
  }
  const auto most = std::max_element(
      seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->first;
}

std::vector<PhaseLines> OpenByLine(const Trace& trace, const Steps& steps,
                                   const HostAccount& account) {
  const TrackId thread =
      account.sampled_thread != kNoTrack ? account.sampled_thread : SampledThread(trace, steps);
  if (thread == kNoTrack) return OpenByFunction(trace, steps, account);
  const SampleTable& samples = trace.samples;
  const Classes classes(steps, account);
  Places places(trace);
  Seen seen;
  // Another process that is no child and waits, as who started this one does, makes no batch.
  const auto may_produce = [&](size_t row) {
    return trace.ProcessOf(samples.track[row]) == trace.ProcessOf(thread) ||
           samples.state[row] == ThreadState::kRunning || places.IsOfChild(samples.stack[row]);
  };
  for (size_t row = 0; row < samples.size(); ++row) {
    CancelPoint(row);
    const bool is_stepping = samples.track[row] == thread;
    const auto phase = classes.At(samples.begin[row]);
    if (!phase || (!is_stepping && phase != HostClass::kInputWait)) continue;
    const Place& place = places.Of(samples.stack[row]);
    if (!is_stepping && (!place.users || !may_produce(row))) continue;
    Add(samples, row, place, is_stepping ? seen.own[static_cast<size_t>(*phase)] : seen.producers);
    if (phase != HostClass::kInputWait) continue;
    WorkWeights& work = is_stepping ? seen.own_work : seen.producers_work;
    work[static_cast<size_t>(places.WorkOf(samples.stack[row]))] +=
        std::max<int64_t>(samples.WeightNs(row), 1);
  }
  return PhasesOf(trace, account, seen);
}

std::string Title(const LineTime& line) {
  std::string text;
  if (!line.file.empty()) {
    text = fmt::format("{}:{} {}", FileName(line.file), line.line, line.function);
    if (!line.callee.empty()) text += " > " + line.callee;
  } else if (!line.callee.empty()) {
    text = fmt::format("{} ({})", line.callee, FileName(line.callee_file));
  } else {
    text = "no Python function";
  }
  if (line.gil.ns * 2 > line.total.ns) return text + ", waiting for the GIL";
  return line.waiting.ns * 2 > line.total.ns ? text + ", waiting" : text;
}

}  // namespace trainprof
