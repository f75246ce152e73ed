#include "profiler/gate/budgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

constexpr std::string_view kNoDevices = "the trace holds no device work";

// Of one rank; no value: `why` says what is missing.
struct OfRank {
  std::optional<double> value;
  std::string why;
};
using MeasureRank = OfRank (*)(const JobAnalysis&, const RankAnalysis&, const Budget&);

OfRank StepTime(const JobAnalysis&, const RankAnalysis& rank, const Budget& budget) {
  const Steps& steps = rank.steps;
  if (steps.count() == 0) return {{}, "no steps were found"};
  if (budget.stat == "mean") return {steps.MeanMilliseconds(), {}};
  double share = 0.5;
  if (budget.stat.size() > 1) {
    std::from_chars(budget.stat.data() + 1, budget.stat.data() + budget.stat.size(), share);
    share /= 100;
  }
  return {steps.Quantile(share).ToMilliseconds(), {}};
}

OfRank Samples(const JobAnalysis& job, const RankAnalysis& rank, const Budget& budget) {
  if (rank.steps.count() == 0) return {{}, "no steps were found"};
  double samples = budget.samples_per_step.value_or(0);
  if (samples == 0) {
    const std::string_view batch = EnvironmentValue(rank.environment, fact::kLoaderBatchSize);
    std::from_chars(batch.data(), batch.data() + batch.size(), samples);
  }
  if (samples <= 0) {
    return {{}, "how many samples a step takes is not recorded: set samples-per-step in its table"};
  }
  const double ms = rank.steps.MeanMilliseconds();
  if (ms <= 0) return {{}, "steps take no time"};
  return {1000 * samples * static_cast<double>(job.ranks.size()) / ms, {}};
}

// Of the devices that train the worst, by what `of` says of one.
OfRank WorstDevice(const RankAnalysis& rank, bool least,
                   const std::function<double(const DeviceReport&)>& of) {
  OfRank worst{{}, std::string(kNoDevices)};
  for (const DeviceReport& device : rank.devices) {
    if (device.stray) continue;
    const double value = of(device);
    if (!worst.value || (least ? value < *worst.value : value > *worst.value)) worst.value = value;
  }
  return worst;
}

OfRank Busy(const JobAnalysis&, const RankAnalysis& rank, const Budget&) {
  return WorstDevice(rank, true,
                     [&](const DeviceReport& device) { return rank.DeviceShare(device.busy); });
}

OfRank Idle(const JobAnalysis&, const RankAnalysis& rank, const Budget& budget) {
  return WorstDevice(rank, false, [&](const DeviceReport& device) {
    Duration total;
    for (const AccountLine& line : device.account) {
      const bool is_asked =
          budget.name == "idle" ? line.name.starts_with("idle_") : line.name == budget.name;
      if (is_asked) total += line.total;
    }
    return rank.DevicePerStepMs(total);
  });
}

OfRank Memory(const RankAnalysis& rank, const std::function<bool(std::string_view name)>& is_asked,
              std::string_view what) {
  OfRank most{{}, fmt::format("{} was not recorded: trainprof run --memory", what)};
  for (const MemorySeries& series : rank.memory.series) {
    if (!is_asked(series.name)) continue;
    most.value = std::max(most.value.value_or(0), static_cast<double>(series.peak_bytes));
  }
  return most;
}

OfRank GpuMemory(const JobAnalysis&, const RankAnalysis& rank, const Budget&) {
  return Memory(
      rank,
      [](std::string_view name) {
        return name.starts_with("cuda:") && name.ends_with(" allocated");
      },
      "the memory of GPUs");
}

OfRank HostMemory(const JobAnalysis&, const RankAnalysis& rank, const Budget&) {
  return Memory(
      rank, [](std::string_view name) { return name == "resident"; }, "the memory of the process");
}

OfRank InputWait(const JobAnalysis&, const RankAnalysis& rank, const Budget&) {
  if (!rank.has_host_phases) return {{}, "nothing in the trace names a wait for input"};
  return {rank.PerStepMs(rank.HostTime(HostClass::kInputWait)), {}};
}

OfRank DeviceWaits(const JobAnalysis&, const RankAnalysis& rank, const Budget&) {
  if (rank.api_calls == 0) return {{}, "the trace holds no runtime calls"};
  return {static_cast<double>(rank.device_waits) / static_cast<double>(rank.steps.divisor()), {}};
}

struct Entry {
  std::string_view name;
  BudgetKind kind;
  MeasureRank measure;
};

constexpr BudgetKind kIdleKind{"TP804", "", BudgetUnit::kStepPart};

constexpr Entry kEntries[] = {
    {kStepTimeBudget, {"TP801", "step time", BudgetUnit::kMilliseconds}, StepTime},
    {kSamplesBudget, {"TP802", "samples a second", BudgetUnit::kPerSecond, false}, Samples},
    {"gpu_busy", {"TP803", "GPU busy", BudgetUnit::kShare, false}, Busy},
    {"idle", {"TP804", "GPU idle", BudgetUnit::kStepPart}, Idle},
    {"peak_gpu_memory", {"TP805", "peak memory of a GPU", BudgetUnit::kBytes}, GpuMemory},
    {"peak_host_memory", {"TP806", "peak memory of the process", BudgetUnit::kBytes}, HostMemory},
    {"input_wait", {"TP807", "input wait", BudgetUnit::kStepPart}, InputWait},
    {"device_waits", {"TP808", "waits for the GPU", BudgetUnit::kPerStep}, DeviceWaits},
};

// Of the classes of the account that are lost time, one each.
const std::array<std::pair<DeviceClass, std::string>, kDeviceClasses>& IdleTitles() {
  static const auto titles = [] {
    std::array<std::pair<DeviceClass, std::string>, kDeviceClasses> all;
    for (size_t i = 0; i < kDeviceClasses; ++i) {
      const auto c = static_cast<DeviceClass>(i);
      all[i] = {c, fmt::format("{}{}", IsIdle(c) ? "GPU idle: " : "exposed ", Title(c))};
    }
    return all;
  }();
  return titles;
}

const BudgetKind* FindIdleKind(std::string_view name) {
  static const auto kinds = [] {
    std::array<BudgetKind, kDeviceClasses> all;
    for (size_t i = 0; i < kDeviceClasses; ++i) {
      all[i] = kIdleKind;
      all[i].title = IdleTitles()[i].second;
    }
    return all;
  }();
  for (size_t i = 0; i < kDeviceClasses; ++i) {
    const auto c = static_cast<DeviceClass>(i);
    if (c != DeviceClass::kCompute && name == Name(c)) return &kinds[i];
  }
  return nullptr;
}

MeasureRank MeasureOf(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.measure;
  }
  return Idle;
}

}  // namespace

const BudgetKind* FindBudgetKind(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return &entry.kind;
  }
  return FindIdleKind(name);
}

std::vector<std::string> BudgetNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) {
    names.emplace_back(entry.name);
    if (entry.name != "idle") continue;
    for (size_t i = 1; i < kDeviceClasses; ++i) {
      names.emplace_back(Name(static_cast<DeviceClass>(i)));
    }
  }
  return names;
}

Measured Measure(const JobAnalysis& job, const Budget& budget) {
  const BudgetKind& kind = *FindBudgetKind(budget.name);
  const MeasureRank measure = MeasureOf(budget.name);
  Measured worst;
  for (const RankAnalysis& rank : job.ranks) {
    const OfRank of_rank = measure(job, rank, budget);
    // A limit that holds for the ranks that tell need not hold for the one that does not.
    if (!of_rank.value) return {{}, 0, rank.rank, of_rank.why};
    const bool is_worse = !worst.value || (kind.has_max ? *of_rank.value > *worst.value
                                                        : *of_rank.value < *worst.value);
    if (!is_worse) continue;
    const Steps& steps = kind.unit == BudgetUnit::kStepPart && budget.name != "input_wait"
                             ? rank.device_steps
                             : rank.steps;
    worst = {of_rank.value, steps.count() > 0 ? steps.MeanMilliseconds() : 0, rank.rank, {}};
  }
  return worst;
}

std::string ValueText(BudgetUnit unit, double value) {
  switch (unit) {
    case BudgetUnit::kMilliseconds:
      return fmt::format("{:.1f} ms", value);
    case BudgetUnit::kStepPart:
      return fmt::format("{:.1f} ms/step", value);
    case BudgetUnit::kPerSecond:
      return fmt::format("{:.1f} a second", value);
    case BudgetUnit::kShare:
      return fmt::format("{:.1f} %", 100 * value);
    case BudgetUnit::kBytes:
      return value >= 0x1p30 ? fmt::format("{:.2f} GiB", value / 0x1p30)
                             : fmt::format("{:.1f} MiB", value / 0x1p20);
    case BudgetUnit::kPerStep:
      return fmt::format("{:.1f} a step", value);
  }
  return {};
}

}  // namespace trainprof
