// What fixing a finding changes: the rows that a rule names are those that it found.
#include "analysis/graph/change.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace trainprof
