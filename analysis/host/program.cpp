#include "analysis/host/program.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "trace/base/cancel.h"
#include "trace/base/names.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

int64_t NumberIn(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "/usr/bin/python3.11 train.py" -> "python3.11"
std::string_view ProgramOf(std::string_view command) {
  command = command.substr(0, command.find(' '));
  return command.substr(command.rfind('/') + 1);
}

bool RunsPython(std::string_view program) {
  constexpr std::string_view kPrograms[] = {"python",     "pypy",      "ipython", "torchrun",
                                            "accelerate", "deepspeed", "jupyter"};
  return std::any_of(std::begin(kPrograms), std::end(kPrograms),
                     [&](std::string_view known) { return program.starts_with(known); });
}

// Names and stacks that only a Python program has.
bool IsOfPython(std::string_view text) {
  constexpr std::string_view kBegin[] = {"enumerate(DataLoader)#", "ProfilerStep#",
                                         "Optimizer.step#", "Optimizer.zero_grad#"};
  for (std::string_view begin : kBegin) {
    if (text.starts_with(begin)) return true;
  }
  return text.find(".py(") != std::string_view::npos;
}

// The last value of a series of the host's counters; 0 where there is none.
double LastOf(const Trace& trace, std::string_view counter, std::string_view series) {
  const StringId name = trace.strings.Find(counter);
  const StringId key = trace.strings.Find(series);
  double last = 0;
  for (uint32_t row = 0; name != kEmptyString && row < trace.counters.size(); ++row) {
    CancelPoint(row);
    if (trace.counters.name[row] != name) continue;
    if (const auto value = trace.args.Find(trace.counters.args[row], key)) last = value->Number();
  }
  return last;
}

// By the ranges in which workers made a batch.
LoaderWorkers WorkersThatFetch(const Trace& trace, const Steps& steps) {
  std::set<StringId> names;
  for (const std::string_view name : kFetches) names.insert(trace.strings.Find(name));
  names.erase(kEmptyString);
  std::set<ProcessId> processes;
  Duration total;
  int64_t batches = 0;
  for (uint32_t row = 0; !names.empty() && row < trace.ranges.size(); ++row) {
    CancelPoint(row);
    if (!names.contains(trace.ranges.name[row])) continue;
    const ProcessId process = trace.ProcessOf(trace.ranges.track[row]);
    const Interval interval = trace.ranges.interval(Row{row});
    if (process == trace.ProcessOf(steps.thread)) continue;
    if (steps.window.TotalWithin(interval).ns == 0) continue;
    processes.insert(process);
    total += interval.Length();
    ++batches;
  }
  LoaderWorkers workers;
  workers.count = static_cast<int64_t>(processes.size());
  if (batches > 0) workers.batch_ms = total.ToMilliseconds() / static_cast<double>(batches);
  return workers;
}

// What samples of the machine show of one process.
struct SampledCpu {
  double sum_percent = 0;  // of one core
  int64_t samples = 0;

  double MeanPercent() const { return sum_percent / static_cast<double>(samples); }
};

// Of the stepping process and of those that look like a loader's workers, within the steps.
std::map<ProcessId, SampledCpu> SampledProcesses(const Trace& trace, const Steps& steps) {
  const StringId cpu = trace.strings.Find("CPU % of one core");
  if (cpu == kEmptyString) return {};
  const StringId user = trace.strings.Find("user");
  const StringId system = trace.strings.Find("system");
  const ProcessId stepping = trace.ProcessOf(steps.thread);
  const auto named_by_torch = [&](const auto& process) {
    return trace.Text(process.name).starts_with("pt_data_worker");
  };
  const bool torch_names_them =
      std::any_of(trace.processes.begin(), trace.processes.end(), named_by_torch);
  // Those of older versions have the name of the process that forked them; where torch names its
  // workers, such a process is something else.
  const auto looks_like_one = [&](ProcessId process) {
    const auto& it = trace.processes[Index(process)];
    if (torch_names_them) return named_by_torch(it);
    return it.name != kEmptyString && it.name == trace.processes[Index(stepping)].name;
  };
  std::map<ProcessId, SampledCpu> of_process;
  for (uint32_t row = 0; row < trace.counters.size(); ++row) {
    CancelPoint(row);
    if (trace.counters.name[row] != cpu) continue;
    const ProcessId process = trace.ProcessOf(trace.counters.track[row]);
    const TraceTime at = trace.counters.begin[row];
    if (process != stepping && !looks_like_one(process)) continue;
    if (steps.window.TotalWithin({at, at + Nanoseconds(1)}).ns == 0) continue;
    SampledCpu& use = of_process[process];
    for (StringId series : {user, system}) {
      if (const auto value = trace.args.Find(trace.counters.args[row], series)) {
        use.sum_percent += value->Number();
      }
    }
    ++use.samples;
  }
  return of_process;
}

}  // namespace

Language LanguageOf(const Trace& trace) {
  const std::string_view command = EnvironmentValue(trace.environment, fact::kCommand);
  if (RunsPython(ProgramOf(command))) return Language::kPython;
  for (uint32_t id = 0; id < trace.strings.size(); ++id) {
    CancelPoint(id);
    if (IsOfPython(trace.Text(StringId{id}))) return Language::kPython;
  }
  const bool is_known = trace.source == SourceKind::kRecording && !command.empty();
  return is_known ? Language::kCpp : Language::kUnknown;
}

std::string InItsLanguage(Language language, const std::string& python, const std::string& cpp) {
  switch (language) {
    case Language::kPython:
      return python;
    case Language::kCpp:
      return cpp;
    case Language::kUnknown:
      break;
  }
  return "Python: " + python + "; LibTorch: " + cpp;
}

int64_t CoresOfRank(const Trace& trace) {
  const int64_t machine = NumberIn(EnvironmentValue(trace.environment, fact::kCores));
  const int64_t ranks =
      std::max<int64_t>(1, NumberIn(EnvironmentValue(trace.environment, fact::kRanksOnHost)));
  if (machine <= 0) return 0;
  const auto limit =
      static_cast<int64_t>(std::ceil(LastOf(trace, "cgroup CPU limit, cores", "limit")));
  const int64_t allowed = limit > 0 ? std::min(machine, limit) : machine;
  return std::max<int64_t>(1, allowed / ranks);
}

LoaderWorkers FindLoaderWorkers(const Trace& trace, const Steps& steps) {
  if (steps.thread == kNoTrack) return {};
  LoaderWorkers workers = WorkersThatFetch(trace, steps);
  int64_t sampled = 0;
  for (const auto& [process, use] : SampledProcesses(trace, steps)) {
    if (process == trace.ProcessOf(steps.thread)) continue;
    workers.cpu_percent += use.MeanPercent();
    ++sampled;
  }
  if (sampled > 0) workers.cpu_percent /= static_cast<double>(sampled);
  workers.count = std::max(workers.count, sampled);
  return workers;
}

double CoresUsed(const Trace& trace, const Steps& steps) {
  if (steps.thread == kNoTrack) return 0;
  double percent = 0;
  for (const auto& [process, use] : SampledProcesses(trace, steps)) percent += use.MeanPercent();
  return percent / 100;
}

}  // namespace trainprof
