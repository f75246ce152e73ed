// Records of CUPTI in an order that threads may bring about, and the rows that they become.
#include "collectors/cupti/converter.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <vector>

#include "collectors/core/process_state.h"
#include "tests/collectors/recorded_run.h"
#include "trace/recording/wire/layout.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::testing {
namespace {

using namespace collectors;

class Buffers {
 public:
  Buffers() {
    header_->record_bytes[kKernelActivity] = sizeof(KernelRecord);
    header_->record_bytes[kRuntimeActivity] = sizeof(ApiRecord);
    header_->record_bytes[kDriverActivity] = sizeof(ApiRecord);
    header_->record_bytes[kOverheadActivity] = sizeof(OverheadRecord);
    converter_->Init(RowWriter::Make(), header_.get(), true, nullptr);
  }

  void DeliverKernel(uint32_t correlation, int64_t begin_ns) {
    KernelRecord record{};
    record.kind = kKernelActivity;
    record.correlation = correlation;
    record.start = static_cast<uint64_t>(begin_ns);
    record.end = begin_ns == 0 ? 0 : record.start + 1000;
    Deliver(record);
  }
  void DeliverLaunch(uint32_t correlation, int64_t begin_ns) {
    Deliver(LaunchOf(correlation, begin_ns));
  }
  // The driver's call within such a launch, at the end of a buffer.
  void DeliverNested(uint32_t correlation, int64_t begin_ns) {
    ApiRecord record = LaunchOf(correlation, begin_ns);
    record.kind = kDriverActivity;
    record.cbid = kCuLaunchKernel;
    Deliver(record);
  }
  void DeliverOverheadWithoutTimes() {
    OverheadRecord record{};
    record.kind = kOverheadActivity;
    Deliver(record);
  }
  // A buffer that CUPTI has not delivered: a launch, its kernel without times, and an older one with them.
  void Hold(uint32_t under_way, uint32_t ended, int64_t begin_ns) {
    ApiRecord launch = LaunchOf(under_way, begin_ns);
    KernelRecord kernels[2] = {};
    kernels[0].kind = kKernelActivity | kIncompleteMark;
    kernels[0].correlation = under_way;
    kernels[1].kind = kKernelActivity;
    kernels[1].correlation = ended;
    kernels[1].start = static_cast<uint64_t>(begin_ns);
    kernels[1].end = kernels[1].start + 1000;
    memcpy(held_.data(), &launch, sizeof launch);
    memcpy(held_.data() + sizeof launch, kernels, sizeof kernels);
    slot_.state = SlotState::kHeld;
    slot_.held_ns = begin_ns;
    converter_->NoteHeldCalls(slot_, held_.data());
  }
  uint64_t UnderWay() { return converter_->NoteHeldWork(slot_, held_.data()); }
  void ConvertHeld() {
    converter_->Convert(held_.data(), kSlotBytes, &slot_.done_bytes, slot_.held_ns);
  }
  Converter& converter() { return *converter_; }
  uint64_t rows() const { return converter_->counts().rows; }

 private:
  static constexpr uint32_t kLaunchKernel = 211;  // CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000

  static ApiRecord LaunchOf(uint32_t correlation, int64_t begin_ns) {
    ApiRecord record{};
    record.kind = kRuntimeActivity;
    record.cbid = kLaunchKernel;
    record.correlation = correlation;
    record.start = static_cast<uint64_t>(begin_ns);
    record.end = record.start + 1000;
    return record;
  }

  static constexpr uint32_t kCuLaunchKernel = 307;

  template <class Record>
  void Deliver(const Record& record) {
    std::vector<uint64_t> buffer((sizeof record + 7) / 8);
    memcpy(buffer.data(), &record, sizeof record);
    std::atomic<uint32_t> done = 0;
    converter_->Convert(reinterpret_cast<const char*>(buffer.data()), sizeof record, &done, 0);
  }

  std::unique_ptr<SlotFileHeader> header_ = std::make_unique<SlotFileHeader>();
  std::unique_ptr<Converter> converter_ = std::make_unique<Converter>();
  std::vector<char> held_ = std::vector<char>(kSlotBytes);
  Slot slot_{};
};

// The thread was in the launch when the pause began, and did not run until the next one had begun.
int RowsOfALaunchThatReturnsLate(int pauses) {
  const RecordedRun run;
  setenv(recording::kEnvRunDirectory, run.directory().c_str(), 1);
  if (!InstallRuntime() || !StartProcess()) return -1;
  Buffers buffers;
  const int64_t now = recording::MonotonicNs();
  buffers.converter().BeginPause(now);
  buffers.DeliverKernel(7, now + 10);
  for (int i = 1; i <= pauses; ++i) {
    buffers.converter().EndPause(now + i * 100'000);
    buffers.converter().BeginPause(now + i * 100'000 + 50'000);
  }
  buffers.DeliverLaunch(7, now - 10);
  return static_cast<int>(buffers.rows());
}

TEST(CuptiConverter, AKernelWaitsForItsLaunchOverOnePause) {
  constexpr int kLaunchAndKernel = 2;
  EXPECT_EXIT(exit(RowsOfALaunchThatReturnsLate(0)), ::testing::ExitedWithCode(kLaunchAndKernel),
              "");
  EXPECT_EXIT(exit(RowsOfALaunchThatReturnsLate(1)), ::testing::ExitedWithCode(kLaunchAndKernel),
              "");
  EXPECT_EXIT(exit(RowsOfALaunchThatReturnsLate(2)), ::testing::ExitedWithCode(1), "");
}

// In a process of its own: the converter's code is the collector's. Bits of what went wrong.
int WhatIsIncomplete() {
  const RecordedRun run;
  setenv(recording::kEnvRunDirectory, run.directory().c_str(), 1);
  if (!InstallRuntime() || !StartProcess()) return -1;
  Buffers buffers;
  const int64_t now = recording::MonotonicNs();
  buffers.Hold(8, 7, now);
  int wrong = buffers.UnderWay() == 1 && buffers.converter().unanswered() == 1 ? 0 : 1;
  buffers.ConvertHeld();
  constexpr uint64_t kLaunchAndKernel = 2;
  wrong |= buffers.rows() == kLaunchAndKernel ? 0 : 2;
  wrong |= buffers.converter().counts().unreadable == 0 ? 0 : 4;
  buffers.DeliverOverheadWithoutTimes();
  wrong |= buffers.converter().counts().untimed == 0 ? 0 : 8;
  buffers.DeliverKernel(9, 0);  // a kernel without a begin is one
  wrong |= buffers.converter().counts().untimed == 1 ? 0 : 16;
  return wrong;
}

// A driver's call ends a buffer, and the runtime's that holds it begins the next; another comes before that one.
int RowsOfBuffersInTheWrongOrder() {
  const RecordedRun run;
  setenv(recording::kEnvRunDirectory, run.directory().c_str(), 1);
  if (!InstallRuntime() || !StartProcess()) return -1;
  Buffers buffers;
  const int64_t now = recording::MonotonicNs();
  buffers.DeliverNested(7, now + 10);
  buffers.DeliverLaunch(8, now + 2000);
  buffers.DeliverLaunch(7, now);
  buffers.converter().WriteWaiting();
  return static_cast<int>(buffers.rows());
}

TEST(CuptiConverter, ANestedCallIsNoRowThoughBuffersComeInTheWrongOrder) {
  constexpr int kLaunches = 2;
  EXPECT_EXIT(exit(RowsOfBuffersInTheWrongOrder()), ::testing::ExitedWithCode(kLaunches), "");
}

TEST(CuptiConverter, WhatHasNoTimesYetHidesNothingAndOverheadMayHaveNone) {
  EXPECT_EXIT(exit(WhatIsIncomplete()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace trainprof::testing
