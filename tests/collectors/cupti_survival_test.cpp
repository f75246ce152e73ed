// What is left of GPU work when the process dies, at any moment and in any way.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collectors/cupti/slot_place.h"
#include "collectors/salvage/salvage.h"
#include "collectors/salvage/slot_files.h"
#include "tests/collectors/cuda_program.h"
#include "tests/collectors/cuda_run.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;
using collectors::SlotFileHeader;
using collectors::SlotState;
using cuda_program::Progress;
using recording::DeviceRow;
using recording::DeviceRowType;

constexpr int64_t kNsPerMs = 1'000'000;

int64_t NowNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

// A page of the program's that outlives it.
class SharedProgress {
 public:
  explicit SharedProgress(const fs::path& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(ftruncate(fd, sizeof(Progress)), 0);
    progress_ = static_cast<Progress*>(
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
  }
  ~SharedProgress() { munmap(static_cast<void*>(progress_), sizeof(Progress)); }
  const Progress* operator->() const { return progress_; }

 private:
  Progress* progress_;
};

std::vector<fs::path> SlotFiles(const fs::path& run_directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(run_directory)) {
    if (entry.path().extension() == collectors::kSlotFileSuffix) found.push_back(entry.path());
  }
  return found;
}

// As the supervisor does, in a process of its own.
void Salvage(const fs::path& run_directory) {
  const pid_t salvager = fork();
  if (salvager == 0) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    _exit(collectors::SalvageSlots(run_directory, deadline).left == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(salvager, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(SlotFiles(run_directory).empty());
}

struct Delivered {
  std::multiset<uint32_t> kernels;  // correlations
  std::multiset<uint32_t> calls;
};

// What the delivered buffers in a slot file hold, told by sizes alone.
Delivered ReadDelivered(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  Delivered delivered;
  if (bytes.size() < collectors::kSlotBytes) return delivered;
  const auto* header = reinterpret_cast<const SlotFileHeader*>(bytes.data());
  for (uint32_t i = 0; i < header->slots; ++i) {
    const auto& slot = header->slot[i];
    if (slot.state != SlotState::kDelivered && slot.state != SlotState::kInWork) continue;
    if (slot.done_bytes == slot.valid_bytes) continue;  // rows already, perhaps being cleaned
    const char* data = bytes.data() + uint64_t{collectors::kSlotBytes} * (i + 1);
    for (uint32_t at = 0; at < slot.valid_bytes;) {
      collectors::KernelRecord kernel{};
      std::memcpy(&kernel.kind, data + at, sizeof kernel.kind);
      const uint32_t size = header->record_bytes[kernel.kind];
      if (kernel.kind == collectors::kKernelActivity) {
        std::memcpy(&kernel, data + at, sizeof kernel);
        delivered.kernels.insert(kernel.correlation);
      } else if (kernel.kind == collectors::kRuntimeActivity) {
        collectors::ApiRecord call{};
        std::memcpy(&call, data + at, sizeof call);
        delivered.calls.insert(call.correlation);
      }
      at += size;
    }
  }
  return delivered;
}

std::string Describe(const recording::CallRow& row) {
  return row.domain == recording::CallDomain::kRuntime ? ", runtime" : ", driver";
}
std::string Describe(const DeviceRow&) { return ""; }

// `rows` are those of one type, whose correlations are all different.
template <typename Row>
std::set<uint32_t> ExpectOnce(const std::vector<Row>& rows) {
  std::map<uint32_t, const Row*> once;
  for (const Row& row : rows) {
    const auto [first, is_new] = once.emplace(row.correlation, &row);
    EXPECT_TRUE(is_new) << "twice: correlation " << row.correlation << ", row "
                        << first->second - rows.data() << " at " << first->second->begin_ns
                        << " and row " << &row - rows.data() << " of " << rows.size() << " at "
                        << row.begin_ns << Describe(*first->second) << Describe(row);
  }
  std::set<uint32_t> found;
  for (const auto& [correlation, row] : once) found.insert(correlation);
  return found;
}

// The age of the oldest kernel that has no row, at the moment of the kill.
int64_t LargestMissingAge(const RecordedRows& rows, const std::set<uint32_t>& kernels,
                          const Progress& progress, int64_t killed_ns) {
  std::set<uint32_t> launches;
  for (const auto& call : rows.calls) {
    if (rows.names[call.name] == "cudaLaunchKernel") launches.insert(call.correlation);
  }
  uint64_t index = 0;  // launches follow each other on one thread
  for (const uint32_t launch : launches) {
    if (kernels.count(launch) == 0) break;
    ++index;
  }
  if (index >= progress.launches) return 0;
  return killed_ns - progress.launched_ns[index % Progress::kKept];
}

struct AfterKill {
  int64_t missing_age_ns = 0;
  size_t kernels = 0;
  size_t salvaged = 0;
  size_t launches = 0;
};

// When records of the device have their times (docs/virtual_gpu.md).
constexpr char kWhenFlushed[] =
    "complete_at_flush";  // as of a real GPU, whose times come from CUPTI's own buffers
constexpr char kWhenEnded[] = "complete_at_once";

AfterKill KillAfter(int delay_us, const char* faults) {
  CudaRun run;
  run.environment["VGPU_FAULTS"] = faults;
  const fs::path file = run.Scratch("progress");
  const SharedProgress progress(file);
  const pid_t pid = run.Start({"killed", file.string()});
  for (int i = 0; i < 20'000 && progress->launches == 0; ++i) usleep(500);
  usleep(static_cast<useconds_t>(delay_us));
  kill(pid, SIGKILL);
  const int64_t killed_ns = NowNs();
  EXPECT_TRUE(WIFSIGNALED(run.Wait()));

  Delivered delivered;
  for (const fs::path& path : SlotFiles(run.directory())) delivered = ReadDelivered(path);
  Salvage(run.directory());

  const RecordedRows rows = run.Rows();
  EXPECT_EQ(rows.damaged, 0);
  const std::vector<DeviceRow> kernels = rows.Of(DeviceRowType::kKernel);
  for (const DeviceRow& row : kernels) {
    EXPECT_TRUE(rows.names[row.name] == "_Z6kernelPf" || row.name == 0);
  }
  const std::set<uint32_t> with_kernel = ExpectOnce(kernels);
  const std::set<uint32_t> with_call = ExpectOnce(rows.calls);
  for (const uint32_t correlation : delivered.kernels) EXPECT_TRUE(with_kernel.count(correlation));
  for (const uint32_t correlation : delivered.calls) EXPECT_TRUE(with_call.count(correlation));
  EXPECT_GE(rows.CountCalls("cudaLaunchKernel"), static_cast<int64_t>(progress->launches));
  const std::string salvaged = rows.Fact("cupti.salvaged_rows");
  return {LargestMissingAge(rows, with_kernel, *progress.operator->(), killed_ns), kernels.size(),
          salvaged.empty() ? 0 : std::stoul(salvaged), progress->launches};
}

// Every call that has returned is there, and what was delivered, once.
TEST(CuptiKill, AtAHundredRandomMomentsKeepsCallsAndWhatWasDelivered) {
  std::mt19937 random(20261121);
  std::uniform_int_distribution<int> delay_us(0, 120'000);
  size_t salvaged = 0;
  size_t launches = 0;
  int kills = 0;
  for (; kills < RandomKills() || (salvaged == 0 && kills < 10 * RandomKills()); ++kills) {
    const AfterKill after = KillAfter(delay_us(random), kills % 2 == 0 ? kWhenFlushed : kWhenEnded);
    salvaged += after.salvaged;
    launches += after.launches;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(salvaged, 0u) << "the kills never met a buffer";
  std::printf("%d kills, %zu launches, %zu rows salvaged\n", kills, launches, salvaged);
}

// CUPTI is flushed once a second: what the device did before is there, up to the last flush.
TEST(CuptiKill, LosesOfTheDeviceAtMostWhatEndedSinceTheLastFlush) {
  std::mt19937 random(20261124);
  std::uniform_int_distribution<int> delay_us(1'200'000, 2'600'000);
  constexpr int64_t kLate = 500 * kNsPerMs;  // of a busy machine
  for (int kills = 0; kills < (kIsSanitized ? 2 : 4); ++kills) {
    const AfterKill after = KillAfter(delay_us(random), kWhenFlushed);
    EXPECT_GT(after.kernels, 0u);
    EXPECT_LT(after.missing_age_ns, 1000 * kNsPerMs + kLate);
    if (::testing::Test::HasFailure()) break;
  }
}

// What has ended lies behind a record that is not written yet, in a buffer that CUPTI has not delivered.
TEST(CuptiKill, WhatIsUnderWayHidesNothingThatHasEnded) {
  for (const char* faults : {kWhenEnded, "complete_at_once,blank_incomplete", kWhenFlushed}) {
    SCOPED_TRACE(faults);
    CudaRun run;
    run.environment["VGPU_FAULTS"] = faults;
    EXPECT_TRUE(WIFSIGNALED(run.Run({"held", "50"})));
    Salvage(run.directory());
    const RecordedRows rows = run.Rows();
    EXPECT_EQ(rows.damaged, 0);
    std::set<uint32_t> kernels;
    for (const DeviceRow& row : rows.Of(DeviceRowType::kKernel)) {
      EXPECT_TRUE(kernels.insert(row.correlation).second);
      EXPECT_GE(row.end_ns, row.begin_ns);
      EXPECT_LT(row.end_ns - row.begin_ns, 1000 * kNsPerMs);
    }
    // Without a flush in its 50 ms the times died with CUPTI.
    EXPECT_EQ(kernels.size(), faults == kWhenFlushed || HardGpu() ? 0u : 50u);
    EXPECT_EQ(rows.CountCalls("cudaLaunchKernel"), 51);
  }
}

fs::path InMemory(const fs::path& slots) {
  return fs::path(collectors::kSharedMemoryFolder) / ("trainprof-" + slots.filename().string());
}

// As of a recording on a network file system, which a test cannot mount.
class CuptiMemoryKill : public ::testing::Test {
 protected:
  CuptiMemoryKill() { run_.environment[recording::kEnvOptions] = "buffers=/dev/shm"; }
  ~CuptiMemoryKill() override { fs::remove(there_); }
  // Starts the program, and waits until it has launched something.
  void Start() {
    const fs::path file = run_.Scratch("progress");
    const SharedProgress progress(file);
    run_.Start({"killed", file.string()});
    for (int i = 0; i < 20'000 && progress->launches < 500; ++i) usleep(500);
    const std::vector<fs::path> files = SlotFiles(run_.directory());
    ASSERT_EQ(files.size(), 1u);
    there_ = InMemory(files.front());
    ASSERT_TRUE(fs::exists(there_));
  }
  void Kill() {
    kill(run_.pid(), SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(run_.Wait()));
  }

  CudaRun run_;
  fs::path there_;
};

TEST_F(CuptiMemoryKill, KeepsItsRowsAndLeavesNothingThere) {
  Start();
  Kill();
  EXPECT_TRUE(fs::exists(there_));
  Salvage(run_.directory());
  EXPECT_FALSE(fs::exists(there_));
  const RecordedRows rows = run_.Rows();
  EXPECT_EQ(rows.Fact("cupti.buffers"), "in /dev/shm: --gpu-buffers /dev/shm");
  EXPECT_GT(rows.CountCalls("cudaLaunchKernel"), 500);
  EXPECT_NE(rows.Fact("cupti.salvaged_rows"), "");
}

// By the next run's end, if nobody has opened the recording before it was removed.
TEST_F(CuptiMemoryKill, WhatARemovedRecordingLeftGoesOnceItsProcessIsDead) {
  Start();
  collectors::RemoveStrandedSlots();
  EXPECT_TRUE(fs::exists(there_)) << "its recording is there";
  fs::rename(run_.directory(), run_.Scratch("moved"));
  collectors::RemoveStrandedSlots();
  EXPECT_TRUE(fs::exists(there_)) << "it is written";
  Kill();
  collectors::RemoveStrandedSlots();
  EXPECT_FALSE(fs::exists(there_));
}

TEST(CuptiKill, ByTheVirtualGpuItselfKeepsAllButTheLast) {
  CudaRun run;
  run.environment["VGPU_FAULTS"] = "crash_at=500";
  EXPECT_TRUE(WIFSIGNALED(run.Run({"kernels", "1000"})));
  ASSERT_EQ(SlotFiles(run.directory()).size(), 1u);
}

// A dead process's slot file, to be changed.
class SlotFileToChange {
 public:
  explicit SlotFileToChange(const fs::path& path) : bytes_(fs::file_size(path)) {
    const int fd = open(path.c_str(), O_RDWR);
    map_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
  }
  ~SlotFileToChange() { munmap(map_, bytes_); }
  SlotFileHeader* operator->() const { return static_cast<SlotFileHeader*>(map_); }
  // A buffer of that record alone, which was delivered then.
  void Deliver(const collectors::ApiRecord& record, int64_t delivered_ns) {
    Deliver(std::vector<collectors::ApiRecord>{record}, delivered_ns);
  }
  void Deliver(const std::vector<collectors::ApiRecord>& records, int64_t delivered_ns) {
    SlotFileHeader* header = operator->();
    uint32_t i = 0;
    while (i < header->slots && header->slot[i].state != SlotState::kFree) ++i;
    ASSERT_LT(i, header->slots);
    char* const buffer = static_cast<char*>(map_) + uint64_t{collectors::kSlotBytes} * (i + 1);
    uint32_t at = 0;
    for (const collectors::ApiRecord& record : records) {
      std::memcpy(buffer + at, &record, sizeof record);
      at += header->record_bytes[record.kind];
    }
    header->slot[i].state = SlotState::kDelivered;
    header->slot[i].valid_bytes = at;
    header->slot[i].done_bytes = 0;
    header->slot[i].delivered_ns = delivered_ns;
  }

 private:
  uint64_t bytes_;
  void* map_;
};

// It has been put beside its buffer, which is not noted as done yet.
TEST(CuptiKill, ADriversCallThatWasAboutToWaitIsARowOnce) {
  constexpr uint32_t kCuLaunchKernel = 307;
  constexpr uint32_t kCudaLaunchKernel = 211;
  constexpr uint32_t kCorrelation = 4'000'000'000;
  for (const bool nested : {true, false}) {
    CudaRun run;
    run.environment["VGPU_FAULTS"] = "crash_at=500";
    EXPECT_TRUE(WIFSIGNALED(run.Run({"kernels", "1000"})));
    ASSERT_EQ(SlotFiles(run.directory()).size(), 1u);
    {
      SlotFileToChange file(SlotFiles(run.directory()).front());
      const auto now = static_cast<uint64_t>(NowNs() - file->time_offset_ns);
      collectors::ApiRecord call{};
      call.kind = collectors::kDriverActivity;
      call.cbid = kCuLaunchKernel;
      call.start = now - 3000;
      call.end = now - 2000;
      call.thread = 4'000'000;
      call.correlation = kCorrelation;
      file.Deliver(call, 1);
      file->waiting_calls[0] = call;
      call.kind = collectors::kRuntimeActivity;
      call.cbid = kCudaLaunchKernel;
      call.start = now - 4000;
      call.end = now - 1000;
      if (nested) file.Deliver(call, 2);
    }
    Salvage(run.directory());
    const RecordedRows rows = run.Rows();
    const std::set<uint32_t> calls = ExpectOnce(rows.calls);
    ASSERT_EQ(calls.count(kCorrelation), 1u);
    for (const auto& row : rows.calls) {
      if (row.correlation != kCorrelation) continue;
      EXPECT_EQ(row.domain,
                nested ? recording::CallDomain::kRuntime : recording::CallDomain::kDriver);
    }
  }
}

// A record that CUPTI had not filled in has the id 0, whose note is where those of every 16,384th call are.
TEST(CuptiKill, ARecordWithoutAnIdMakesNoNestedCallARow) {
  constexpr uint32_t kCorrelation = 244'140u * 16'384u;
  CudaRun run;
  run.environment["VGPU_FAULTS"] = "crash_at=500";
  EXPECT_TRUE(WIFSIGNALED(run.Run({"kernels", "1000"})));
  ASSERT_EQ(SlotFiles(run.directory()).size(), 1u);
  {
    SlotFileToChange file(SlotFiles(run.directory()).front());
    const auto now = static_cast<uint64_t>(NowNs() - file->time_offset_ns);
    collectors::ApiRecord driver{};
    driver.kind = collectors::kDriverActivity;
    driver.cbid = 307;  // cuLaunchKernel
    driver.start = now - 3000;
    driver.end = now - 2000;
    driver.thread = 4'000'000;
    driver.correlation = kCorrelation;
    collectors::ApiRecord runtime = driver;
    runtime.kind = collectors::kRuntimeActivity;
    runtime.cbid = 211;  // cudaLaunchKernel
    runtime.start = now - 4000;
    runtime.end = now - 1000;
    collectors::ApiRecord empty{};
    empty.kind = collectors::kRuntimeActivity;
    empty.thread = driver.thread;
    file.Deliver(std::vector{driver, runtime, empty}, 1);
  }
  Salvage(run.directory());
  const RecordedRows rows = run.Rows();
  EXPECT_EQ(ExpectOnce(rows.calls).count(kCorrelation), 1u);
}

TEST(CuptiDisk, AFullOneCostsTheRecordingAndNothingElse) {
  for (const int64_t limit : {int64_t{100} << 10, int64_t{2} << 20}) {
    CudaRun run;
    run.environment["VGPU_SETTINGS"] = "scale=0";
    run.file_size_limit_bytes = limit;
    EXPECT_EQ(run.Run({"kernels", "100000"}), 0) << limit;
    EXPECT_EQ(run.output(), "output\n");
    const RecordedRows rows = run.Rows();
    EXPECT_EQ(rows.damaged, 0);
    EXPECT_GT(rows.dropped, 0u) << limit;
  }
}

TEST(CuptiFork, TheChildIsInertAndTheParentGoesOn) {
  CudaRun run;
  // The child has the locks that other threads held, and would wait for them at its exit.
  run.environment["ASAN_OPTIONS"] = "detect_leaks=0";
  EXPECT_EQ(run.Run({"fork"}), 0) << run.output();
  const auto all = ReadRows(run.directory());
  ASSERT_EQ(all.size(), 2u);
  const bool first_is_parent = !all[0].device.empty();
  const RecordedRows& parent = all[first_is_parent ? 0 : 1];
  const RecordedRows& child = all[first_is_parent ? 1 : 0];
  EXPECT_EQ(parent.Of(DeviceRowType::kKernel).size(), 2u);
  EXPECT_EQ(parent.Fact("cupti.forks"), "1");
  EXPECT_TRUE(child.device.empty());
  EXPECT_NE(child.Fact("cupti.state").find("forked after CUDA init"), std::string::npos);
}

}  // namespace
}  // namespace trainprof::testing
