#include "analysis/job/diff_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/kernel_title.h"

namespace trainprof {
namespace {

constexpr double kNsPerMs = 1e6;

template <size_t N>
double Sum(const std::array<Duration, N>& split) {
  double sum = 0;
  for (const Duration part : split) sum += static_cast<double>(part.ns);
  return sum;
}

double Busy(const DeviceSplit& split) {
  double busy = 0;
  for (size_t c = 0; c < kDeviceClasses; ++c) {
    if (!IsIdle(static_cast<DeviceClass>(c))) busy += static_cast<double>(split[c].ns);
  }
  return busy;
}

// Those that train.
std::vector<const DeviceSteps*> DevicesOf(const JobAnalysis& job, size_t rank) {
  std::vector<const DeviceSteps*> devices;
  for (size_t d = 0; d < job.steps[rank].devices.size(); ++d) {
    if (!job.ranks[rank].devices[d].stray) devices.push_back(&job.steps[rank].devices[d]);
  }
  return devices;
}

// A value a step; of several devices, their mean. `of(device)` gives what tells a step's value, in ns.
template <class Of>
std::vector<double> DeviceValues(const JobAnalysis& job, size_t rank, Of of) {
  const std::vector<const DeviceSteps*> devices = DevicesOf(job, rank);
  std::vector<double> values(devices.empty() ? 0 : devices[0]->steps.size());
  for (const DeviceSteps* device : devices) {
    const auto value = of(*device);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] += value(i) / static_cast<double>(devices.size());
    }
  }
  return values;
}

template <class Of>
std::vector<double> HostValues(const JobAnalysis& job, size_t rank, Of of) {
  std::vector<double> values;
  for (const HostSplit& step : job.steps[rank].host) values.push_back(of(step));
  return values;
}

std::vector<double> StepValues(const JobAnalysis& job, size_t rank, bool on_devices) {
  if (!on_devices) return HostValues(job, rank, [](const HostSplit& step) { return Sum(step); });
  return DeviceValues(job, rank, [](const DeviceSteps& device) {
    return [&device](size_t i) { return Sum(device.steps[i]); };
  });
}

double WanderShare(const JobAnalysis& job) {
  return HostWasBusy(job) ? kRunToRunOnBusyHost * kRunToRunShare : kRunToRunShare;
}

void SortByDifference(std::vector<DiffRow>& rows) {
  std::sort(rows.begin(), rows.end(), [](const DiffRow& x, const DiffRow& y) {
    const double of_x = std::abs(x.Difference());
    const double of_y = std::abs(y.Difference());
    return of_x != of_y ? of_x > of_y : x.name < y.name;
  });
}

bool IsThere(const DiffRow& row) { return row.a_ms != 0 || row.b_ms != 0; }

const OperationSteps* Find(const DeviceSteps& device, const std::string& name) {
  const auto found =
      std::ranges::find_if(device.operations, [&](const auto& each) { return each.name == name; });
  return found == device.operations.end() ? nullptr : &*found;
}

double Nanoseconds(const OperationSteps* operation, size_t step) {
  return operation == nullptr ? 0 : static_cast<double>(operation->steps[step].ns);
}

// All that a device did; operations at the same time count each.
double AllOperations(const DeviceSteps& device, size_t step) {
  double sum = Nanoseconds(&device.others, step);
  for (const OperationSteps& each : device.operations) sum += Nanoseconds(&each, step);
  return sum;
}

// The names whose time is known on every device: where a device has more names than it tells of,
// only those that it tells of.
std::set<std::string> ComparableNames(std::initializer_list<std::span<const JobAnalysis>> sides) {
  std::set<std::string> names;
  const auto for_each_device = [&](auto visit) {
    for (const std::span<const JobAnalysis> jobs : sides) {
      for (const JobAnalysis& job : jobs) {
        for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
          for (const DeviceSteps* device : DevicesOf(job, rank)) visit(*device);
        }
      }
    }
  };
  for_each_device([&](const DeviceSteps& device) {
    for (const OperationSteps& each : device.operations) names.insert(each.name);
  });
  for_each_device([&](const DeviceSteps& device) {
    if (device.others.names == 0) return;
    std::erase_if(names, [&](const std::string& name) { return Find(device, name) == nullptr; });
  });
  return names;
}

// How often a device does operations of that name in a step; mean of runs, ranks and devices.
double CountOf(std::span<const JobAnalysis> jobs, const std::string& name) {
  double of_runs = 0;
  for (const JobAnalysis& job : jobs) {
    double of_ranks = 0;
    for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
      const std::vector<const DeviceSteps*> devices = DevicesOf(job, rank);
      for (const DeviceSteps* device : devices) {
        const OperationSteps* const found = Find(*device, name);
        if (found == nullptr) continue;
        of_ranks += static_cast<double>(found->count) /
                    static_cast<double>(device->steps.size() * devices.size());
      }
    }
    of_runs += of_ranks / static_cast<double>(job.ranks.size());
  }
  return of_runs / static_cast<double>(jobs.size());
}

bool SameRanks(const JobAnalysis& x, const JobAnalysis& y) {
  return std::ranges::equal(x.ranks, y.ranks, [](const RankAnalysis& r, const RankAnalysis& s) {
    return r.rank == s.rank;
  });
}

}  // namespace

bool HostWasBusy(const JobAnalysis& job) {
  return std::ranges::any_of(job.ranks, [](const RankAnalysis& rank) {
    return std::ranges::any_of(rank.host_facts, [](const HostFact& fact) {
      return fact.id == "cpu_busy" && fact.value >= kBusyHostPercent;
    });
  });
}

double MeanStepMs(const JobAnalysis& job, bool on_devices) {
  RunValues ranks;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    ranks.push_back(StepValues(job, rank, on_devices));
  }
  return MeanOf({&ranks, 1}) / kNsPerMs;
}

// `per_step(job, rank)`: a value a step.
template <class PerStep>
DiffRows::Sides DiffRows::Collect(const PerStep& per_step) const {
  Sides sides;
  for (const auto& [jobs, values] : {std::pair{a_, &sides.a}, std::pair{b_, &sides.b}}) {
    for (const JobAnalysis& job : jobs) {
      RunValues& run = values->emplace_back();
      for (size_t rank = 0; rank < job.ranks.size(); ++rank) run.push_back(per_step(job, rank));
    }
  }
  return sides;
}

DiffRows::DiffRows(std::span<const JobAnalysis> a, std::span<const JobAnalysis> b, bool on_devices)
    : a_(a), b_(b), on_devices_(on_devices) {
  step_ = Collect(
      [&](const JobAnalysis& job, size_t rank) { return StepValues(job, rank, on_devices_); });
}

DiffRow DiffRows::Row(std::string name, std::string title, const Sides& sides,
                      Wander wander) const {
  const double a = MeanOf(sides.a);
  const double b = MeanOf(sides.b);
  const bool of_step = wander == Wander::kOfStep;
  const double of_a = WanderShare(a_[0]) * (of_step ? MeanOf(step_.a) : a);
  const double of_b = WanderShare(b_[0]) * (of_step ? MeanOf(step_.b) : b);
  DiffRow row{std::move(name), std::move(title), a / kNsPerMs, b / kNsPerMs, {}, 0, 0};
  row.bounds = DifferenceBounds({sides.a, of_a}, {sides.b, of_b});
  if (row.bounds) row.bounds = Bounds{row.bounds->low / kNsPerMs, row.bounds->high / kNsPerMs};
  return row;
}

DiffRow DiffRows::Step() const { return Row("step", "step", step_); }

std::vector<DiffTable> DiffRows::Tables() const {
  std::vector<DiffTable> tables;
  if (on_devices_) tables.push_back(ByClass());
  tables.push_back(ByPhase());
  if (on_devices_) tables.push_back(ByOperation());
  if (HasRanks()) tables.push_back(ByRank());
  return tables;
}

bool DiffRows::HasRanks() const {
  const auto same = [&](const JobAnalysis& job) { return SameRanks(job, a_[0]); };
  return a_[0].ranks.size() > 1 && std::ranges::all_of(a_, same) && std::ranges::all_of(b_, same);
}

DiffRows::Sides DiffRows::Of(const size_t* rank, Sides sides) {
  if (rank == nullptr) return sides;
  for (Values* side : {&sides.a, &sides.b}) {
    for (RunValues& run : *side) run = {std::move(run[*rank])};
  }
  return sides;
}

std::vector<DiffRow> DiffRows::Classes(const size_t* rank) const {
  std::vector<DiffRow> rows;
  for (size_t c = 0; c < kDeviceClasses; ++c) {
    const auto of = static_cast<DeviceClass>(c);
    const Sides sides = Collect([&](const JobAnalysis& job, size_t r) {
      return DeviceValues(job, r, [c](const DeviceSteps& device) {
        return [&device, c](size_t i) { return static_cast<double>(device.steps[i][c].ns); };
      });
    });
    DiffRow row = Row(std::string(Name(of)), (IsIdle(of) ? "idle: " : "") + std::string(Title(of)),
                      Of(rank, sides));
    if (IsThere(row)) rows.push_back(std::move(row));
  }
  SortByDifference(rows);
  return rows;
}

std::vector<DiffRow> DiffRows::Phases(const size_t* rank) const {
  std::vector<DiffRow> rows;
  for (size_t c = 0; c < kHostClasses; ++c) {
    const auto of = static_cast<HostClass>(c);
    const Sides sides = Collect([&](const JobAnalysis& job, size_t r) {
      return HostValues(job, r,
                        [&](const HostSplit& step) { return static_cast<double>(step[c].ns); });
    });
    DiffRow row = Row(std::string(Name(of)), std::string(Title(of)), Of(rank, sides));
    if (IsThere(row)) rows.push_back(std::move(row));
  }
  SortByDifference(rows);
  return rows;
}

std::vector<DiffRow> DiffRows::PartsOf(size_t rank) const {
  return on_devices_ ? Classes(&rank) : Phases(&rank);
}

DiffTable DiffRows::ByPhase() const {
  const Sides steps =
      Collect([&](const JobAnalysis& job, size_t rank) { return StepValues(job, rank, false); });
  return {DiffTable::By::kPhase, Phases(nullptr), Row("step", "step", steps)};
}

DiffTable DiffRows::ByOperation() const {
  const auto collect = [&](auto of) {
    return Collect(
        [&](const JobAnalysis& job, size_t rank) { return DeviceValues(job, rank, of); });
  };
  const Sides busy = collect([](const DeviceSteps& device) {
    return [&device](size_t i) { return Busy(device.steps[i]); };
  });
  DiffTable table{DiffTable::By::kOperation, {}, Row("busy", "busy", busy)};
  const std::set<std::string> names = ComparableNames({a_, b_});
  for (const std::string& name : names) {
    const Sides sides = collect([&](const DeviceSteps& device) {
      return [found = Find(device, name)](size_t i) { return Nanoseconds(found, i); };
    });
    DiffRow row = Row(name, std::string(KernelTitle(name)), sides, Wander::kOfOwn);
    row.a_count = CountOf(a_, name);
    row.b_count = CountOf(b_, name);
    table.rows.push_back(std::move(row));
  }
  const Sides others = collect([&](const DeviceSteps& device) {
    std::vector<const OperationSteps*> rest = {&device.others};
    for (const OperationSteps& each : device.operations) {
      if (!names.contains(each.name)) rest.push_back(&each);
    }
    return [rest = std::move(rest)](size_t i) {
      double sum = 0;
      for (const OperationSteps* each : rest) sum += Nanoseconds(each, i);
      return sum;
    };
  });
  const Sides overlap = collect([](const DeviceSteps& device) {
    return [&device](size_t i) { return Busy(device.steps[i]) - AllOperations(device, i); };
  });
  DiffRow rest = Row("others", "others, of less time", others, Wander::kOfOwn);
  DiffRow less = Row("overlap", "less what ran at the same time", overlap, Wander::kOfOwn);
  if (IsThere(rest)) table.rows.push_back(std::move(rest));
  if (IsThere(less)) table.rows.push_back(std::move(less));
  SortByDifference(table.rows);
  return table;
}

DiffTable DiffRows::ByRank() const {
  DiffTable table{DiffTable::By::kRank, {}, Step()};
  for (size_t rank = 0; rank < a_[0].ranks.size(); ++rank) {
    Sides own;
    for (const RunValues& run : step_.a) own.a.push_back({run[rank]});
    for (const RunValues& run : step_.b) own.b.push_back({run[rank]});
    const std::string number = std::to_string(a_[0].ranks[rank].rank);
    table.rows.push_back(Row(number, "rank " + number, own));
  }
  SortByDifference(table.rows);
  return table;
}

}  // namespace trainprof
