#include "analysis/account/sampled_phases.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// "step" of "Adam.step": Python 3.10 knows no more of a name.
std::string_view LastPart(std::string_view function) {
  return function.substr(function.rfind('.') + 1);
}

// What torch.distributed's collectives begin with.
constexpr std::string_view kCollectives[] = {"all_",   "barrier",           "broadcast",
                                             "gather", "monitored_barrier", "reduce",
                                             "recv",   "scatter",           "send"};

Phase PhaseOfFrame(std::string_view function, std::string_view file) {
  // Most frames are not torch's.
  const size_t torch = file.rfind("torch/");
  if (torch == std::string_view::npos || (torch > 0 && file[torch - 1] != '/')) return Phase::kNone;
  const std::string_view module = file.substr(torch + std::string_view("torch/").size());
  const std::string_view name = LastPart(function);
  if (module == "utils/data/dataloader.py") {
    return name == "__next__" || name == "__iter__" ? Phase::kInputWait : Phase::kNone;
  }
  if (module == "distributed/distributed_c10d.py") {
    const bool is_collective =
        std::any_of(std::begin(kCollectives), std::end(kCollectives),
                    [&](std::string_view collective) { return name.starts_with(collective); });
    return is_collective ? Phase::kRankWait : Phase::kNone;
  }
  if (module == "autograd/__init__.py") {
    return name == "backward" || name == "grad" ? Phase::kBackward : Phase::kNone;
  }
  if (module == "nn/modules/module.py") {
    return name == "_call_impl" || name == "_wrapped_call_impl" ? Phase::kForward : Phase::kNone;
  }
  if (module == "nn/functional.py") return Phase::kForward;
  const bool is_optimizer = module.starts_with("optim/") && module != "optim/lr_scheduler.py" &&
                            module != "optim/swa_utils.py";
  // torch puts a wrapper of its own around the step of every optimizer, also those of others.
  const bool is_step = name == "step" || (module == "optim/optimizer.py" && name == "wrapper");
  return is_optimizer && is_step ? Phase::kOptimizer : Phase::kNone;
}

// Of several functions of one stack the first of these counts.
constexpr Phase kOrder[] = {Phase::kInputWait, Phase::kRankWait, Phase::kBackward, Phase::kForward,
                            Phase::kOptimizer};

class PhasesOfStacks {
 public:
  explicit PhasesOfStacks(const Trace& trace) : trace_(trace) {}
  Phase Of(StackId stack) {
    const auto [it, is_new] = known_.try_emplace(stack);
    if (is_new) it->second = PhaseOfStack(trace_, stack);
    return it->second;
  }

 private:
  const Trace& trace_;
  std::unordered_map<StackId, Phase> known_;
};

TrackId TrainingThread(const Trace& trace, const Steps& steps, PhasesOfStacks& phases) {
  std::map<TrackId, int64_t> trained_ns;
  for (size_t row = 0; row < trace.samples.size(); ++row) {
    CancelPoint(row);
    const Phase phase = phases.Of(trace.samples.stack[row]);
    if (phase == Phase::kNone || phase == Phase::kInputWait) continue;
    trained_ns[trace.samples.track[row]] += std::max<int64_t>(trace.samples.WeightNs(row), 1);
  }
  if (trained_ns.contains(steps.thread)) return steps.thread;
  const auto most = std::max_element(trained_ns.begin(), trained_ns.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == trained_ns.end() ? kNoTrack : most->first;
}

}  // namespace

Phase PhaseOfStack(const Trace& trace, StackId stack) {
  const auto* best = std::end(kOrder);
  trace.stacks.ForEachFrame(stack, [&](const CallFrame& frame) {
    const std::string_view function = trace.Text(frame.function);
    const std::string_view file = trace.Text(frame.file);
    // A forked worker's stack goes on with that of the process it was forked from.
    if (IsForkedStart(function, file)) return false;
    best = std::min(best, std::find(std::begin(kOrder), best, PhaseOfFrame(function, file)));
    return true;
  });
  return best == std::end(kOrder) ? Phase::kNone : *best;
}

SampledPhases FindSampledPhases(const Trace& trace, const Steps& steps) {
  SampledPhases sampled;
  PhasesOfStacks phases(trace);
  sampled.thread = TrainingThread(trace, steps, phases);
  if (sampled.thread == kNoTrack) return sampled;
  const SampleTable& samples = trace.samples;
  const auto [first, last] = samples.rows_of(sampled.thread);
  for (uint32_t row = first; row < last; ++row) {
    CancelPoint(row);
    // A sample's weight is the time since the one before it.
    const TraceTime begin = samples.begin[row];
    const bool has_next = row + 1 < last;
    TraceTime end = begin + Nanoseconds(samples.WeightNs(has_next ? row + 1 : row));
    if (has_next) end = std::min(end, samples.begin[row + 1]);
    const Phase phase = phases.Of(samples.stack[row]);
    if (phase != Phase::kNone && begin < end) sampled.phases.push_back({{begin, end}, phase});
  }
  return sampled;
}

}  // namespace trainprof
