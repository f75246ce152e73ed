#include "collectors/machine/sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "collectors/machine/cgroup_source.h"
#include "collectors/machine/gpu_source.h"
#include "collectors/machine/machine_source.h"
#include "collectors/machine/process_source.h"
#include "collectors/machine/stack_sampler.h"
#include "trace/recording/files/run_files.h"
#include "trace/recording/wire/facts.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof {
namespace {

using recording::HostEncoder;
using recording::MonotonicNs;

// In periods of the sampler: 0.1 s each at 10 Hz.
constexpr int64_t kScanEvery = 1;
constexpr int64_t kUseEvery = 20;
// A call of NVML that takes longer is said to hang.
constexpr int64_t kHangNs = 5'000'000'000;
// Ranks of one machine: how often the next one tries to take over as the machine's sampler.
constexpr int64_t kLockEveryNs = 1'000'000'000;

// One of the supervisors of a machine samples what is the machine's: who holds the lock. It goes to
// another one when its holder dies. Where the file system has no locks the lowest rank does it.
class MachineLock {
 public:
  MachineLock(const SamplerSettings& settings) : alone_(settings.rank < 0), rank_(settings.rank) {
    if (alone_) return;
    std::ifstream boot(settings.root / "proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(boot, id);
    const auto path = settings.run_dir / fmt::format("sampler-{}.lock", id.substr(0, 8));
    fd_ = recording::OpenInRun(path, O_RDWR | O_CREAT);
  }
  ~MachineLock() {
    if (fd_ >= 0) close(fd_);
  }
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;

  bool Try(int64_t now_ns) {
    if (alone_ || held_) return true;
    if (now_ns < next_ns_) return false;
    next_ns_ = now_ns + kLockEveryNs;
    if (fd_ < 0) return held_ = rank_ == 0;
    if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return held_ = true;
    return held_ = errno != EWOULDBLOCK && rank_ == 0;
  }

 private:
  bool alone_;
  int rank_;
  int fd_ = -1;
  bool held_ = false;
  int64_t next_ns_ = 0;
};

// What the two threads share. Neither holds `mutex` while it samples.
struct Shared {
  std::atomic<bool> samples_machine{false};
  std::atomic<int64_t> call_began_ns{0};  // of NVML; 0: none is going on
  std::mutex mutex;
  std::vector<recording::HostEntity> processes;
  std::atomic<uint64_t> edition{0};  // of `processes`

  std::vector<recording::HostEntity> Processes() {
    const std::lock_guard lock(mutex);
    return processes;
  }
};

// False when it is time.
bool StoppedBefore(int64_t until_ns, int stop_fd) {
  for (;;) {
    const int64_t left = std::max<int64_t>(until_ns - MonotonicNs(), 0);
    const timespec timeout = recording::ToTimespec(left);
    pollfd stop = {stop_fd, POLLIN, 0};
    const int ready = ppoll(&stop, 1, &timeout, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    return ready != 0;
  }
}

class NvmlThread {
 public:
  NvmlThread(const SamplerSettings& settings, SampleLog& log, Shared& shared)
      : period_(static_cast<int64_t>(1e9 / settings.hz)),
        log_(log),
        shared_(shared),
        out_(recording::kNvmlStream) {}

  void Run() {
    while (!shared_.samples_machine) Sleep(period_);
    shared_.call_began_ns = MonotonicNs();
    const Result<Nvml> nvml = LoadNvml();
    if (!nvml.ok()) {
      out_.Fact(fact::kNvml, nvml.error());
    } else {
      if (const auto described = DescribeNvml(); described.ok()) {
        out_.Fact(fact::kNvml, described.value());
      }
      const auto pids = [this] {
        std::vector<pid_t> all;
        for (const recording::HostEntity& process : shared_.Processes()) {
          all.push_back(static_cast<pid_t>(process.number));
        }
        return all;
      };
      source_ = std::make_unique<GpuSource>(nvml.value(), pids, out_);
    }
    shared_.call_began_ns = 0;
    log_.Append(out_.TakeFrame(MonotonicNs()));
    if (source_ && source_->size() > 0) SampleForEver();
  }

 private:
  static void Sleep(int64_t ns) {
    const timespec time = recording::ToTimespec(ns);
    nanosleep(&time, nullptr);
  }

  void SampleForEver() {
    Schedule schedule{std::chrono::nanoseconds(period_)};
    schedule.Add(CoreShares::kNvml, 1, [this](HostEncoder& out) { source_->Sample(out); });
    schedule.Add(CoreShares::kPcieThroughput, 1,
                 [this](HostEncoder& out) { source_->SamplePcieThroughput(out); });
    schedule.Add(CoreShares::kGpuUse, kUseEvery,
                 [this](HostEncoder& out) { source_->SampleUse(out); });
    for (;;) {
      const int64_t begin = MonotonicNs();
      shared_.call_began_ns = begin;
      schedule.RunDue(begin, log_.Slowdown(), out_);
      shared_.call_began_ns = 0;
      const int64_t end = MonotonicNs();
      log_.Append(out_.TakeFrame(begin + (end - begin) / 2));
      // A driver that takes long is asked at most half of the time.
      Sleep(std::max(period_ - (end - begin), end - begin));
    }
  }

  int64_t period_;
  SampleLog& log_;
  Shared& shared_;
  HostEncoder out_;
  std::unique_ptr<GpuSource> source_;
};

class ProcLoop {
 public:
  ProcLoop(const SamplerSettings& settings, SampleLog& log, Shared& shared)
      : log_(log),
        shared_(shared),
        lock_(settings),
        period_(static_cast<int64_t>(1e9 / settings.hz)),
        schedule_(std::chrono::nanoseconds(period_)),
        out_(recording::kProcStream),
        processes_(settings.root, settings.program),
        cgroup_(settings.root, settings.program),
        machine_(settings.root),
        disks_(settings.root) {
    AddProcessSources(schedule_, processes_, cgroup_);
    AddMachineSources(schedule_, machine_, disks_, samples_machine_);
    TryLock(MonotonicNs());
  }

  void Run(int stop_fd) {
    int64_t next_ns = MonotonicNs();
    for (;;) {
      const int64_t now = MonotonicNs();
      TryLock(now);
      schedule_.RunDue(now, log_.Slowdown(), out_);
      ShareProcesses();
      SayHang(now);
      log_.Append(out_.TakeFrame(now));
      next_ns = std::max(next_ns + period_, MonotonicNs());
      if (StoppedBefore(next_ns, stop_fd)) break;
    }
    schedule_.RunAll(out_);
    SayCost();
    log_.Append(out_.TakeFrame(MonotonicNs()));
  }

 private:
  void TryLock(int64_t now_ns) {
    samples_machine_ = lock_.Try(now_ns);
    shared_.samples_machine = samples_machine_;
  }

  void ShareProcesses() {
    std::vector<recording::HostEntity> processes = processes_.processes();
    const std::lock_guard lock(shared_.mutex);
    if (shared_.processes == processes) return;
    shared_.processes.swap(processes);
    ++shared_.edition;
  }

  void SayHang(int64_t now) {
    const int64_t began = shared_.call_began_ns;
    if (said_hang_ || began == 0 || now - began < kHangNs) return;
    said_hang_ = true;
    out_.Fact(fact::kNvmlHang,
              fmt::format("a call had not returned after {} s", kHangNs / 1'000'000'000));
  }

  void SayCost() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    const double wall = static_cast<double>(MonotonicNs() - began_ns_) / 1e9;
    out_.Fact(fact::kHostSampler,
              fmt::format("took {:.3f} s of CPU time in {:.1f} s",
                          seconds(used.ru_utime) + seconds(used.ru_stime), wall));
  }

  SampleLog& log_;
  Shared& shared_;
  MachineLock lock_;
  int64_t period_;
  int64_t began_ns_ = MonotonicNs();
  bool samples_machine_ = false;
  bool said_hang_ = false;
  Schedule schedule_;
  HostEncoder out_;
  ProcessSource processes_;
  CgroupSource cgroup_;
  MachineSource machine_;
  DiskSource disks_;
};

void SampleStacks(const SamplerSettings& settings, SampleLog& log, Shared& shared, int stop_fd) {
  try {
    const auto cores = static_cast<uint32_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
    StackSampler sampler(settings.root, settings.stack_hz, cores, log, settings.memory_door);
    uint64_t followed = 0;
    do {
      const uint64_t edition = shared.edition;
      if (edition != followed) sampler.Follow(shared.Processes());
      followed = edition;
      sampler.Sample();
    } while (!StoppedBefore(sampler.NextNs(), stop_fd));
    sampler.Finish();
  } catch (...) {
    // Without memory the stacks end here; the rest goes on.
  }
}

}  // namespace

void AddProcessSources(Schedule& schedule, ProcessSource& processes, CgroupSource& cgroup) {
  schedule.Add(CoreShares::kScan, kScanEvery, [&](HostEncoder& out) { processes.Scan(out); });
  schedule.Add(CoreShares::kStat, 1, [&](HostEncoder& out) { processes.SampleStat(out); });
  schedule.Add(CoreShares::kRest, 1, [&](HostEncoder& out) { processes.SampleRest(out); });
  schedule.Add(CoreShares::kCgroup, 1, [&](HostEncoder& out) { cgroup.Sample(out); });
}

void AddMachineSources(Schedule& schedule, MachineSource& machine, DiskSource& disks,
                       const bool& samples_machine) {
  const auto add = [&](double share, auto sample) {
    schedule.Add(share, 1, [&samples_machine, sample](HostEncoder& out) {
      if (samples_machine) sample(out);
    });
  };
  add(CoreShares::kCpu, [&](HostEncoder& out) { machine.SampleCpu(out); });
  add(CoreShares::kMemory, [&](HostEncoder& out) { machine.SampleMemory(out); });
  add(CoreShares::kPressure, [&](HostEncoder& out) { machine.SamplePressure(out); });
  add(CoreShares::kDisks, [&](HostEncoder& out) { disks.Sample(out); });
}

int SampleUntilStopped(const SamplerSettings& settings, SampleLogs& logs, int stop_fd) {
  // Never freed: a thread that hangs in the driver may come back to them while the process exits.
  auto* const shared = new Shared;
  auto* const nvml = new NvmlThread(settings, logs.host, *shared);
  ProcLoop loop(settings, logs.host, *shared);
  std::thread([nvml] { nvml->Run(); }).detach();
  std::jthread stacks;
  if (logs.stacks) {
    stacks = std::jthread([&] { SampleStacks(settings, *logs.stacks, *shared, stop_fd); });
  }
  loop.Run(stop_fd);
  if (stacks.joinable()) stacks.join();
  return logs.host.failed() || (logs.stacks && logs.stacks->failed()) ? 1 : 0;
}

}  // namespace trainprof
