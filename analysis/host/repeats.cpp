#include "analysis/host/repeats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "analysis/steps/device_rows.h"
#include "trace/base/cancel.h"
#include "trace/base/sort_runs.h"

namespace trainprof {
namespace {

// Polynomial hashes modulo a Mersenne prime.
constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
constexpr uint64_t kBase = 0x1b873593cc9e2d51 % kPrime;

uint64_t Reduced(unsigned __int128 value) {
  const uint64_t folded =
      static_cast<uint64_t>(value & kPrime) + static_cast<uint64_t>(value >> 61);
  return folded >= kPrime ? folded - kPrime : folded;
}

uint64_t Times(uint64_t a, uint64_t b) { return Reduced(static_cast<unsigned __int128>(a) * b); }

// The hashes of all beginnings of a sequence: a run's own is a difference of two of them.
class Beginnings {
 public:
  explicit Beginnings(std::span<const uint64_t> sequence) : hashes_(sequence.size() + 1) {
    for (size_t i = 0; i < sequence.size(); ++i) {
      hashes_[i + 1] =
          Reduced(static_cast<unsigned __int128>(Times(hashes_[i], kBase)) + sequence[i] % kPrime);
    }
  }
  // How many runs of that length begin in it.
  size_t Runs(size_t length) const { return length < hashes_.size() ? hashes_.size() - length : 0; }
  // `power`: kBase to the power of `length`.
  uint64_t HashOf(size_t begin, size_t length, uint64_t power) const {
    return Reduced(static_cast<unsigned __int128>(hashes_[begin + length]) + kPrime -
                   Times(hashes_[begin], power));
  }

 private:
  std::vector<uint64_t> hashes_;
};

// Runs of one length by their hash, and which sequences hold them. Its room is kept from length to length.
class HeldRuns {
 public:
  struct Held {
    uint64_t hash = 0;
    uint32_t sequence = 0;  // the first that holds it, and where
    uint32_t begin = 0;
    uint32_t last = 0;   // that holds it
    uint32_t count = 0;  // 0: the slot is free
  };

  // Forgets all, and has room for so many.
  void Begin(size_t most) {
    const size_t slots = std::bit_ceil(2 * most + 2);
    slots_.assign(slots, {});
    shift_ = 64 - std::countr_zero(slots);
  }
  // That run's, or the free slot where it belongs.
  Held& Of(uint64_t hash) {
    size_t at = (hash * 0x9E3779B97F4A7C15) >> shift_;
    while (slots_[at].count != 0 && slots_[at].hash != hash) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  std::span<const Held> slots() const { return slots_; }

 private:
  std::vector<Held> slots_;
  int shift_ = 63;
};

// The first run of `length` that at least `least` sequences hold.
CommonRun RunOf(size_t length, std::span<const Beginnings> sequences, size_t least,
                HeldRuns& seen) {
  uint64_t power = 1;
  for (size_t i = 0; i < length; ++i) power = Times(power, kBase);
  // A run that so many hold is in one of these: those behind only say who holds it, too.
  const size_t first_of_all = sequences.size() - least + 1;
  size_t runs = 0;
  for (size_t s = 0; s < first_of_all; ++s) runs += sequences[s].Runs(length);
  seen.Begin(runs);
  for (uint32_t s = 0; s < sequences.size(); ++s) {
    const size_t begins = sequences[s].Runs(length);
    for (uint32_t i = 0; i < begins; ++i) {
      CancelPoint(i);
      const uint64_t hash = sequences[s].HashOf(i, length, power);
      HeldRuns::Held& run = seen.Of(hash);
      if (run.count == 0) {
        if (s < first_of_all) run = {hash, s, i, s, 1};
      } else if (run.last != s) {
        run.last = s;
        ++run.count;
      }
    }
  }
  CommonRun best;
  for (const HeldRuns::Held& run : seen.slots()) {
    if (run.count < least) continue;
    if (best.length != 0 &&
        std::pair(best.sequence, best.begin) < std::pair<size_t, size_t>(run.sequence, run.begin))
      continue;
    best = {run.sequence, run.begin, length, run.count};
  }
  return best;
}

// Of several numbers that of which so many are no smaller.
size_t LargestOf(size_t count, std::vector<size_t>& numbers) {
  const auto at = numbers.begin() + static_cast<ptrdiff_t>(count - 1);
  std::nth_element(numbers.begin(), at, numbers.end(), std::greater<>());
  return *at;
}

// The longest run that so many sequences have where the first one has it: the longest of all is no shorter. O(n).
size_t LongestInPlace(std::span<const std::vector<uint64_t>> sequences, size_t least) {
  const std::vector<uint64_t>& first = sequences.front();
  std::vector<size_t> runs(sequences.size());  // up to this place
  std::vector<size_t> sorted;
  size_t longest = 0;
  const auto look = [&] {
    sorted = runs;
    longest = std::max(longest, LargestOf(least, sorted));
  };
  for (size_t i = 0; i < first.size(); ++i) {
    CancelPoint(i);
    bool any_ends = false;
    const auto is_same = [&](size_t s) {
      return i < sequences[s].size() && sequences[s][i] == first[i];
    };
    for (size_t s = 0; s < sequences.size(); ++s) any_ends |= runs[s] > 0 && !is_same(s);
    if (any_ends) look();
    for (size_t s = 0; s < sequences.size(); ++s) runs[s] = is_same(s) ? runs[s] + 1 : 0;
  }
  look();
  return longest;
}

// What happens in the order of the host's calls.
struct Event {
  TraceTime at;
  Row row;  // of device_ops; of an obstacle, of api
  bool is_obstacle;
};

uint64_t Mixed(uint64_t hash, uint64_t value) { return Times(hash, kBase) ^ (value + 0x9e3779b9); }

bool IsHostCopy(CopyDirection direction) {
  return direction == CopyDirection::kHostToDevice || direction == CopyDirection::kDeviceToHost;
}

// Whether a capture does not take the call: its thread waits, or memory is not ordered by a stream.
bool IsObstacle(const Trace& trace, uint32_t call, bool blocks) {
  const ApiKind kind = trace.api.kind[call];
  if (kind == ApiKind::kSync) return true;
  if (kind == ApiKind::kCopy) return blocks;
  if (kind != ApiKind::kAllocate && kind != ApiKind::kFree) return false;
  return !names_internal::WithoutVersion(trace.Text(trace.api.name[call])).ends_with("Async");
}

class Collector {
 public:
  Collector(const Trace& trace, const Steps& steps, DeviceId device) : trace_(trace) {
    result_.steps = std::min(steps.count(), kMostRepeatSteps);
    spans_ = {steps.steps.data(), result_.steps};
    events_.resize(result_.steps);
    shapes_.resize(trace.launch_configs.size());
    device_ = device;
  }

  RepeatedLaunches Run(const std::vector<bool>& blocking) {
    if (spans_.empty()) return std::move(result_);
    AddOps();
    AddObstacles(blocking);
    KeepFirstSteps();
    std::vector<std::vector<uint64_t>> names(spans_.size());
    std::vector<std::vector<uint64_t>> shapes(spans_.size());
    std::vector<std::vector<uint64_t>> apart(spans_.size());
    uint64_t unique = 0;
    size_t bound = 0;  // the longest run without an obstacle
    for (size_t s = 0; s < spans_.size(); ++s) {
      size_t run = 0;
      SortRuns(events_[s], [](const Event& event) { return event.at; });
      for (const Event& event : events_[s]) {
        if (event.is_obstacle) {
          apart[s].push_back(Mixed(kPrime / 2, ++unique));
          run = 0;
          continue;
        }
        names[s].push_back(static_cast<uint64_t>(trace_.device_ops.name[Index(event.row)]) + 1);
        shapes[s].push_back(
            Mixed(Mixed(names[s].back(), ShapeOf(event.row)),
                  static_cast<uint64_t>(trace_.device_ops.bytes[Index(event.row)])));
        apart[s].push_back(shapes[s].back());
        bound = std::max(bound, ++run);
      }
    }
    result_.same_kernels = LongestCommonRun(names, kRepeatShare);
    result_.same_shapes = LongestCommonRun(shapes, kRepeatShare, result_.same_kernels.length);
    // No two steps hold the same obstacle; a step alone may.
    bound = spans_.size() > 1 ? std::min(bound, result_.same_shapes.length) : SIZE_MAX;
    result_.capturable = LongestCommonRun(apart, kRepeatShare, bound);
    return std::move(result_);
  }

 private:
  // Among the steps looked at, SIZE_MAX where it is in none. Mostly asked in the order of time.
  size_t StepAt(TraceTime at) {
    if (near_ < spans_.size() && spans_[near_].span.Contains(at)) return near_;
    if (at < spans_.front().span.begin || at >= spans_.back().span.end) return SIZE_MAX;
    const auto after =
        std::upper_bound(spans_.begin(), spans_.end(), at,
                         [](TraceTime t, const Step& step) { return t < step.span.begin; });
    if (!(after - 1)->span.Contains(at)) return SIZE_MAX;
    return near_ = static_cast<size_t>(after - 1 - spans_.begin());
  }

  // Of grid and block; 0: not recorded.
  uint64_t ShapeOf(Row op) {
    const LaunchConfigId id = trace_.device_ops.launch_config[Index(op)];
    if (id == kNoLaunchConfig) return 0;
    uint64_t& shape = shapes_[static_cast<size_t>(id)];
    if (shape != 0) return shape;
    const LaunchConfig& config = *trace_.ConfigOf(op);
    shape = 1;
    for (const uint32_t side : config.grid) shape = Mixed(shape, side);
    for (const uint32_t side : config.block) shape = Mixed(shape, side);
    return shape;
  }

  void AddOps() {
    launches_.resize(trace_.tracks.size());
    FindCallsWithin();
    VisitOpsOf(trace_, device_, [&](uint32_t op) { AddOp(op); });
    std::sort(graphs_.begin(), graphs_.end());
    graphs_.erase(std::unique(graphs_.begin(), graphs_.end()), graphs_.end());
    const auto steps = static_cast<double>(spans_.size());
    result_.launches_per_step = static_cast<double>(count_) / steps;
    result_.graphs_per_step = static_cast<double>(graphs_.size()) / steps;
  }

  // Most operations are of other steps: their calls' numbers alone say so.
  void FindCallsWithin() {
    const auto begins = trace_.api.begin.begin();
    for (uint32_t track = 0; track < trace_.tracks.size(); ++track) {
      const auto rows = trace_.api.rows_of(TrackId{track});
      const auto row = [&](TraceTime at) {
        const auto it = std::lower_bound(begins + rows.first, begins + rows.second, at);
        return static_cast<uint32_t>(it - begins);
      };
      const std::pair within{row(spans_.front().span.begin), row(spans_.back().span.end)};
      if (within.first < within.second) calls_within_.push_back(within);
    }
  }
  bool IsWithin(Row call) const {
    return std::any_of(calls_within_.begin(), calls_within_.end(), [&](const auto& rows) {
      return Index(call) >= rows.first && Index(call) < rows.second;
    });
  }

  void AddOp(uint32_t op) {
    const DeviceOpTable& ops = trace_.device_ops;
    const Row call = ops.launch[op];
    if (call == kNoRow || !IsWithin(call)) return;
    const TraceTime at = trace_.api.begin[Index(call)];
    const size_t step = StepAt(at);
    if (step == SIZE_MAX) return;
    launches_[Index(trace_.api.track[Index(call)])] = true;
    if (trace_.api.kind[Index(call)] == ApiKind::kGraphLaunch) {
      graphs_.push_back(call);
    } else if (IsHostCopy(ops.direction[op])) {
      events_[step].push_back({at, call, true});
      result_.obstacles.push_back(call);
    } else {
      events_[step].push_back({at, Row{op}, false});
      const LaunchConfig* const config = trace_.ConfigOf(Row{op});
      result_.shapes_known |= config != nullptr && config->grid != LaunchConfig::kNoShape;
      ++count_;
    }
  }

  void AddObstacles(const std::vector<bool>& blocking) {
    std::vector<Row> copies = result_.obstacles;
    std::sort(copies.begin(), copies.end());
    for (uint32_t call = 0; call < trace_.api.size(); ++call) {
      CancelPoint(call);
      if (!IsObstacle(trace_, call, blocking[call])) continue;
      if (!launches_[Index(trace_.api.track[call])]) continue;
      if (std::binary_search(copies.begin(), copies.end(), Row{call})) continue;
      const size_t step = StepAt(trace_.api.begin[call]);
      if (step == SIZE_MAX) continue;
      events_[step].push_back({trace_.api.begin[call], Row{call}, true});
      result_.obstacles.push_back(Row{call});
    }
    std::sort(result_.obstacles.begin(), result_.obstacles.end());
  }

  // As many as kMostRepeatLaunches allows: what repeats shows in few long steps, too.
  void KeepFirstSteps() {
    size_t events = 0;
    size_t kept = 0;
    for (; kept < spans_.size(); ++kept) {
      events += events_[kept].size();
      if (events > kMostRepeatLaunches) break;
    }
    spans_ = spans_.first(kept);
    result_.steps = kept;
  }

  const Trace& trace_;
  std::span<const Step> spans_;
  DeviceId device_ = kNoDevice;
  std::vector<std::pair<uint32_t, uint32_t>> calls_within_;  // rows of api, a thread each
  size_t near_ = 0;                                          // the step that was found last
  int64_t count_ = 0;                                        // of launches outside of graphs
  std::vector<Row> graphs_;                                  // launches of them
  std::vector<std::vector<Event>> events_;                   // by step
  std::vector<uint64_t> shapes_;                             // by launch config; 0: not asked yet
  std::vector<bool> launches_;                               // by track
  RepeatedLaunches result_;
};

}  // namespace

CommonRun LongestCommonRun(std::span<const std::vector<uint64_t>> sequences, double share,
                           size_t bound) {
  const auto least = std::max<size_t>(
      1, static_cast<size_t>(std::ceil(share * static_cast<double>(sequences.size()) - 1e-9)));
  if (sequences.size() < least) return {};
  const std::vector<uint64_t>& first = sequences.front();
  const bool all_alike = std::all_of(sequences.begin() + 1, sequences.end(),
                                     [&](const auto& sequence) { return sequence == first; });
  if (all_alike && !first.empty() && first.size() <= bound) {
    return {0, 0, first.size(), sequences.size()};
  }
  std::vector<size_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(sequence.size());
  size_t most = std::min(bound, LargestOf(least, lengths));
  const std::vector<Beginnings> beginnings(sequences.begin(), sequences.end());
  HeldRuns seen;
  // A part of a run that is held is held: bisection finds the longest, which is mostly the longest in one place.
  const size_t in_place = std::min(most, LongestInPlace(sequences, least));
  CommonRun best;
  size_t low = std::max<size_t>(1, in_place);
  for (size_t length = std::min(low + 1, most); low <= most; length = std::midpoint(low, most)) {
    const CommonRun run = RunOf(length, beginnings, least, seen);
    if (run.length > 0) {
      best = run;
      low = length + 1;
    } else {
      most = length - 1;
    }
  }
  return best;
}

RepeatedLaunches FindRepeats(const Trace& trace, const Steps& steps, DeviceId device,
                             const std::vector<bool>& blocking) {
  return Collector(trace, steps, device).Run(blocking);
}

}  // namespace trainprof
