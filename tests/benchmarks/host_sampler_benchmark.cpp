// What sampling the host costs: CPU time a sample of each source, the share of one core that it
// takes at ten samples a second, and the bytes it writes, for trees of 1, 50 and 500 processes. The
// gate of the project: at most 1 % of a core, whatever the tree's size; where a tree costs more,
// its sources are asked less often.
//
// usage: host_sampler_benchmark [SECONDS]
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "collectors/machine/cgroup_source.h"
#include "collectors/machine/machine_source.h"
#include "collectors/machine/process_source.h"
#include "collectors/machine/sampling.h"

namespace trainprof {
namespace {

constexpr int kTreeSizes[] = {1, 50, 500};
constexpr std::chrono::milliseconds kPeriod{100};
constexpr double kGatePercent = 1;

// A process that sleeps, with so many children that sleep; killed with all of them at the end.
class SleepingTree {
 public:
  explicit SleepingTree(int processes) {
    int ready[2];
    if (pipe(ready) != 0) std::exit(1);
    root_ = fork();
    if (root_ == 0) {
      setpgid(0, 0);
      for (int i = 1; i < processes; ++i) {
        if (fork() == 0) Sleep();
      }
      if (write(ready[1], "x", 1) != 1) _exit(1);
      Sleep();
    }
    char byte = 0;
    if (read(ready[0], &byte, 1) != 1) std::exit(1);
    close(ready[0]);
    close(ready[1]);
  }
  ~SleepingTree() {
    kill(-root_, SIGKILL);
    waitpid(root_, nullptr, 0);
  }
  SleepingTree(const SleepingTree&) = delete;
  SleepingTree& operator=(const SleepingTree&) = delete;
  pid_t root() const { return root_; }

 private:
  [[noreturn]] static void Sleep() {
    for (;;) pause();
  }
  pid_t root_;
};

// The fastest of some runs, in microseconds: what else the machine does can only add.
template <class Sample>
double CostUs(recording::HostEncoder& out, Sample sample) {
  double fastest = 1e9;
  for (int run = 0; run < 20; ++run) {
    const int64_t begin = ThreadCpuNs();
    sample(out);
    fastest = std::min(fastest, static_cast<double>(ThreadCpuNs() - begin) / 1e3);
    out.TakeFrame(run);
  }
  return fastest;
}

bool Measure(int processes, int seconds) {
  const SleepingTree tree(processes);
  recording::HostEncoder out(0);
  ProcessSource source("/", tree.root());
  MachineSource machine("/");
  DiskSource disks("/");
  CgroupSource cgroup("/", tree.root());
  fmt::print("tree of {} processes, us of CPU time a sample: scan {:.0f}", processes,
             CostUs(out, [&](auto& o) { source.Scan(o); }));
  fmt::print(", stat {:.0f}", CostUs(out, [&](auto& o) { source.SampleStat(o); }));
  fmt::print(", switches and I/O {:.0f}", CostUs(out, [&](auto& o) { source.SampleRest(o); }));
  fmt::print(", CPUs {:.0f}", CostUs(out, [&](auto& o) { machine.SampleCpu(o); }));
  fmt::print(", memory {:.0f}", CostUs(out, [&](auto& o) { machine.SampleMemory(o); }));
  fmt::print(", pressure {:.0f}", CostUs(out, [&](auto& o) { machine.SamplePressure(o); }));
  fmt::print(", disks {:.0f}", CostUs(out, [&](auto& o) { disks.Sample(o); }));
  fmt::print(", cgroup {:.0f}\n", CostUs(out, [&](auto& o) { cgroup.Sample(o); }));

  Schedule schedule(kPeriod);
  const bool samples_machine = true;
  AddProcessSources(schedule, source, cgroup);
  AddMachineSources(schedule, machine, disks, samples_machine);
  using Clock = std::chrono::steady_clock;
  // A tree that is too dear at first is found to be so in the first rounds.
  for (int64_t round = 0; round < 3; ++round) {
    schedule.RunDue(Clock::now().time_since_epoch().count(), 1, out);
    std::this_thread::sleep_for(kPeriod);
  }
  const int64_t cpu_begin = ThreadCpuNs();
  const Clock::time_point begin = Clock::now();
  size_t bytes = 0;
  for (Clock::time_point next = begin; next < begin + std::chrono::seconds(seconds);
       next += kPeriod) {
    std::this_thread::sleep_until(next);
    const int64_t now = Clock::now().time_since_epoch().count();
    schedule.RunDue(now, 1, out);
    bytes += out.TakeFrame(now).size();
  }
  const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
  const double percent = static_cast<double>(ThreadCpuNs() - cpu_begin) / 1e7 / wall;
  const bool kept = percent <= kGatePercent;
  fmt::print("  at 10 Hz: {:.2f} % of a core (gate {:.0f} %: {}), {:.1f} KB/s written\n", percent,
             kGatePercent, kept ? "kept" : "BROKEN", static_cast<double>(bytes) / 1e3 / wall);
  return kept;
}

}  // namespace
}  // namespace trainprof

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 10;
  bool kept = true;
  for (const int processes : trainprof::kTreeSizes) {
    kept = trainprof::Measure(processes, seconds) && kept;
  }
  return kept ? 0 : 1;
}
