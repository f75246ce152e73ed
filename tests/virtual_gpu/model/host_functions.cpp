#include "tests/virtual_gpu/model/host_functions.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <queue>
#include <thread>

#include "tests/virtual_gpu/model/clock.h"
#include "tests/virtual_gpu/model/operations.h"

namespace vgpu {
namespace {

struct Turn {
  int64_t at_ns;
  HostFunction function;
  void* argument;
  bool operator>(const Turn& other) const { return at_ns > other.at_ns; }
};

class Caller {
 public:
  void Add(const Turn& turn) {
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
    std::unique_lock guard(lock_);
    for (;;) {
      changed_.wait(guard, [this] { return !turns_.empty(); });
      const Turn turn = turns_.top();
      turns_.pop();
      guard.unlock();
      WaitUntil(turn.at_ns);
      turn.function(turn.argument);
      guard.lock();
      --left_;
      changed_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::atomic<int> left_ = 0;
  bool running_ = false;
};

Caller& TheCaller() {
  static Caller* const caller = new Caller;
  return *caller;
}

}  // namespace

bool LaunchHostFunction(Stream& stream, HostFunction function, void* argument) {
  Machine& machine = TheMachine();
  int64_t at_ns;
  {
    std::unique_lock guard(machine.lock);
    if (stream.capture != nullptr) return false;
    const int64_t now = WaitForRoom(stream, guard);
    at_ns = machine.ReadyNs(stream, now);
    const int64_t end = at_ns + machine.DrawNs(Setting::host_function_ns);
    machine.Extend(stream, end);
    stream.pending.Push(end);
  }
  TheCaller().Add({at_ns, function, argument});
  return true;
}

void WaitForHostFunctions() { TheCaller().WaitForAll(); }

}  // namespace vgpu
