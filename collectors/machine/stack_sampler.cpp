#include "collectors/machine/stack_sampler.h"

#include <errno.h>
#include <sys/syscall.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "collectors/machine/schedule.h"
#include "collectors/stacks/python_start.h"
#include "trace/recording/wire/facts.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof {
namespace {

using recording::HostEntity;
using recording::MonotonicNs;
using recording::ThreadStateCode;

// Of one core, for each core that the machine has, and its bounds: on 2 cores 1 %.
constexpr double kShareACore = 0.005;
constexpr double kLeastShare = 0.01;
constexpr double kMostShare = 0.10;

// In rounds: 0.1 s, 1 s and 0.2 s at 50 Hz.
constexpr uint64_t kIdleThreadEvery = 5;
constexpr uint64_t kRanLately = 50;
constexpr uint64_t kManyChildrenEvery = 10;
constexpr size_t kFullRateChildren = 8;

// What is written at once is what a kill of the sampler costs.
constexpr int64_t kFlushNs = 100'000'000;
constexpr size_t kFlushBytes = 256 << 10;
// A sample stands for no more time than this, however long the sampler was held up.
constexpr int64_t kMostWeightNs = 1'000'000'000;
// A program that is no Python may become one, or load it: asked less and less often.
constexpr int64_t kFirstTryNs = 20'000'000;
constexpr int64_t kLastTryNs = 5'000'000'000;
constexpr uint32_t kMostTries = 3;
constexpr size_t kMostOpenFiles = 256;
// Lines of functions, threads and processes that were seen: far beyond most programs', and 50 MB.
constexpr size_t kMostRemembered = 1 << 17;
constexpr double kNewestRound = 0.1;  // of the newest round in the smoothed cost

// What every program that imports torch passes through, and what those that train do.
bool IsTorchs(std::string_view file) {
  constexpr std::string_view kParts[] = {"torch/__init__.py", "torch/nn/", "torch/autograd/",
                                         "torch/optim/"};
  return std::any_of(std::begin(kParts), std::end(kParts), [&](std::string_view part) {
    return file.find(part) != std::string_view::npos;
  });
}

// Hooks load our library when torch has been imported.
constexpr int64_t kHooksLoadNs = 3'000'000'000;
// Those that CUDA or NVTX bring come when the process first uses it.
constexpr int64_t kHooksComeNs = 200'000'000;

}  // namespace

StackSampler::StackSampler(std::filesystem::path root, double hz, uint32_t cores, SampleLog& log,
                           int door)
    : root_(std::move(root)),
      period_ns_(static_cast<int64_t>(1e9 / hz)),
      share_(std::clamp(kShareACore * cores, kLeastShare, kMostShare)),
      log_(log),
      number_frame_([this](std::string_view function, std::string_view file, int64_t line) {
        met_torch_ = met_torch_ || IsTorchs(file);
        return encoder_.AddFrame(function, file, line);
      }),
      given_(door),
      finder_(root_, &given_),
      random_(static_cast<uint32_t>(MonotonicNs())),
      began_ns_(MonotonicNs()),
      flushed_ns_(began_ns_) {}

void StackSampler::Follow(const std::vector<HostEntity>& processes) {
  std::set<pid_t> there;
  for (const HostEntity& process : processes) {
    const auto pid = static_cast<pid_t>(process.number);
    there.insert(pid);
    const auto known = targets_.find(pid);
    if (known != targets_.end()) {
      if (known->second.what.start_ticks == process.start_ticks) continue;
      SayRefusal(known->second);
      encoder_.EndProcess(known->second.number);
      targets_.erase(known);
    }
    Target& target = targets_[pid];
    target.what = process;
    target.number = encoder_.AddProcess(process);
    target.try_after_ns = kFirstTryNs;
  }
  for (auto it = targets_.begin(); it != targets_.end();) {
    if (!there.contains(it->first)) {
      SayRefusal(it->second);
      given_.Forget(it->first);
      encoder_.EndProcess(it->second.number);
      it = targets_.erase(it);
    } else {
      ++it;
    }
  }
}

void StackSampler::SayOnce(const std::string& text) {
  if (said_.insert(text).second) encoder_.Fact(fact::kNoStacks, text);
}

void StackSampler::GiveUp(Target& target, const std::string& why) {
  target.failures = kMostTries;
  target.refusal = fmt::format("{}: {}", target.what.text, why);
  if (!given_.is_open()) SayRefusal(target);
}

void StackSampler::SayRefusal(const Target& target) {
  if (!target.refusal.empty()) SayOnce(target.refusal);
}

void StackSampler::AcceptMemory() {
  for (const pid_t pid : given_.Accept()) {
    const auto found = targets_.find(pid);
    if (found == targets_.end()) continue;
    Target& target = found->second;
    target.refusal.clear();
    target.failures = 0;
    target.next_try_ns = 0;
    target.try_after_ns = kFirstTryNs;
  }
}

void StackSampler::Find(Target& target, int64_t now_ns) {
  if (now_ns < target.next_try_ns || target.failures >= kMostTries) return;
  const auto pid = static_cast<pid_t>(target.what.number);
  const auto place = finder_.Find(pid);
  target.next_try_ns = now_ns + target.try_after_ns;
  target.try_after_ns = std::min(target.try_after_ns * 2, kLastTryNs);
  if (!place.ok()) {
    // A process that is just being started may be unreadable for a moment.
    if (++target.failures < kMostTries) return;
    return GiveUp(target, place.error());
  }
  if (!place.value()) return;
  target.order =
      static_cast<size_t>(std::count_if(targets_.begin(), targets_.end(), [&](const auto& other) {
        return other.second.python && other.second.what.parent == target.what.parent;
      }));
  target.python.emplace(root_, pid, *place.value(), &given_);
}

// /proc/PID/task/TID/stat: "tid (name) state ...".
StackSampler::Status StackSampler::ReadStatus(ProcFile& file) {
  Status status;
  const auto text = file.Read(buffer_);
  if (!text) return status;
  const size_t open = text->find('(');
  const size_t close = text->rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 >= text->size()) {
    return status;
  }
  status.name = text->substr(open + 1, close - open - 1);
  const char state = (*text)[close + 2];
  status.state = state == 'R' ? ThreadStateCode::kRunning : ThreadStateCode::kWaiting;
  return status;
}

// /proc/PID/task/TID/syscall: "202 0x7f42a87a8660 ...", the call's number and its arguments.
bool StackSampler::WaitsForGil(const PythonProcess& python, ProcFile& syscall) {
  const auto text = syscall.Read(buffer_);
  if (!text) return false;
  Words words(*text);
  if (words.Next() != std::to_string(SYS_futex)) return false;
  std::string_view address = words.Next();
  if (!address.starts_with("0x")) return false;
  address.remove_prefix(2);
  uint64_t futex = 0;
  std::from_chars(address.data(), address.data() + address.size(), futex, 16);
  return python.IsGil(futex);
}

StackSampler::Thread& StackSampler::ThreadOf(Target& target, int64_t tid) {
  const auto known = target.threads.find(tid);
  if (known != target.threads.end()) return known->second;
  const std::filesystem::path folder =
      root_ / "proc" / std::to_string(target.what.number) / "task" / std::to_string(tid);
  ProcFile stat(folder / "stat");
  const uint32_t number = encoder_.AddThread(target.number, tid, ReadStatus(stat).name);
  return target.threads.try_emplace(tid, number, folder).first->second;
}

void StackSampler::SampleThread(Target& target, Thread& thread, const PythonThread& python) {
  Status status = ReadStatus(thread.stat);
  const bool may_want_gil = status.state == ThreadStateCode::kWaiting && threads_.size() > 1;
  if (may_want_gil && WaitsForGil(*target.python, thread.syscall)) {
    status.state = ThreadStateCode::kGil;
  }
  if (2 * targets_.size() * target.threads.size() > kMostOpenFiles) {
    thread.stat.Close();
    thread.syscall.Close();
  }
  const int64_t now = MonotonicNs();
  const StackOutcome outcome = target.python->ReadStack(python, number_frame_, frames_);
  if (status.state == ThreadStateCode::kRunning) thread.running_round = round_;
  const bool ran_lately = thread.running_round > 0 && round_ - thread.running_round < kRanLately;
  const bool is_main = python.tid == target.what.number;
  thread.due_round = round_ + (is_main || ran_lately ? 1 : kIdleThreadEvery);
  if (outcome == StackOutcome::kUnusable) {
    ++unusable_;  // the next sample stands for its time as well
    return;
  }
  const int64_t passed = thread.last_ns == 0 ? period_ns_ : now - thread.last_ns;
  encoder_.Sample(now, thread.number, status.state, std::min(passed, kMostWeightNs), frames_);
  thread.last_ns = now;
  ++samples_;
}

void StackSampler::ForgetEndedThreads(Target& target) {
  std::erase_if(target.threads,
                [&](const auto& entry) { return entry.second.listed_round != round_; });
}

void StackSampler::SampleProcess(Target& target) {
  if (!target.python->ListThreads(threads_)) {
    // It is ending, has become another program, or may not be read.
    const int error = target.python->error();
    target.python.reset();
    target.threads.clear();
    target.next_try_ns = 0;
    target.try_after_ns = kFirstTryNs;
    if (error == ESRCH || error == EFAULT) return;
    return GiveUp(target, WhyUnreadable(error));
  }
  met_torch_ = false;
  // A listing that differs in nothing else has no fewer threads than were known.
  for (const PythonThread& python : threads_) {
    Thread& thread = ThreadOf(target, python.tid);
    thread.listed_round = round_;
    if (round_ >= thread.due_round) SampleThread(target, thread, python);
  }
  if (target.threads.size() > threads_.size()) ForgetEndedThreads(target);
  if (met_torch_ && target.torch_ns == 0) target.torch_ns = MonotonicNs();
  if (!target.no_hooks.empty()) {
    TakeBackIfHooksCame(target);
  } else if (target.torch_ns != 0 && target.hooks_asked < 2) {
    SayIfNoHooks(target);
  }
}

// Of several processes that lack them for one reason the first is named.
void StackSampler::SayIfNoHooks(Target& target) {
  const bool may_be_loaded = MonotonicNs() - target.torch_ns > kHooksLoadNs;
  if (target.hooks_asked == 1 && !may_be_loaded) return;
  target.hooks_asked = may_be_loaded ? 2 : 1;
  const std::string pid = std::to_string(target.what.number);
  const auto why = WhyNoHooks(root_ / "proc" / pid, may_be_loaded);
  if (!why || !said_.insert(*why).second) return;
  target.no_hooks = *why;
  target.hooks_due_ns = MonotonicNs() + kHooksComeNs;
  encoder_.Fact(fact::kNoHooks + pid,
                fmt::format("{} (process {}) uses torch without trainprof's hooks: {}",
                            target.what.text, pid, *why));
}

// Ever less often.
void StackSampler::TakeBackIfHooksCame(Target& target) {
  const int64_t now = MonotonicNs();
  if (now < target.hooks_due_ns) return;
  target.hooks_due_ns = now + std::max(kHooksComeNs, (now - target.torch_ns) / 10);
  const std::string pid = std::to_string(target.what.number);
  if (!HasCollector(root_ / "proc" / pid)) return;
  said_.erase(target.no_hooks);
  target.no_hooks.clear();
  target.hooks_asked = 2;
  encoder_.Fact(fact::kNoHooks + pid, "");
}

void StackSampler::Sample() {
  ++round_;
  AcceptMemory();
  const int64_t now = MonotonicNs();
  const int64_t cpu_begin = ThreadCpuNs();
  for (auto& [pid, target] : targets_) {
    if (!target.python) Find(target, now);
    if (!target.python) continue;
    const bool every_time = target.order < kFullRateChildren;
    if (every_time || (round_ + target.order) % kManyChildrenEvery == 0) SampleProcess(target);
  }
  if (now - flushed_ns_ >= kFlushNs || encoder_.pending_bytes() >= kFlushBytes) Flush();
  if (encoder_.remembered() > kMostRemembered) BeginAnew();
  cost_ns_ += kNewestRound * (static_cast<double>(ThreadCpuNs() - cpu_begin) - cost_ns_);
}

int64_t StackSampler::NextNs() {
  const double period =
      std::max(static_cast<double>(period_ns_ * log_.Slowdown()), cost_ns_ / share_);
  std::uniform_real_distribution<double> jitter(0.5, 1.5);
  return MonotonicNs() + static_cast<int64_t>(period * jitter(random_));
}

void StackSampler::Flush() {
  log_.Append(encoder_.TakeFrame());
  flushed_ns_ = MonotonicNs();
}

// Everything is found and said again: a program that makes functions without end would fill memory.
void StackSampler::BeginAnew() {
  Flush();
  std::vector<HostEntity> processes;
  std::vector<std::pair<uint32_t, pid_t>> order;
  for (const auto& [pid, target] : targets_) order.emplace_back(target.number, pid);
  std::sort(order.begin(), order.end());
  for (const auto& [number, pid] : order) processes.push_back(targets_.at(pid).what);
  targets_.clear();
  encoder_ = recording::StackEncoder();
  Follow(processes);
}

void StackSampler::Finish() {
  for (const auto& [pid, target] : targets_) SayRefusal(target);
  const double wall = static_cast<double>(MonotonicNs() - began_ns_) / 1e9;
  encoder_.Fact(fact::kStackSampler,
                fmt::format("took {:.3f} s of CPU time in {:.1f} s: {} stacks, {} unusable",
                            static_cast<double>(ThreadCpuNs()) / 1e9, wall, samples_, unusable_));
  Flush();
}

}  // namespace trainprof
