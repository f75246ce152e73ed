#include "tests/virtual_gpu/model/host_functions.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <queue>
#include <thread>

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/graph.h"
#include "tests/virtual_gpu/model/operations.h"

namespace vgpu {
namespace {

bool IsLater(const HostTurn& a, const HostTurn& b) { return a.at_ns > b.at_ns; }

// The stream is held for as long as was settled when the function was asked for: it must begin in time, whoever else wants
// a processor. Where that is not allowed it does as it can.
void GoBeforeOthers() {
  int policy = SCHED_OTHER;
  sched_param parameter{};
  pthread_getschedparam(pthread_self(), &policy, &parameter);
  if (policy != SCHED_OTHER) return;
  parameter.sched_priority = sched_get_priority_min(SCHED_FIFO);
  pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter);
}

void Call(const HostTurn& turn) {
  HostFunctionRun run = turn.run;
  run.start_ns = NowNs();
  turn.function(turn.argument);
  run.end_ns = NowNs();
  if (Tool* tool = AttachedTool()) tool->Ran(run);
}

class Caller {
 public:
  void Add(const HostTurn& turn) {
    const std::lock_guard guard(lock_);
    if (left_++ == 0 && !running_) {
      running_ = true;
      std::thread([this] { Run(); }).detach();  // lives as long as the process, as the driver's own
    }
    turns_.push(turn);
    changed_.notify_all();
  }

  void WaitForAll() {
    if (left_ == 0) return;
    std::unique_lock guard(lock_);
    changed_.wait(guard, [this] { return left_ == 0; });
  }

 private:
  void Run() {
    GoBeforeOthers();
    std::unique_lock guard(lock_);
    for (;;) {
      changed_.wait(guard, [this] { return !turns_.empty(); });
      const HostTurn turn = turns_.top();
      turns_.pop();
      guard.unlock();
      WaitUntil(turn.at_ns);
      Call(turn);
      guard.lock();
      --left_;
      changed_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::priority_queue<HostTurn, std::vector<HostTurn>, decltype(&IsLater)> turns_{IsLater};
  std::atomic<int> left_ = 0;
  bool running_ = false;
};

Caller& TheCaller() {
  static Caller* const caller = new Caller;
  return *caller;
}

}  // namespace

void LaunchHostFunction(Stream& stream, HostFunction function, void* argument) {
  Machine& machine = TheMachine();
  int64_t at_ns;
  {
    std::unique_lock guard(machine.lock);
    if (stream.capture != nullptr) {
      GraphNode& node = AddCaptured(stream, {});
      node.function = function;
      node.argument = argument;
      return;
    }
    const int64_t now = WaitForRoom(stream, guard);
    at_ns = machine.ReadyNs(stream, now);
    const int64_t end = at_ns + machine.DrawNs(Setting::host_function_ns);
    machine.Extend(stream, end);
    stream.pending.Push(end);
  }
  CallInTurn(TurnIn(stream, at_ns, function, argument));
}

HostTurn TurnIn(const Stream& stream, int64_t at_ns, HostFunction function, void* argument) {
  HostFunctionRun run = {};
  run.correlation = CurrentCorrelation();
  run.device = static_cast<uint32_t>(stream.context->device->ordinal);
  run.context = stream.context->uid;
  run.stream = stream.id;
  return {at_ns, function, argument, run};
}

void CallInTurn(const HostTurn& turn) { TheCaller().Add(turn); }

void WaitForHostFunctions() { TheCaller().WaitForAll(); }

}  // namespace vgpu
