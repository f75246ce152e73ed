// What fixing a finding changes: the rows that a rule names are those that it found.
#include "analysis/graph/change.h"

#include <gtest/gtest.h>

#include "analysis/graph/step_replay.h"
#include "analysis/rule.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// The one change that a rule proposes for a trace.
Change ChangeOf(std::string_view rule, const Trace& trace) {
  const RankModel model(trace);
  for (const RegisteredRule& entry : AllRules()) {
    if (entry.slug != rule) continue;
    const RuleOutcome outcome =
        entry.rule->check ? entry.rule->check(model) : entry.rule->check_rest(model, {});
    const auto* found = std::get_if<std::vector<Diagnosis>>(&outcome);
    if (found != nullptr && found->size() == 1) return found->front().change;
  }
  ADD_FAILURE() << rule << " did not find one thing";
  return {Edit::kDropWork, {}, kNoDevice};
}

// The host waits for its batch, then for the device.
constexpr char kWaits[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 ProfilerStep#1
      annotation 10 400 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      call 410 420 cudaLaunchKernel | corr=1
      call 430 705 cudaMemcpyAsync | corr=2
      call 706 708 cudaStreamSynchronize
    end
    stream 0 7
    repeat 5 every 1000
      kernel 425 690 gemm | corr=1
      copy 690 700 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4
    end)";

TEST(Change, OfHostSyncsIsTheirCallsAndTheSyncsBehindThem) {
  const Trace trace = TraceFromScript(kWaits);
  const Change change = ChangeOf("host-sync", trace);
  EXPECT_EQ(change.edit, Edit::kRemoveWaits);
  ASSERT_EQ(change.rows.size(), 8u);
  for (const Row row : change.rows) {
    EXPECT_NE(trace.Text(trace.api.name[Index(row)]), "cudaLaunchKernel");
  }
}

TEST(Change, OfAnInputWaitIsTheLoadersRanges) {
  const Trace trace = TraceFromScript(kWaits);
  const Change change = ChangeOf("input-bound", trace);
  EXPECT_EQ(change.edit, Edit::kFeedInput);
  ASSERT_EQ(change.rows.size(), 4u);
  for (const Row row : change.rows) {
    EXPECT_TRUE(trace.Text(trace.ranges.name[Index(row)]).starts_with("enumerate("));
  }
}

TEST(Change, OfAnIdleDeviceNamesIt) {
  const Trace trace = TraceFromScript(kWaits);
  const Change change = ChangeOf("low-utilisation", trace);
  EXPECT_EQ(change.edit, Edit::kFillIdle);
  EXPECT_EQ(change.device, DeviceId{0});
}

// What is gone has no gap before it: of a device without a pause that took as much time as the copies did.
TEST(Change, OfWorkThatIsDroppedTakesItsHandOverToo) {
  const Trace trace = TraceFromScript(R"(
    thread 1
    repeat 12 every 10
      step 0 10 ProfilerStep#1
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaMemcpyAsync | corr=2
      call 5 6 cudaLaunchKernel | corr=3
    end
    stream 0 7
    repeat 12 every 100
      kernel 3 43 gemm | corr=1
      copy 46 57 Memcpy HtoD (Pageable -> Device) | corr=2 bytes=4
      kernel 60 100 gemm | corr=3
    end)");
  const RankModel model(trace);
  Change change{Edit::kDropWork, {}, kNoDevice};
  for (uint32_t row = 0; row < trace.device_ops.size(); ++row) {
    if (trace.device_ops.kind[row] == DeviceOpKind::kCopy) change.rows.push_back(Row{row});
  }
  const Change* const changes[] = {&change};
  const std::vector<int64_t> after = model.step_replay->After(changes, {});
  for (const int64_t ns : after) EXPECT_EQ(ns, 100'000 - 11'000 - 3'000);
}

}  // namespace
}  // namespace trainprof
