#include "analysis/account/memory_growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <type_traits>

#include "trace/base/cancel.h"
#include "trace/base/names.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

constexpr double kMib = 1 << 20;
constexpr size_t kFewestValues = 8;   // compared: fewer may rise by accident
constexpr size_t kMostValues = 200;   // of a stretch, evenly chosen: their pairs are looked at
constexpr double kLeastRise = kMib;   // over all steps: the allocators of C and Python take as much
constexpr double kTimesNoise = 3;     // what a rise must be
constexpr double kStillGrows = 0.25;  // of the slope, over the last half
constexpr double kMadToSigma = 1.4826;  // of a normal distribution
constexpr std::string_view kPeak = ", peak";

struct StepValue {
  double step = 0;  // its place among all
  double bytes = 0;
};
// Values of one series, apart where the search lay between: it holds memory of its own.
using Stretches = std::vector<std::vector<StepValue>>;

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::vector<StepValue> Thinned(const std::vector<StepValue>& values) {
  if (values.size() <= kMostValues) return values;
  std::vector<StepValue> some;
  for (size_t i = 0; i < kMostValues; ++i) {
    some.push_back(values[i * (values.size() - 1) / (kMostValues - 1)]);
  }
  return some;
}

// The median over all pairs (Theil and Sen): nearly a third of the values may be anything.
double SlopeOf(const Stretches& stretches) {
  std::vector<double> slopes;
  for (const std::vector<StepValue>& all : stretches) {
    const std::vector<StepValue> values = Thinned(all);
    for (size_t i = 0; i < values.size(); ++i) {
      CancelPoint(i);
      for (size_t j = i + 1; j < values.size(); ++j) {
        slopes.push_back((values[j].bytes - values[i].bytes) / (values[j].step - values[i].step));
      }
    }
  }
  return MedianOf(std::move(slopes));
}

// The usual distance of a value from the slope.
double NoiseOf(const Stretches& stretches, double slope) {
  std::vector<double> distances;
  for (const std::vector<StepValue>& values : stretches) {
    std::vector<double> rests;
    for (const StepValue& value : values) rests.push_back(value.bytes - slope * value.step);
    const double level = MedianOf(rests);
    for (const double rest : rests) distances.push_back(std::abs(rest - level));
  }
  return kMadToSigma * MedianOf(std::move(distances));
}

void JudgeGrowth(const Stretches& stretches, MemorySeries& series) {
  double span = 0;
  const std::vector<StepValue>* longest = nullptr;
  for (const std::vector<StepValue>& values : stretches) {
    series.steps += static_cast<int64_t>(values.size());
    if (values.empty()) continue;
    span += values.back().step - values.front().step;
    if (longest == nullptr || values.size() > longest->size()) longest = &values;
  }
  series.judged = longest != nullptr && longest->size() >= kFewestValues;
  if (!series.judged) return;
  const double slope = SlopeOf(stretches);
  series.noise_bytes = NoiseOf(stretches, slope);
  const auto half = static_cast<ptrdiff_t>(longest->size() / 2);
  const double late = SlopeOf({{longest->begin() + half, longest->end()}});
  const bool grows = slope * span > std::max(kTimesNoise * series.noise_bytes, kLeastRise) &&
                     late > kStillGrows * slope;
  if (grows) series.growth_bytes_per_step = slope;
}

IntervalSet SearchTimes(const Trace& trace) {
  const StringId name = trace.strings.Find(kMemorySearch);
  std::vector<Interval> times;
  for (uint32_t row = 0; name != kEmptyString && row < trace.ranges.size(); ++row) {
    if (trace.ranges.name[row] == name) times.push_back(trace.ranges.interval(Row{row}));
  }
  return IntervalSet::Union(std::move(times));
}

// The values of each process and name, as they came.
class Collected {
 public:
  Collected(const Trace& trace, const Steps& steps)
      : trace_(trace), search_(SearchTimes(trace)), first_(FirstOf(trace, steps)) {}

  void Add(uint32_t row) {
    const int64_t pid = trace_.processes[Index(trace_.ProcessOf(trace_.counters.track[row]))].pid;
    const TraceTime at = trace_.counters.begin[row];
    trace_.args.ForEach(trace_.counters.args[row], [&](const Arg& arg) {
      const std::string_view name = trace_.Text(arg.key);
      const auto bytes = static_cast<int64_t>(arg.value.Number() * kMib);
      if (name.ends_with(kPeak)) {
        MemorySeries& of = At(pid, name.substr(0, name.size() - kPeak.size())).series;
        of.peak_bytes = std::max(of.peak_bytes, bytes);
        return;
      }
      One& one = At(pid, name);
      one.series.peak_bytes = std::max(one.series.peak_bytes, bytes);
      one.series.last_bytes = bytes;
      AddValue(one, at, static_cast<double>(bytes));
    });
  }

  std::vector<MemorySeries> Judged() && {
    std::vector<MemorySeries> all;
    for (auto& [key, one] : by_name_) {
      JudgeGrowth(one.stretches, one.series);
      all.push_back(std::move(one.series));
    }
    return all;
  }

 private:
  struct One {
    MemorySeries series;
    Stretches stretches{1};
    int64_t steps = 0;
    bool was_searching = false;
  };

  // Of warm-up memory grows by its nature.
  static TraceTime FirstOf(const Trace& trace, const Steps& steps) {
    return steps.steps.empty() ? trace.extent.begin : steps.steps.front().span.begin;
  }
  One& At(int64_t pid, std::string_view name) {
    const auto [place, is_new] = by_name_.try_emplace({pid, std::string(name)});
    if (is_new) {
      place->second.series.pid = pid;
      place->second.series.name = name;
    }
    return place->second;
  }
  void AddValue(One& one, TraceTime at, double bytes) {
    ++one.steps;
    const bool searching = search_.TotalWithin({at, at + Nanoseconds(1)}).ns > 0;
    if (searching && !one.was_searching) one.stretches.emplace_back();
    one.was_searching = searching;
    if (searching || at < first_) return;
    one.stretches.back().push_back({static_cast<double>(one.steps), bytes});
  }

  const Trace& trace_;
  const IntervalSet search_;
  const TraceTime first_;
  std::map<std::pair<int64_t, std::string>, One> by_name_;
};

template <class Number>
Number NumberFrom(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return 0;
  }
  return std::max<Number>(number, 0);
}

// The words of a fact between `separator`s; the last one has all that is left.
template <size_t N>
std::array<std::string_view, N> WordsOf(std::string_view text, char separator) {
  std::array<std::string_view, N> words;
  for (size_t i = 0; i < N; ++i) {
    const size_t end = i + 1 == N ? std::string_view::npos : text.find(separator);
    words[i] = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

std::vector<KeptMemory> KeptIn(const Trace& trace) {
  std::vector<KeptMemory> all;
  for (size_t number = 1;; ++number) {
    const std::string name = fmt::format("{}{}", fact::kMemoryKept, number);
    const std::string_view text = EnvironmentValue(trace.environment, name);
    if (text.empty()) return all;
    const auto [kind, device, bytes, count, graphs, variable, line, file, caller_line, caller] =
        WordsOf<10>(text, '\t');
    all.push_back({std::string(kind), std::string(device), NumberFrom<int64_t>(bytes),
                   NumberFrom<double>(count), NumberFrom<double>(graphs), NumberFrom<int64_t>(line),
                   std::string(variable), std::string(file), NumberFrom<int64_t>(caller_line),
                   std::string(caller)});
  }
}

int64_t NumberOf(const Trace& trace, const char* fact) {
  return NumberFrom<int64_t>(EnvironmentValue(trace.environment, fact));
}

}  // namespace

StepMemory MemoryOf(const Trace& trace, const Steps& steps) {
  StepMemory memory;
  const StringId counter = trace.strings.Find(kMemoryCounter);
  if (counter == kEmptyString) return memory;
  Collected collected(trace, steps);
  for (uint32_t row = 0; row < trace.counters.size(); ++row) {
    CancelPoint(row);
    if (trace.counters.name[row] == counter) collected.Add(row);
  }
  memory.series = std::move(collected).Judged();
  for (MemorySeries& series : memory.series) {
    // That of the process that steps; of a rank there is one.
    if (series.name == "resident") {
      series.peak_bytes = std::max(series.peak_bytes, NumberOf(trace, fact::kMemoryPeak));
    }
  }
  memory.kept = KeptIn(trace);
  memory.cost = {NumberOf(trace, fact::kMemoryCostNs)};
  memory.missing = EnvironmentValue(trace.environment, fact::kMemoryMissing);
  const auto [first, last, own] =
      WordsOf<3>(EnvironmentValue(trace.environment, fact::kMemoryWindow), ' ');
  if (own.empty()) return memory;
  memory.searched_steps = NumberFrom<int64_t>(last) - NumberFrom<int64_t>(first);
  memory.search = {NumberFrom<int64_t>(own)};
  // Python's allocations took longer as well.
  const Duration usual{steps.Median().ns * memory.searched_steps};
  const Duration whole = SearchTimes(trace).Total();
  if (usual.ns > 0) memory.search = std::max(memory.search, whole - usual);
  return memory;
}

std::string PlaceOf(const KeptMemory& kept) {
  const auto place = [](const std::string& path, int64_t line) {
    const std::string file = path.substr(path.rfind('/') + 1);
    return line == 0 ? file : fmt::format("{}:{}", file, line);
  };
  const std::string own = place(kept.file, kept.line);
  if (kept.caller_line == 0) return own;
  return fmt::format("{} (from {})", own, place(kept.caller_file, kept.caller_line));
}

}  // namespace trainprof
