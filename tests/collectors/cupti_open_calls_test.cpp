// Calls that had not returned when the program ended: a thread that waits then is to be seen.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <set>

#include "collectors/cupti/open_calls.h"
#include "collectors/salvage/salvage.h"
#include "tests/collectors/cuda_run.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::testing {
namespace {

using collectors::BegunCall;
using collectors::OpenCall;
using collectors::OpenCalls;

constexpr int64_t kNsPerMs = 1'000'000;

TEST(CuptiOpenCalls, HoldOneAThreadUntilItReturns) {
  const auto calls = std::make_unique<OpenCalls>();
  BegunCall begun{};
  begun.correlation = 7;
  OpenCall* const entry = calls->Begin(nullptr, 100, begun);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->thread, 100u);
  EXPECT_EQ(entry->correlation, 7u);
  EXPECT_NE(calls->Begin(nullptr, 100 + OpenCalls::kMost, begun), entry) << "the same place";
  begun.correlation = 8;  // the end of the former was not told
  EXPECT_EQ(calls->Begin(entry, 100, begun), entry);
  EXPECT_EQ(entry->correlation, 8u);
  OpenCalls::End(entry);
  EXPECT_EQ(entry->thread, 0u);
  EXPECT_EQ(calls->Begin(nullptr, 100, begun), entry) << "it is free again";
}

TEST(CuptiOpenCalls, WithoutRoomAreNotTold) {
  const auto calls = std::make_unique<OpenCalls>();
  for (uint32_t i = 0; i < OpenCalls::kMost; ++i)
    ASSERT_NE(calls->Begin(nullptr, i + 1, BegunCall{}), nullptr);
  EXPECT_EQ(calls->Begin(nullptr, 1, BegunCall{}), nullptr);
  EXPECT_FALSE(calls->IsEmpty());
  calls->Forget();
  EXPECT_TRUE(calls->IsEmpty());
}

// The waits of the program's two threads: one that has returned, one that has not.
void ExpectWaits(const CudaRun& run, int64_t least_ns) {
  const RecordedRows rows = run.Rows();
  EXPECT_EQ(rows.damaged, 0);
  EXPECT_EQ(rows.Fact("cupti.calls_at_exit"), "1");
  int64_t longest_ns = 0;
  std::set<uint32_t> threads;
  for (const auto& row : rows.calls) {
    if (rows.names[row.name] != "cudaDeviceSynchronize") continue;
    longest_ns = std::max(longest_ns, row.end_ns - row.begin_ns);
    threads.insert(row.tid);
  }
  EXPECT_EQ(rows.CountCalls("cudaDeviceSynchronize"), 2);
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_GE(longest_ns, least_ns);
  EXPECT_LT(longest_ns, 10'000 * kNsPerMs);
  auto ranks = recording::ReadRecording(run.directory());
  ASSERT_TRUE(ranks.ok());
  EXPECT_EQ(ranks.value().at(0).trace.quality.CountOf("calls_at_exit"), 1);
}

TEST(CuptiOpenCalls, AreRowsUpToTheProgramsEnd) {
  CudaRun run;
  ASSERT_EQ(run.Run({"waiting", "400"}), 0);
  ExpectWaits(run, 300 * kNsPerMs);
}

// How long it waited is known to a second.
TEST(CuptiOpenCallsKill, OfAKilledProgramTheyAreRowsToo) {
  CudaRun run;
  EXPECT_TRUE(WIFSIGNALED(run.Run({"waiting", "2500", "killed"})));
  const pid_t salvager = fork();  // as the supervisor does, in a process of its own
  if (salvager == 0) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    _exit(collectors::SalvageSlots(run.directory(), deadline).left == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(salvager, &status, 0);
  EXPECT_EQ(status, 0);
  ExpectWaits(run, 1000 * kNsPerMs);
}

// Nobody tells whether it returned meanwhile.
TEST(CuptiOpenCalls, OfAWindowThatHasEndedAreNone) {
  CudaRun run;
  run.environment[recording::kEnvOptions] = "duration_ms=200";
  ASSERT_EQ(run.Run({"waiting", "3500"}), 0);
  EXPECT_EQ(run.Rows().Fact("cupti.calls_at_exit"), "");
  EXPECT_EQ(run.Rows().CountCalls("cudaDeviceSynchronize"), 1);
}

TEST(CuptiOpenCalls, AreNoneWhereAllHaveReturned) {
  CudaRun run;
  run.environment["VGPU_FAULTS"] = "callback_twice";
  ASSERT_EQ(run.Run({"stacks", "100"}), 0);
  EXPECT_EQ(run.Rows().Fact("cupti.calls_at_exit"), "");
  EXPECT_EQ(run.Rows().CountCalls("cudaMemcpy"), 100);
}

}  // namespace
}  // namespace trainprof::testing
