// Everything that can go wrong around CUPTI is told by name, and the program does not notice.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <sstream>

#include "tests/collectors/cuda_run.h"

namespace trainprof::testing {
namespace {

using recording::DeviceRowType;

struct FaultRun {
  RecordedRows rows;
  std::string state;
};

// Runs `mode` with the fault; exit code and output must be those of a run without the collector.
FaultRun RunWith(const std::string& fault, const std::vector<std::string>& mode = {"kernels", "50"},
                 const std::string& settings = "", int code = 0) {
  CudaRun run;
  run.environment["VGPU_FAULTS"] = fault;
  // A search that goes on may meet the machine's real libcupti, which leaks when it is unloaded.
  run.environment["ASAN_OPTIONS"] = "detect_leaks=0";
  if (!settings.empty()) run.environment["VGPU_SETTINGS"] = settings;
  const int status = run.Run(mode);
  EXPECT_EQ(status, code) << fault << ": " << run.output();
  if (code == 0) {
    EXPECT_EQ(run.output(), "output\n") << fault;
  }
  FaultRun result{run.Rows(), ""};
  result.state = result.rows.Fact("cupti.state");
  EXPECT_EQ(result.rows.damaged, 0) << fault;
  return result;
}

size_t Kernels(const FaultRun& run) { return run.rows.Of(DeviceRowType::kKernel).size(); }

TEST(CuptiFaults, AnotherSubscriberIsNamed) {
  const FaultRun run = RunWith("another_subscriber");
  EXPECT_EQ(run.state, "CUPTI is held by 'Nsight Systems'. Recording host, NVTX and Python only.");
  EXPECT_EQ(Kernels(run), 0u);
}

TEST(CuptiFaults, MissingPrivilegesComeWithTheirFix) {
  const FaultRun run = RunWith("insufficient_privileges");
  EXPECT_NE(run.state.find("RmProfilingAdminOnly"), std::string::npos) << run.state;
  EXPECT_NE(run.state.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
}

TEST(CuptiFaults, WrongLibraryIsNamedWithBothVersions) {
  const FaultRun old = RunWith("wrong_libcupti");
  EXPECT_NE(old.state.find("libcupti 12.4 at "), std::string::npos) << old.state;
  EXPECT_NE(old.state.find("driver 13.0"), std::string::npos) << old.state;
  // With such a driver CUDA's runtime fails, too: the program says so itself, with code 3.
  const FaultRun newer = RunWith("", {"kernels", "5"}, "driver_version=12040", 3 << 8);
  EXPECT_NE(newer.state.find("libcupti 13 at "), std::string::npos) << newer.state;
  EXPECT_NE(newer.state.find("driver 12.4"), std::string::npos) << newer.state;
}

TEST(CuptiFaults, AMigSliceIsRecorded) {
  const FaultRun run = RunWith("mig");
  EXPECT_EQ(run.state, "recording");
  EXPECT_EQ(Kernels(run), 50u);
}

TEST(CuptiFaults, UnknownErrorsNameTheCall) {
  EXPECT_NE(RunWith("subscribe_unknown_error").state.find("cuptiSubscribe gives"),
            std::string::npos);
  const std::string state = RunWith("enable_fails=10").state;
  EXPECT_NE(state.find("cuptiActivityEnable gives CUPTI_ERROR_NOT_SUPPORTED"), std::string::npos)
      << state;
}

TEST(CuptiFaults, MissingFunctionsHaveSubstitutes) {
  for (const char* function :
       {"cuptiSubscribe_v2", "cuptiActivityEnableRuntimeApi", "cuptiSetThreadIdType",
        "cuptiActivityRegisterTimestampCallback", "cuptiActivityEnableAllSyncRecords"}) {
    const FaultRun run = RunWith(std::string("missing_function=") + function);
    EXPECT_EQ(run.state, "recording") << function;
    EXPECT_EQ(Kernels(run), 50u) << function;
    EXPECT_EQ(run.rows.CountCalls("cudaLaunchKernel"), 50) << function;
  }
}

TEST(CuptiFaults, DroppedRecordsAreCounted) {
  const FaultRun run = RunWith("drop_records=20");
  EXPECT_EQ(run.rows.Fact("cupti.dropped"), "20");
  EXPECT_EQ(Kernels(run), 30u);
}

TEST(CuptiFaults, RecordsWithoutTimesAreCountedAndNoRows) {
  const FaultRun run = RunWith("zero_start_records=20");
  EXPECT_EQ(run.rows.Fact("cupti.untimed"), "20");
  EXPECT_EQ(Kernels(run), 30u);
}

TEST(CuptiFaults, OrderNamesAndRepeatsDoNotMatter) {
  EXPECT_EQ(Kernels(RunWith("out_of_order", {"kernels", "20000"}, "scale=0")), 20'000u);
  EXPECT_EQ(Kernels(RunWith("null_name")), 50u);
  EXPECT_EQ(Kernels(RunWith("withheld_until_exit")), 50u);
  const FaultRun huge = RunWith("huge_names");
  EXPECT_EQ(Kernels(huge), 50u);
  EXPECT_EQ(huge.rows.names[huge.rows.Of(DeviceRowType::kKernel)[0].name].size(), 4096u);
  const FaultRun twice = RunWith("callback_twice", {"stacks", "3"});
  std::set<std::pair<uint32_t, int>> calls;
  for (const RecordedStack& stack : twice.rows.stacks) {
    EXPECT_TRUE(calls.emplace(stack.correlation, static_cast<int>(stack.domain)).second);
  }
}

TEST(CuptiFaults, UnknownRecordsCostNoneOfTheOthers) {
  const FaultRun run = RunWith("garbage_kind", {"kernels", "1000"}, "scale=0");
  EXPECT_EQ(Kernels(run), 1000u);
  EXPECT_EQ(run.rows.Fact("cupti.unreadable_bytes"), std::to_string(10 * 64));
}

TEST(CuptiFaults, LaunchesWithoutKernelsStayVisible) {
  const FaultRun run = RunWith("zero_kernel_records");
  EXPECT_EQ(Kernels(run), 0u);
  EXPECT_EQ(run.rows.CountCalls("cudaLaunchKernel"), 50);
}

TEST(CuptiFaults, AHangingFlushIsLeftAfterFiveSeconds) {
  const auto begin = std::chrono::steady_clock::now();
  const FaultRun run = RunWith("flush_hangs");
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(run.state.rfind("cuptiActivityFlushAll exceeded 5 s; leaving it. Last event ", 0), 0u)
      << run.state;
  EXPECT_LT(took, std::chrono::seconds(12));
}

TEST(CuptiFaults, SlowSetupIsMeasured) {
  const FaultRun run = RunWith("slow_setup=300");
  EXPECT_GE(std::stol(run.rows.Fact("cupti.setup_us")), 300'000);
  const long asked = std::stol(run.rows.Fact("cupti.answer_us"));
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, std::stol(run.rows.Fact("cupti.setup_us"))) << "a part of it";
  EXPECT_EQ(Kernels(run), 50u);
}

TEST(CuptiFaults, WithoutADriverThereIsNothingToRecord) {
  CudaRun run;
  run.environment["VGPU_FAULTS"] = "no_device";
  EXPECT_NE(run.Run({"kernels", "1"}), 0);
  EXPECT_EQ(run.output().rfind("output\n", 0), 0u);
}

TEST(CuptiFaults, AbsentRecordsCostNoneOfTheOthers) {
  const FaultRun run = RunWith("no_sync_records", {"mixed", "20"});
  EXPECT_EQ(run.state, "recording");
  EXPECT_TRUE(run.rows.Of(DeviceRowType::kSync).empty());
  EXPECT_GT(run.rows.CountCalls("cudaDeviceSynchronize"), 0);
  EXPECT_EQ(Kernels(run), Kernels(RunWith("", {"mixed", "20"})));
  EXPECT_EQ(Kernels(RunWith("blank_incomplete")), 50u);
}

// The names that VGPU_FAULTS=help lists.
std::vector<std::string> AllFaults() {
  CudaRun run;
  run.environment["VGPU_FAULTS"] = "help";
  EXPECT_EQ(run.Run({"kernels", "1"}), 0);
  std::vector<std::string> names;
  std::istringstream lines(run.output());
  for (std::string line; std::getline(lines, line);) {
    if (line.find("  ") == std::string::npos) continue;  // the program's own
    names.push_back(line.substr(0, line.find_first_of("= ")));
  }
  return names;
}

struct Ended {
  int status = 0;
  std::string output;

  bool operator==(const Ended&) const = default;
};

Ended RunMixed(const std::string& fault, bool recorded) {
  CudaRun run;
  run.environment["VGPU_FAULTS"] = fault == "flush_hangs" ? fault + "=1" : fault;
  run.environment["ASAN_OPTIONS"] = "detect_leaks=0";
  if (!recorded) {
    run.environment["CUDA_INJECTION64_PATH"] = "";
    run.environment["NVTX_INJECTION64_PATH"] = "";
  }
  const int status = run.Run({"mixed", "20"});
  return {status, run.output()};
}

TEST(CuptiFaults, EachOfThemLeavesTheProgramAsItIs) {
  const std::vector<std::string> faults = AllFaults();
  EXPECT_GE(faults.size(), 28u);
  for (const std::string& fault : faults) {
    EXPECT_EQ(RunMixed(fault, true), RunMixed(fault, false)) << fault;
  }
}

TEST(CuptiFaults, NoLibraryIsToldWithWhereToGetIt) {
  CudaRun run;
  run.environment["TRAINPROF_CUPTI"] = "/nowhere/libcupti.so.13";
  EXPECT_EQ(run.Run({"kernels", "5"}), 0);
  EXPECT_EQ(run.Rows().Fact("cupti.state"),
            "TRAINPROF_CUPTI=/nowhere/libcupti.so.13 does not load");
}

}  // namespace
}  // namespace trainprof::testing
