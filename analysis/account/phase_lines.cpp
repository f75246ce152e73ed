#include "analysis/account/phase_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
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
    const auto is_hook = [&](StackId at) {
      return IsHookFrame(trace_.Text(stacks.frame(stacks.innermost(at)).file));
    };
    while (stack != kNoStack && is_hook(stack)) stack = stacks.caller(stack);
    if (stack == kNoStack || place.users == stacks.innermost(stack)) return place;
    const CallFrame& callee = stacks.frame(stacks.innermost(stack));
    place.callee = callee.function;
    place.callee_file = callee.file;
    return place;
  }

  const Trace& trace_;
  std::unordered_map<StackId, Place> known_;
};

struct Weight {
  int64_t all_ns = 0;
  int64_t waiting_ns = 0;
  int64_t count = 0;
};
using Weights = std::map<Place, Weight>;

void Add(const SampleTable& samples, size_t row, const Place& place, Weights& weights) {
  Weight& weight = weights[place];
  // What stands for no time still says that something was there.
  const int64_t ns = std::max<int64_t>(samples.WeightNs(row), 1);
  weight.all_ns += ns;
  if (samples.state[row] == ThreadState::kWaiting) weight.waiting_ns += ns;
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
  line.callee = trace.Text(place.callee);
  line.callee_file = trace.Text(place.callee_file);
  return line;
}

// `total` in the proportions of the weights, to the nanosecond; largest first.
std::vector<LineTime> Divide(const Trace& trace, const Weights& weights, Duration total) {
  std::vector<std::pair<LineTime, Weight>> all;
  double whole = 0;
  for (const auto& [place, weight] : weights) {
    all.emplace_back(LineOf(trace, place), weight);
    whole += static_cast<double>(weight.all_ns);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    const auto key = [](const LineTime& line) {
      return std::tie(line.file, line.line, line.function, line.callee, line.callee_file);
    };
    if (a.second.all_ns != b.second.all_ns) return a.second.all_ns > b.second.all_ns;
    return key(a.first) < key(b.first);
  });
  std::vector<LineTime> lines;
  double so_far = 0;
  int64_t given_ns = 0;
  for (auto& [line, weight] : all) {
    so_far += static_cast<double>(weight.all_ns);
    const auto end_ns = static_cast<int64_t>(static_cast<double>(total.ns) * (so_far / whole));
    line.total = Duration{end_ns - given_ns};
    given_ns = end_ns;
    const double waiting =
        static_cast<double>(weight.waiting_ns) / static_cast<double>(weight.all_ns);
    line.waiting = Duration{static_cast<int64_t>(static_cast<double>(line.total.ns) * waiting)};
    line.count = weight.count;
    lines.push_back(std::move(line));
  }
  return lines;
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
  const TrackId thread = SampledThread(trace, steps);
  std::vector<PhaseLines> phases;
  if (thread == kNoTrack) return phases;
  const SampleTable& samples = trace.samples;
  const Classes classes(steps, account);
  Places places(trace);
  std::array<Weights, kHostClasses> own;
  Weights producers;
  for (size_t row = 0; row < samples.size(); ++row) {
    CancelPoint(row);
    const bool is_stepping = samples.track[row] == thread;
    const auto phase = classes.At(samples.begin[row]);
    if (!phase || (!is_stepping && phase != HostClass::kInputWait)) continue;
    const Place& place = places.Of(samples.stack[row]);
    if (is_stepping) {
      Add(samples, row, place, own[static_cast<size_t>(*phase)]);
    } else if (place.users) {
      Add(samples, row, place, producers);
    }
  }
  for (size_t c = 0; c < kHostClasses; ++c) {
    if (own[c].empty()) continue;
    PhaseLines& lines = phases.emplace_back();
    lines.phase = static_cast<HostClass>(c);
    lines.total = account.total[c];
    for (const auto& [place, weight] : own[c]) lines.count += weight.count;
    lines.lines = Divide(trace, own[c], lines.total);
    if (lines.phase == HostClass::kInputWait) {
      lines.producers = Divide(trace, producers, lines.total);
    }
  }
  return phases;
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
  return line.waiting.ns * 2 > line.total.ns ? text + ", waiting" : text;
}

}  // namespace trainprof
