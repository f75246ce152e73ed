// The sampler's sources over made-up machines: /proc and /sys in a folder, a library for NVML.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "collectors/machine/cgroup_source.h"
#include "collectors/machine/gpu_source.h"
#include "collectors/machine/machine_source.h"
#include "collectors/machine/process_source.h"
#include "collectors/machine/sample_log.h"
#include "collectors/machine/schedule.h"
#include "trace/recording/files/host_file.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using namespace recording;

// A root folder with whatever files a test puts there.
class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = (fs::temp_directory_path() / "trainprof-root-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  const fs::path& path() const { return path_; }
  void Put(const fs::path& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  void Remove(const fs::path& name) const { fs::remove_all(path_ / name); }

 private:
  fs::path path_;
};

// What a sample observed, by words: "disk vda: 0=512 2=30".
class Observed : public HostSink {
 public:
  explicit Observed(HostEncoder& encoder) {
    const auto frame = encoder.TakeFrame(1);
    DecodeHostFrames(frame, *this);
  }
  void OnDefine(uint32_t id, const HostEntity& entity) override {
    static const char* const kKinds[] = {"",        "machine", "cores", "disk",
                                         "process", "cgroup",  "gpu"};
    names_[id] =
        fmt::format("{} {}{}", kKinds[static_cast<int>(entity.kind)],
                    entity.number == 0 ? "" : fmt::format("{} ", entity.number), entity.text);
    entities[names_[id]] = entity;
  }
  void OnValues(uint32_t id, int64_t, std::span<const Value> values) override {
    for (const Value& value : values) of[names_[id]][value.metric] = value.value;
  }
  void OnEnd(uint32_t id) override { ended.push_back(names_[id]); }
  void OnFact(std::string_view key, std::string_view text) override {
    facts[std::string(key)] = text;
  }
  template <class Metric>
  int64_t At(const std::string& entity, Metric metric) const {
    const auto found = of.find(entity);
    if (found == of.end()) return -1;
    const auto value = found->second.find(static_cast<uint32_t>(metric));
    return value == found->second.end() ? -1 : static_cast<int64_t>(value->second);
  }

  std::map<std::string, std::map<uint32_t, uint64_t>> of;
  std::map<std::string, HostEntity> entities;
  std::map<std::string, std::string> facts;
  std::vector<std::string> ended;

 private:
  std::map<uint32_t, std::string> names_;
};

TEST(Machine, CpuTimesRunQueueAndLoad) {
  const FakeRoot root;
  root.Put("proc/stat",
           "cpu  100 10 20 1000 5 1 2 3 4 0\n"
           "cpu0 60 5 10 500 5 1 1 3 0 0\n"
           "cpu7 40 5 10 500 0 0 1 0 0 0\n"
           "intr 12345 0 0\nctxt 777\nbtime 1700000000\nprocesses 9\n"
           "procs_running 3\nprocs_blocked 2\nsoftirq 1 2\n");
  root.Put("proc/loadavg", "12.05 1.00 0.50 3/200 4711\n");
  root.Put("proc/cpuinfo",
           "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763 64-Core\nflags\t: a\n\n"
           "processor\t: 1\nmodel name\t: another\n");
  HostEncoder out(0);
  MachineSource source(root.path());
  source.SampleCpu(out);
  const Observed seen(out);
  EXPECT_EQ(seen.facts.at("processor"), "AMD EPYC 7763 64-Core");
  source.SampleCpu(out);
  EXPECT_TRUE(Observed(out).facts.empty());  // once is enough
  EXPECT_EQ(seen.At("machine ", MachineMetric::kUser), 110);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kSystem), 20);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kIrq), 3);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kSteal), 3);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kIoWait), 5);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kContextSwitches), 777);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kRunning), 3);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kBlocked), 2);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kLoad1), 12050);
  EXPECT_EQ(seen.of.at("cores "), (std::map<uint32_t, uint64_t>{{0, 80}, {7, 56}}));
}

// Linux 2.4 knew four times, and no run queue.
TEST(Machine, OldKernelsSayLess) {
  const FakeRoot root;
  root.Put("proc/stat", "cpu 100 10 20 1000\ncpu0 100 10 20 1000\n");
  HostEncoder out(0);
  MachineSource(root.path()).SampleCpu(out);
  const Observed seen(out);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kUser), 110);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kIrq), 0);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kRunning), -1);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kLoad1), -1);
}

TEST(Machine, MemorySwapAndPressure) {
  const FakeRoot root;
  root.Put("proc/vmstat", "nr_free_pages 5\npswpin 3\npswpout 4\npgmajfault 55\n");
  root.Put("proc/meminfo",
           "MemTotal:  100 kB\nMemAvailable:   60 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n");
  root.Put("proc/pressure/memory",
           "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n"
           "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
  root.Put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
  HostEncoder out(0);
  MachineSource machine(root.path());
  machine.SampleMemory(out);
  machine.SamplePressure(out);
  const Observed seen(out);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kSwapIn), 3 * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(seen.At("machine ", MachineMetric::kMajorFaults), 55);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kMemoryAvailable), 60 << 10);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kSwapUsed), 30 << 10);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kPressureMemorySome), 1234);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kPressureMemoryFull), 99);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kPressureCpu), 7);
  EXPECT_EQ(seen.At("machine ", MachineMetric::kPressureIoSome), -1);
}

TEST(Machine, WithoutProcNothingIsObserved) {
  const FakeRoot root;
  HostEncoder out(0);
  MachineSource machine(root.path());
  machine.SampleCpu(out);
  machine.SampleMemory(out);
  machine.SamplePressure(out);
  DiskSource(root.path()).Sample(out);
  CgroupSource(root.path(), 1).Sample(out);
  ProcessSource processes(root.path(), 1);
  processes.Scan(out);
  processes.SampleStat(out);
  processes.SampleRest(out);
  EXPECT_TRUE(out.TakeFrame(1).empty());
}

// Kernels have 11 (2.6), 15 (4.18) and 17 (5.5) numbers a disk; partitions once had 4.
TEST(Disks, WholeDisksThatAreUsed) {
  const FakeRoot root;
  root.Put("proc/diskstats",
           "   8 0 sda 100 5 2000 30 50 6 1000 40 2 777 80\n"
           "   8 1 sda1 90 5 1900 30 50 6 1000 40 0 700 80\n"
           "   8 2 sda2 1 2 3 4\n"
           " 259 0 nvme0n1 7 0 80 1 0 0 0 0 0 5 1 0 0 0 0 9 1\n"
           " 253 0 cciss/c0d0 7 0 8 1 0 0 0 0 0 6 1 0 0 0 0\n"
           "   7 0 loop0 7 0 80 1 0 0 0 0 0 5 1\n"
           "   8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n");
  for (const char* disk : {"sda", "nvme0n1", "cciss!c0d0", "sdb", "loop0"}) {
    fs::create_directories(root.path() / "sys/block" / disk);
  }
  HostEncoder out(0);
  DiskSource(root.path()).Sample(out);
  const Observed seen(out);
  EXPECT_EQ(seen.of.size(), 3u);
  EXPECT_EQ(seen.At("disk sda", DiskMetric::kRead), 2000 * 512);
  EXPECT_EQ(seen.At("disk sda", DiskMetric::kWritten), 1000 * 512);
  EXPECT_EQ(seen.At("disk sda", DiskMetric::kBusy), 777);
  EXPECT_EQ(seen.At("disk sda", DiskMetric::kInFlight), 2);
  EXPECT_EQ(seen.At("disk nvme0n1", DiskMetric::kBusy), 5);
  EXPECT_EQ(seen.At("disk cciss/c0d0", DiskMetric::kBusy), 6);
}

std::vector<int64_t> Pids(const ProcessSource& source) {
  std::vector<int64_t> pids;
  for (const HostEntity& process : source.processes()) pids.push_back(process.number);
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::string Stat(int pid, const std::string& command, int parent, int start, int user = 0) {
  return fmt::format("{} ({}) S {} 1 1 0 -1 0 11 0 3 0 {} 40 0 0 20 0 8 0 {} 99999 250 0 0\n", pid,
                     command, parent, user, start);
}

// Program 10 with child 30, whose child is 20: parents may have larger pids.
void PutTree(const FakeRoot& root) {
  root.Put("proc/1/stat", Stat(1, "init", 0, 1));
  root.Put("proc/10/stat", Stat(10, "torchrun", 1, 100));
  root.Put("proc/30/stat", Stat(30, "python (a) b", 10, 101, 77));
  root.Put("proc/20/stat", Stat(20, ")(", 30, 102));
  root.Put("proc/40/stat", Stat(40, "other", 1, 90));
  root.Put("proc/self/stat", "no pid");
  root.Put("proc/30/status",
           "Name:\tpython\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n");
  root.Put("proc/30/io", "rchar: 500\nwchar: 1\nread_bytes: 300\nwrite_bytes: 200\n");
}

TEST(Processes, TheTreeAndItsNumbers) {
  const FakeRoot root;
  PutTree(root);
  HostEncoder out(0);
  ProcessSource processes(root.path(), 10);
  processes.Scan(out);
  processes.SampleStat(out);
  processes.SampleRest(out);
  EXPECT_EQ(Pids(processes), (std::vector<int64_t>{10, 20, 30}));
  const Observed seen(out);
  const std::string python = "process 30 python (a) b";
  EXPECT_EQ(seen.At(python, ProcessMetric::kUser), 77);
  EXPECT_EQ(seen.At(python, ProcessMetric::kSystem), 40);
  EXPECT_EQ(seen.At(python, ProcessMetric::kThreads), 8);
  EXPECT_EQ(seen.At(python, ProcessMetric::kResident), 250 * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(seen.At(python, ProcessMetric::kMinorFaults), 11);
  EXPECT_EQ(seen.At(python, ProcessMetric::kMajorFaults), 3);
  EXPECT_EQ(seen.At(python, ProcessMetric::kVoluntary), 12);
  EXPECT_EQ(seen.At(python, ProcessMetric::kInvoluntary), 3);
  EXPECT_EQ(seen.At(python, ProcessMetric::kReadStorage), 300);
  EXPECT_EQ(seen.At(python, ProcessMetric::kWrittenStorage), 200);
  EXPECT_EQ(seen.At(python, ProcessMetric::kReadAny), 500);
  EXPECT_EQ(seen.entities.at(python).parent, 10);
  EXPECT_EQ(seen.entities.at("process 20 )(").start_ticks, 102u);
  EXPECT_EQ(seen.At("process 10 torchrun", ProcessMetric::kVoluntary), -1);
}

TEST(Processes, VanishBecomeOthersAndAreAdopted) {
  const FakeRoot root;
  PutTree(root);
  HostEncoder out(0);
  ProcessSource processes(root.path(), 10);
  processes.Scan(out);
  processes.SampleStat(out);
  out.TakeFrame(0);
  // 20's parent ends and init adopts it; a new program runs in 10; 40 has a child, not ours.
  root.Remove("proc/30");
  root.Put("proc/20/stat", Stat(20, ")(", 1, 102, 5));
  root.Put("proc/10/stat", Stat(10, "python", 1, 100));
  root.Put("proc/50/stat", Stat(50, "not ours", 40, 103));
  processes.Scan(out);
  processes.SampleStat(out);
  EXPECT_EQ(Pids(processes), (std::vector<int64_t>{10, 20}));
  // Another process has got the pid, and a file is cut in the middle.
  root.Put("proc/20/stat", Stat(20, "stranger", 1, 999));
  root.Put("proc/10/stat", "10 (pyth");
  processes.SampleStat(out);
  EXPECT_EQ(Pids(processes), std::vector<int64_t>{});
}

TEST(Processes, APidThatAStrangerHadIsLookedAtAgain) {
  const FakeRoot root;
  PutTree(root);
  HostEncoder out(0);
  ProcessSource processes(root.path(), 10);
  processes.Scan(out);
  root.Put("proc/40/stat", Stat(40, "child", 10, 500));
  for (int i = 0; i < 64; ++i) processes.Scan(out);
  EXPECT_EQ(Pids(processes), (std::vector<int64_t>{10, 20, 30, 40}));
}

TEST(Processes, AHugeTreeIsSampledInPartAndSaidSo) {
  const FakeRoot root;
  root.Put("proc/10/stat", Stat(10, "mpirun", 1, 100));
  for (int pid = 100; pid < 100 + 2100; ++pid) {
    root.Put(fmt::format("proc/{}/stat", pid), Stat(pid, "rank", 10, pid));
  }
  HostEncoder out(0);
  ProcessSource processes(root.path(), 10);
  processes.Scan(out);
  processes.SampleStat(out);
  EXPECT_EQ(processes.processes().size(), ProcessSource::kMostProcesses);
  EXPECT_TRUE(Observed(out).facts.contains("host processes"));
}

TEST(Cgroups, Version2TakesTheTightestLimitAround) {
  const FakeRoot root;
  const std::string group = "sys/fs/cgroup/slurm/job_1";
  root.Put("proc/10/cgroup", "0::/slurm/job_1/task_0\n");
  root.Put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  root.Put("sys/fs/cgroup/slurm/cpu.max", "max 100000\n");
  root.Put(group + "/cpu.max", "150000 100000\n");
  root.Put(group + "/cpu.stat",
           "usage_usec 1000\nuser_usec 900\nnr_periods 9\nnr_throttled 4\nthrottled_usec 55\n");
  root.Put(group + "/memory.max", "1048576\n");
  root.Put(group + "/memory.current", "4096\n");
  root.Put(group + "/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n");
  root.Put(group + "/task_0/cpu.max", "max 100000\n");
  root.Put(group + "/task_0/memory.max", "max\n");
  root.Put(group + "/task_0/memory.current", "1\n");
  HostEncoder out(0);
  CgroupSource(root.path(), 10).Sample(out);
  const Observed seen(out);
  const std::string name = "cgroup /slurm/job_1/task_0";
  EXPECT_EQ(seen.At(name, CgroupMetric::kCpuLimit), 1500);
  EXPECT_EQ(seen.At(name, CgroupMetric::kUsage), 1000);
  EXPECT_EQ(seen.At(name, CgroupMetric::kThrottled), 55);
  EXPECT_EQ(seen.At(name, CgroupMetric::kThrottledPeriods), 4);
  EXPECT_EQ(seen.At(name, CgroupMetric::kMemory), 4096);
  EXPECT_EQ(seen.At(name, CgroupMetric::kMemoryLimit), 1048576);
  EXPECT_EQ(seen.At(name, CgroupMetric::kOomKills), 1);
}

// In a container without a namespace of its own the path is the host's, the mount its own group.
TEST(Cgroups, Version1InAContainer) {
  const FakeRoot root;
  root.Put("proc/10/cgroup",
           "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/x\n");
  root.Put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");
  root.Put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.Put("sys/fs/cgroup/cpu/cpu.stat", "nr_periods 5\nnr_throttled 2\nthrottled_time 7000\n");
  root.Put("sys/fs/cgroup/cpuacct/cpuacct.usage", "5000000\n");
  root.Put("sys/fs/cgroup/memory/memory.usage_in_bytes", "100\n");
  root.Put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.Put("sys/fs/cgroup/memory/memory.oom_control", "under_oom 0\noom_kill 3\n");
  HostEncoder out(0);
  CgroupSource(root.path(), 10).Sample(out);
  const Observed seen(out);
  const std::string name = "cgroup /docker/abc";
  EXPECT_EQ(seen.At(name, CgroupMetric::kCpuLimit), 2500);
  EXPECT_EQ(seen.At(name, CgroupMetric::kUsage), 5000);
  EXPECT_EQ(seen.At(name, CgroupMetric::kThrottled), 7);
  EXPECT_EQ(seen.At(name, CgroupMetric::kMemory), 100);
  EXPECT_EQ(seen.At(name, CgroupMetric::kMemoryLimit), -1);
  EXPECT_EQ(seen.At(name, CgroupMetric::kOomKills), 3);
}

int64_t SpinFor(int64_t ns) {
  const int64_t begin = ThreadCpuNs();
  while (ThreadCpuNs() - begin < ns) {
  }
  return ThreadCpuNs() - begin;
}

TEST(ScheduleTest, ATaskThatCostsMoreThanItsShareComesLessOften) {
  constexpr int64_t kPeriod = 100'000'000;
  Schedule schedule{std::chrono::nanoseconds(kPeriod)};
  HostEncoder out(0);
  int cheap = 0;
  int dear = 0;
  schedule.Add(0.01, 1, [&](HostEncoder&) { ++cheap; });
  schedule.Add(0.001, 1, [&](HostEncoder&) { dear += SpinFor(500'000) > 0; });
  for (int64_t now = 0; now < 100 * kPeriod; now += kPeriod) schedule.RunDue(now, 1, out);
  EXPECT_EQ(cheap, 100);
  // 0.5 ms a run may come every 0.5 s.
  EXPECT_GE(dear, 10);
  EXPECT_LE(dear, 40);
}

TEST(ScheduleTest, AFullerFileStretchesThePeriods) {
  constexpr int64_t kPeriod = 100'000'000;
  Schedule schedule{std::chrono::nanoseconds(kPeriod)};
  HostEncoder out(0);
  int runs = 0;
  schedule.Add(0.5, 1, [&](HostEncoder&) { ++runs; });
  for (int64_t now = 0; now < 100 * kPeriod; now += kPeriod) schedule.RunDue(now, 4, out);
  EXPECT_EQ(runs, 25);
}

TEST(Log, HalvesTheRateAsItFillsAndNeverOutgrowsItsBound) {
  const FakeRoot root;
  auto created = SampleLog::Create(root.path(), HostHeader{}, 100'000);
  ASSERT_TRUE(created.ok()) << created.error();
  SampleLog& log = created.value();
  const std::vector<char> frame(1000);
  EXPECT_EQ(log.Slowdown(), 1);
  for (int i = 0; i < 60; ++i) log.Append(frame);
  EXPECT_EQ(log.Slowdown(), 2);
  for (int i = 0; i < 20; ++i) log.Append(frame);
  EXPECT_EQ(log.Slowdown(), 4);
  for (int i = 0; i < 200; ++i) log.Append(frame);
  EXPECT_LE(fs::file_size(log.path()), 100'000u);
  EXPECT_FALSE(log.failed());
}

// Each in a process of its own: the library stays loaded.
class Gpus : public ::testing::Test {
 protected:
  static void InOwnProcess(const char* mode, void (*check)(const Observed&)) {
    setenv("FAKE_NVML", mode, 1);
    const std::string pid = std::to_string(getpid());
    setenv("FAKE_NVML_PID", pid.c_str(), 1);
    const auto nvml = LoadNvml();
    HostEncoder out(1);
    if (!nvml.ok()) {
      out.Fact("NVML", nvml.error());
    } else {
      GpuSource gpus(
          nvml.value(), [] { return std::vector<pid_t>{getpid()}; }, out);
      for (int i = 0; i < 4; ++i) gpus.SamplePcieThroughput(out);
      gpus.Sample(out);
      gpus.SampleUse(out);
    }
    check(Observed(out));
  }
};

const char kGpu0[] = "gpu GPU-aaaa Fake H100";
const char kGpu1[] = "gpu 1 GPU-bbbb Fake H100";

TEST_F(Gpus, SayWhatNvidiaSmiShows) {
  InOwnProcess("", [](const Observed& seen) {
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kUtilisation), 87);
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kMemoryUsed), 10LL << 30);
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kPower), 345678);
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kTemperature), 66);
#ifdef FAKE_NVML_OLD
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kThrottle), -1);
    EXPECT_NE(seen.facts.at("GPU 0 throttle reasons").find("lacks"), std::string::npos);
#else
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kThrottle), 4);
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kSmClock), 1410);
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kMemoryClock), 2619);
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kPcieGeneration), 1);
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kPcieWidthMax), 16);
    EXPECT_EQ(seen.At(kGpu1, GpuMetric::kPcieReceived), 250'000);
#endif
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kUsedByRun), 0);
    EXPECT_EQ(seen.At(kGpu1, GpuMetric::kUsedByRun), 1);
  });
}

#ifndef FAKE_NVML_OLD
TEST_F(Gpus, WhatMigDoesNotSupportIsSaidAndNotZero) {
  InOwnProcess("mig", [](const Observed& seen) {
    EXPECT_EQ(seen.At(kGpu0, GpuMetric::kUtilisation), 87);
    EXPECT_EQ(seen.At(kGpu1, GpuMetric::kUtilisation), -1);
    EXPECT_EQ(seen.At(kGpu1, GpuMetric::kPower), 345678);
    EXPECT_EQ(seen.facts.at("GPU 1 utilisation"),
              "not sampled: error 3 (Not Supported), as the GPU is in MIG mode");
  });
}

TEST_F(Gpus, WithoutADriverItIsAFact) {
  InOwnProcess("none", [](const Observed& seen) {
    EXPECT_EQ(seen.facts.at("NVML"),
              "no GPU samples: nvmlInit fails with error 9 (Driver Not Loaded)");
    EXPECT_TRUE(seen.of.empty());
  });
}
#endif

}  // namespace
}  // namespace trainprof
