#include "analysis/host/host_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// What is said: below these a figure is everyday noise. Shares of the time in percent.
constexpr double kThrottledPercent = 5;
constexpr double kLoadedGpuPercent = 10;    // utilisation from which a slow link is no idle state
constexpr double kNarrowLinkPercent = 50;   // of the time under load
constexpr double kBusyProcessPercent = 90;  // of one core
constexpr double kBusyMachinePercent = 90;  // of all cores
constexpr double kBusyDiskPercent = 90;
constexpr double kStalledPercent = 5;  // all tasks at once, by /proc/pressure
constexpr double kSwappedMib = 1;
constexpr double kReadMbPerSecond = 20;  // from storage, by all processes of the run
constexpr double kQuotaPercent = 1;
constexpr double kGarbagePercent = 1;
constexpr double kMib = 1 << 20;

// One counter of one process: its rows hold from one to the next.
class Counter {
 public:
  Counter(const Trace& trace, const IntervalSet& window) : trace_(&trace), window_(&window) {}

  void AddRow(uint32_t row) { rows_.push_back(row); }

  // Calls use(value of the series, when it held) for the part of each row within the window.
  template <class Use>
  void ForEach(std::string_view series, Use use) const {
    const StringId key = trace_->strings.Find(series);
    for (size_t i = 0; i + 1 < rows_.size(); ++i) {
      CancelPoint(i);
      const Interval held{trace_->counters.begin[rows_[i]], trace_->counters.begin[rows_[i + 1]]};
      const Duration inside = window_->TotalWithin(held);
      const auto value = trace_->args.Find(trace_->counters.args[rows_[i]], key);
      if (inside.ns > 0 && value) use(value->Number(), held, inside);
    }
  }
  // Over the time in which it held; 0 where it never did.
  double Mean(std::string_view series) const {
    double sum = 0;
    double time = 0;
    ForEach(series, [&](double value, const Interval&, Duration inside) {
      sum += value * inside.ToSeconds();
      time += inside.ToSeconds();
    });
    return time == 0 ? 0 : sum / time;
  }
  // Value times seconds.
  double Integral(std::string_view series) const {
    double sum = 0;
    ForEach(series, [&](double value, const Interval&, Duration inside) {
      sum += value * inside.ToSeconds();
    });
    return sum;
  }
  double Last(std::string_view series) const {
    double last = 0;
    ForEach(series, [&](double value, const Interval&, Duration) { last = value; });
    return last;
  }
  // When `holds(value)` is true of the series, within the window or not.
  template <class Holds>
  IntervalSet When(std::string_view series, Holds holds) const {
    std::vector<Interval> times;
    ForEach(series, [&](double value, const Interval& held, Duration) {
      if (holds(value)) times.push_back(held);
    });
    return IntervalSet::Union(std::move(times)).IntersectWith(*window_);
  }

 private:
  const Trace* trace_;
  const IntervalSet* window_;
  std::vector<uint32_t> rows_;
};

class FactFinder {
 public:
  FactFinder(const Trace& trace, const Steps& steps) : trace_(trace), steps_(steps) {
    const StringId host = trace.strings.Find("host");
    for (uint32_t row = 0; row < trace.counters.size(); ++row) {
      CancelPoint(row);
      if (trace.counters.category[row] != host || host == kEmptyString) continue;
      const ProcessId process = trace.ProcessOf(trace.counters.track[row]);
      const std::string name(trace.Text(trace.counters.name[row]));
      counters_[name].try_emplace(process, trace, steps.window).first->second.AddRow(row);
    }
  }

  std::vector<HostFact> Find() {
    FindOurGpus();
    for (const auto& [name, processes] : counters_) {
      for (const auto& [process, counter] : processes) {
        if (name.starts_with("GPU ") && !IsOurs(DeviceOf(name))) continue;
        if (Names(name, "GPU ", " throttled")) Throttled(name, counter);
        if (Names(name, "GPU ", " PCIe link")) NarrowLink(name, process, counter);
        if (Names(name, "Disk ", " busy %")) BusyDisk(name, process, counter);
      }
    }
    BusyProcesses();
    Reads();
    Machine();
    Cgroup();
    Garbage();
    Gil();
    const bool alone = steps_.count() == 0 && trace_.ranges.size() == 0 && trace_.api.size() == 0 &&
                       trace_.device_ops.size() == 0;
    if (alone) Overview();
    return std::move(facts_);
  }

 private:
  static bool Names(std::string_view name, std::string_view begin, std::string_view end) {
    return name.starts_with(begin) && name.ends_with(end);
  }
  // "GPU 0" of "GPU 0 throttled".
  static std::string DeviceOf(std::string_view name) {
    return std::string(name.substr(0, name.find(' ', name.find(' ') + 1)));
  }
  // In a container NVML does not know the processes by our pids: then all GPUs count.
  bool IsOurs(const std::string& gpu) const { return our_gpus_.empty() || our_gpus_.contains(gpu); }
  void FindOurGpus() {
    for (const auto& [name, processes] : counters_) {
      if (!Names(name, "GPU ", " used by this run")) continue;
      for (const auto& [process, counter] : processes) {
        if (counter.Mean("used") > 0) our_gpus_.insert(DeviceOf(name));
      }
    }
  }
  void Say(std::string_view id, double value, std::string_view unit, std::string text) {
    facts_.push_back({std::string(id), std::move(text), value, std::string(unit)});
  }
  const Counter* Of(const std::string& name, ProcessId process) const {
    const auto of_name = counters_.find(name);
    if (of_name == counters_.end()) return nullptr;
    const auto of_process = of_name->second.find(process);
    return of_process == of_name->second.end() ? nullptr : &of_process->second;
  }
  // Calls use(counter) for this counter of every process.
  template <class Use>
  void ForAll(const std::string& name, Use use) const {
    const auto of_name = counters_.find(name);
    if (of_name == counters_.end()) return;
    for (const auto& [process, counter] : of_name->second) use(counter);
  }

  void Throttled(std::string_view name, const Counter& counter) {
    for (const char* reason : {"SW power cap", "HW slowdown", "sync boost", "SW thermal slowdown",
                               "HW thermal slowdown", "HW power brake", "display clock setting"}) {
      const double percent = 100 * counter.Mean(reason);
      if (percent < kThrottledPercent) continue;
      Say("gpu_throttled", percent, "%",
          fmt::format("{} was throttled {:.0f} % of the time: {}", DeviceOf(name), percent,
                      reason));
    }
  }

  // An idle GPU trains its link down: only what happens under load counts.
  void NarrowLink(std::string_view name, ProcessId process, const Counter& link) {
    const std::string gpu = DeviceOf(name);
    const Counter* utilisation = Of(gpu + " utilisation %", process);
    if (utilisation == nullptr) return;
    const IntervalSet loaded =
        utilisation->When("gpu", [](double percent) { return percent >= kLoadedGpuPercent; });
    const double lanes_most = link.Last("lanes at most");
    const double generation_most = link.Last("generation at most");
    const IntervalSet narrow =
        link.When("lanes", [&](double lanes) { return lanes < lanes_most; })
            .UnionWith(link.When("generation", [&](double g) { return g < generation_most; }))
            .IntersectWith(loaded);
    if (loaded.Empty()) return;
    const double percent =
        100 * static_cast<double>(narrow.Total().ns) / static_cast<double>(loaded.Total().ns);
    if (percent < kNarrowLinkPercent) return;
    Say("pcie_link", percent, "%",
        fmt::format("{}: PCIe link at gen{:.0f} x{:.0f} of gen{:.0f} x{:.0f}, {:.0f} % of the time "
                    "that the GPU was busy",
                    gpu, link.Last("generation"), link.Last("lanes"), generation_most, lanes_most,
                    percent));
  }

  void BusyDisk(std::string_view name, ProcessId process, const Counter& counter) {
    const double percent = counter.Mean("busy");
    if (percent < kBusyDiskPercent) return;
    const std::string disk(name.substr(0, name.size() - std::string_view(" busy %").size()));
    const Counter* traffic = Of(disk + " MB/s", process);
    Say("disk_busy", percent, "%",
        fmt::format("{} was busy {:.0f} % of the time, {:.0f} MB/s read, {:.0f} MB/s written", disk,
                    percent, traffic == nullptr ? 0 : traffic->Mean("read"),
                    traffic == nullptr ? 0 : traffic->Mean("written")));
  }

  // Of the others than the one that steps, whose threads may well take several cores.
  void BusyProcesses() {
    const auto all = counters_.find("CPU % of one core");
    if (all == counters_.end()) return;
    const ProcessId stepping =
        steps_.thread == kNoTrack ? kNoProcess : trace_.ProcessOf(steps_.thread);
    int busy = 0;
    int others = 0;
    double least = 0;
    std::set<std::string> names;
    for (const auto& [process, counter] : all->second) {
      if (process == stepping) continue;
      ++others;
      const double percent = counter.Mean("user") + counter.Mean("system");
      if (percent < kBusyProcessPercent) continue;
      least = busy == 0 ? percent : std::min(least, percent);
      ++busy;
      names.emplace(trace_.Text(trace_.processes[Index(process)].name));
    }
    if (busy == 0) return;
    Say("processes_busy", least, "%",
        fmt::format("{} of {} processes beside the training one took {:.0f} % of a core or more "
                    "({})",
                    busy, others, least, fmt::join(names, ", ")));
  }

  // What was read, and what the page cache did not have of it. Reads of mapped files are of storage
  // alone: the kernel counts no others.
  void Reads() {
    double all = 0;
    double storage = 0;
    ForAll("Files MB/s", [&](const Counter& files) {
      all += files.Integral("read, caches too");
      storage += files.Integral("read from storage");
    });
    const double worth_saying = kReadMbPerSecond * steps_.window.Total().ToSeconds();
    const char* const unit = steps_.count() > 0 ? "MB/step" : "MB";
    const auto each = [&](double mb) { return mb / static_cast<double>(steps_.divisor()); };
    if (storage > 0 && storage >= worth_saying) {
      Say("read_from_storage", each(storage), unit,
          fmt::format(
              "the run's processes read {:.1f} {} from storage, {:.0f} % of all that they read: "
              "the page cache does not hold it",
              each(storage), unit, 100 * std::min(storage / std::max(all, storage), 1.0)));
    } else if (all > 0 && all >= worth_saying) {
      Say("read_from_caches", each(all), unit,
          fmt::format("the run's processes read {:.1f} {}, {:.1f} % of it from storage: the page "
                      "cache holds nearly all",
                      each(all), unit, 100 * storage / all));
    }
  }

  void Machine() {
    ForAll("CPU % of all cores", [&](const Counter& cpu) {
      const double percent =
          cpu.Mean("user") + cpu.Mean("system") + cpu.Mean("interrupts") + cpu.Mean("stolen");
      if (percent < kBusyMachinePercent) return;
      Say("cpu_busy", percent, "%", fmt::format("all cores together were busy {:.0f} %", percent));
    });
    ForAll("Swap MB/s", [&](const Counter& swap) {
      const double mib = swap.Integral("in") * 1e6 / kMib;
      if (mib < kSwappedMib) return;
      Say("swap_in", mib, "MiB", fmt::format("{:.0f} MiB were swapped in", mib));
    });
    for (const char* resource : {"memory", "I/O"}) {
      ForAll(fmt::format("Stalled on {} %", resource), [&](const Counter& pressure) {
        const double percent = pressure.Mean("all");
        if (percent < kStalledPercent) return;
        Say(resource == std::string_view("memory") ? "memory_stall" : "io_stall", percent, "%",
            fmt::format("all runnable tasks waited for {} {:.0f} % of the time", resource,
                        percent));
      });
    }
  }

  // Pauses of the stepping thread, which Python's hooks record.
  void Garbage() {
    if (steps_.thread == kNoTrack) return;
    std::vector<Interval> pauses;
    const auto [first, last] = trace_.ranges.rows_of(steps_.thread);
    for (uint32_t row = first; row < last; ++row) {
      CancelPoint(row);
      if (trace_.Facts(trace_.ranges.name[row]).is_garbage_collection == 0) continue;
      pauses.push_back(trace_.ranges.interval(Row{row}));
    }
    const IntervalSet all = IntervalSet::Union(std::move(pauses)).IntersectWith(steps_.window);
    const Duration total = all.Total();
    const double percent = 100 * total.ToSeconds() / steps_.window.Total().ToSeconds();
    if (total.ns == 0 || percent < kGarbagePercent) return;
    Duration longest;
    for (const Interval& pause : all.intervals()) longest = std::max(longest, pause.Length());
    const bool has_steps = steps_.count() > 0;
    const double each = total.ToMilliseconds() / static_cast<double>(steps_.divisor());
    Say("garbage_collection", each, has_steps ? "ms/step" : "ms",
        fmt::format(
            "Python's garbage collector stopped the training thread for {:.1f} {} ({:.0f} %), {:.1f} ms "
            "at the longest: gc.freeze() once all is set up leaves it less to look at; gc.disable(), with "
            "gc.collect() now and then, chooses when",
            each, has_steps ? "ms/step" : "ms", percent, longest.ToMilliseconds()));
  }

  // What the stepping thread waited for the interpreter's lock, and who ran meanwhile.
  void Gil() {
    constexpr double kGilPercent = 3;
    constexpr int64_t kFewSamples = 20;
    if (steps_.thread == kNoTrack || trace_.samples.size() == 0) return;
    int64_t count = 0;
    double all = 0;
    double gil = 0;
    ForSamples(steps_.thread, [&](uint32_t row, double weight) {
      ++count;
      all += weight;
      if (trace_.samples.state[row] == ThreadState::kGil) gil += weight;
    });
    const double percent = 100 * gil / std::max(all, 1.0);
    if (count < kFewSamples || percent < kGilPercent) return;
    const bool has_steps = steps_.count() > 0;
    const char* const unit = has_steps ? "ms/step" : "ms";
    const double each = steps_.window.Total().ToMilliseconds() * percent / 100 /
                        static_cast<double>(steps_.divisor());
    const std::string holder = HolderOfGil();
    Say("gil_wait", each, unit,
        fmt::format(
            "the training thread waited for Python's interpreter lock (GIL) for {:.1f} {} ({:.0f} "
            "%), by {} samples: other threads of its process run Python meanwhile{}. A process of "
            "their own does not hold it up",
            each, unit, percent, count, holder));
  }

  // Calls use(row, weight) for the thread's samples within the window.
  template <class Use>
  void ForSamples(TrackId thread, Use use) const {
    const auto [first, last] = trace_.samples.rows_of(thread);
    for (uint32_t row = first; row < last; ++row) {
      CancelPoint(row);
      const TraceTime at = trace_.samples.begin[row];
      if (steps_.window.TotalWithin({at, at + Nanoseconds(1)}).ns == 0) continue;
      use(row, static_cast<double>(trace_.samples.WeightNs(row)));
    }
  }

  // ", mostly train.py:12 decode": of the process's other threads that ran.
  std::string HolderOfGil() const {
    std::map<std::string, double> ran;
    for (uint32_t track = 0; track < trace_.tracks.size(); ++track) {
      const TrackId thread{track};
      if (thread == steps_.thread || trace_.ProcessOf(thread) != trace_.ProcessOf(steps_.thread)) {
        continue;
      }
      ForSamples(thread, [&](uint32_t row, double weight) {
        if (trace_.samples.state[row] != ThreadState::kRunning) return;
        trace_.stacks.ForEachFrame(trace_.samples.stack[row], [&](const CallFrame& frame) {
          if (frame.is_user) ran[PlaceText(frame)] += weight;
          return !frame.is_user;
        });
      });
    }
    const auto most = std::max_element(
        ran.begin(), ran.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == ran.end() ? "" : ", mostly " + most->first;
  }
  std::string PlaceText(const CallFrame& frame) const {
    const std::string_view file = trace_.Text(frame.file);
    return fmt::format("{}:{} {}", file.substr(file.rfind('/') + 1), frame.line,
                       trace_.Text(frame.function));
  }

  // Nothing else was recorded: what the run used, whether it stands out or not. What was not
  // sampled is not said.
  void Overview() {
    const double seconds = std::max(steps_.window.Total().ToSeconds(), 1e-9);
    std::optional<double> core_percent;
    ForAll("CPU % of one core", [&](const Counter& cpu) {
      core_percent =
          core_percent.value_or(0) + (cpu.Integral("user") + cpu.Integral("system")) / seconds;
    });
    if (core_percent) {
      Say("run_cpu", *core_percent, "%",
          fmt::format("the run's processes took {:.0f} % of a core on average", *core_percent));
    }
    ForAll("CPU % of all cores", [&](const Counter& cpu) {
      const double percent = cpu.Mean("user") + cpu.Mean("system");
      if (percent >= kBusyMachinePercent) return;  // said already
      Say("machine_cpu", percent, "%",
          fmt::format("all cores of the machine together were busy {:.0f} %", percent));
    });
    std::optional<double> largest;
    ForAll("Resident MiB", [&](const Counter& resident) {
      resident.ForEach("resident", [&](double mib, const Interval&, Duration) {
        largest = std::max(largest.value_or(0), mib);
      });
    });
    if (largest) {
      Say("run_memory", *largest, "MiB",
          fmt::format("the largest process held up to {:.0f} MiB of memory", *largest));
    }
    bool has_disks = false;
    double read = 0;
    double written = 0;
    for (const auto& [name, processes] : counters_) {
      if (!Names(name, "Disk ", " MB/s")) continue;
      for (const auto& [process, disk] : processes) {
        has_disks = true;
        read += disk.Integral("read");
        written += disk.Integral("written");
      }
    }
    if (has_disks) {
      Say("disk_traffic", read + written, "MB",
          fmt::format("the machine's disks: {:.0f} MB read, {:.0f} MB written", read, written));
    }
  }

  void Cgroup() {
    ForAll("cgroup CPU %", [&](const Counter& cpu) {
      if (cpu.Mean("throttled") < kQuotaPercent) return;
      const double ms =
          cpu.Integral("throttled") / 100 * 1e3 / static_cast<double>(steps_.divisor());
      const char* const unit = steps_.count() > 0 ? "ms/step" : "ms";
      Say("cgroup_throttled", ms, unit,
          fmt::format("the CPU quota of the control group held its CPUs back {:.1f} {} in all", ms,
                      unit));
    });
    ForAll("cgroup out-of-memory kills", [&](const Counter& counter) {
      const double kills = counter.Last("kills");
      if (kills == 0) return;
      Say("oom_kills", kills, "kills",
          fmt::format("the out-of-memory killer has ended {:.0f} processes of the control group",
                      kills));
    });
  }

  const Trace& trace_;
  const Steps& steps_;
  std::map<std::string, std::map<ProcessId, Counter>> counters_;
  std::set<std::string> our_gpus_;  // those that NVML says the run uses
  std::vector<HostFact> facts_;
};

}  // namespace

std::vector<HostFact> FindHostFacts(const Trace& trace, const Steps& steps) {
  return FactFinder(trace, steps).Find();
}

}  // namespace trainprof
