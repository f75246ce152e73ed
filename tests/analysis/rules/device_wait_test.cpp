#include <gtest/gtest.h>

#include <utility>

#include "analysis/rule.h"
#include "tests/analysis/rules/findings_text.h"

namespace trainprof {
namespace {

// Device 1 begins when device 0 is done; an event of stream 7 says so.
constexpr char kPipeline[] = R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaEventRecord | corr=2
      call 5 6 cudaStreamWaitEvent | corr=3
      call 7 8 cudaLaunchKernel | corr=4
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 500 part_a | corr=1
    end
    stream 1 9
    repeat 5 every 1000
      stream-wait 5 500 | corr=3 record=2 stream=7 device=0
      kernel 502 1000 part_b | corr=4
    end)";

const Rule& DeviceWait() {
  for (const RegisteredRule& entry : AllRules()) {
    if (entry.slug == "device-wait") return *entry.rule;
  }
  throw std::logic_error("no such rule");
}

// With the class as the account gives it to what ends with such a wait.
std::string TitleWith(const Trace& trace, DeviceClass of) {
  RankModel model(trace);
  for (DeviceAccount& device : model.accounts) {
    if (trace.devices[Index(device.device)].id != 1) continue;
    device.total = {};
    const PackedTimeline<DeviceClass> idle = std::exchange(device.idle, {});
    for (const Segment<DeviceClass>& segment : idle) {
      device.idle.Add(segment.interval, of);
      device.total[static_cast<size_t>(of)] +=
          model.device_steps.window.TotalWithin(segment.interval);
    }
  }
  const RuleOutcome outcome = DeviceWait().check(model);
  const auto* found = std::get_if<std::vector<Diagnosis>>(&outcome);
  if (found == nullptr || found->empty()) return "";
  return fmt::format("{} ({} rows)", found->front().finding.title,
                     found->front().change.rows.size());
}

TEST(DeviceWait, ABubbleNamesTheDeviceWaitedFor) {
  EXPECT_EQ(
      TitleWith(TraceFromScript(kPipeline), DeviceClass::kIdleOtherDevice),
      "Waiting for another GPU: GPU 1 stands idle for 0.50 ms/step until GPU 0 is done (5 rows)");
}

// The first one comes before any work of the device.
TEST(DeviceWait, AHostFunctionInAStream) {
  EXPECT_EQ(
      TitleWith(TraceFromScript(R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchHostFunc | corr=1
      call 7 8 cudaLaunchKernel | corr=4
    end
    stream 1 9
    repeat 5 every 1000
      host-function 5 500 host function | corr=1
      kernel 502 1000 part_b | corr=4
    end)"),
                DeviceClass::kIdleHostFunction),
      "Host functions: GPU 1 stands idle for 0.50 ms/step while a stream waits for a function on "
      "the host (4 rows)");
}

TEST(DeviceWait, WithoutSuchIdleTimeItPasses) {
  EXPECT_EQ(OutcomeOf("device-wait", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 1000 gemm | corr=1
    end)"),
            "passed");
}

TEST(DeviceWait, WhereNobodyRecordedWhatStreamsWaitedForItIsNotChecked) {
  EXPECT_EQ(OutcomeOf("device-wait", R"(
    thread 1
    repeat 5 every 1000
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 5 6 cudaStreamWaitEvent | corr=3
      call 7 8 cudaLaunchKernel | corr=4
    end
    stream 0 7
    repeat 5 every 1000
      kernel 10 500 part_a | corr=1
    end
    stream 1 9
    repeat 5 every 1000
      kernel 10 500 part_b | corr=4
    end)"),
            "skipped: the trace does not say what streams waited for");
}

}  // namespace
}  // namespace trainprof
