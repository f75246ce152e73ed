// Files that hold several host processes with the same correlation ids: each operation joins the
// call of its own process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/trace_text.h"
#include "trace/formats/importer.h"
#include "trace/formats/io/byte_source.h"

namespace trainprof {
namespace {

using Json = nlohmann::json;

Json CorpusTrace(const std::string& name) {
  Result<std::unique_ptr<ByteSource>> source =
      OpenByteSource(fmt::format("{}/{}", TRAINPROF_CORPUS, name));
  if (!source.ok()) return {};
  std::string text;
  std::string block(1 << 20, '\0');
  while (const size_t got = source.value()->Read(block.data(), block.size())) {
    text.append(block, 0, got);
  }
  return Json::parse(text, nullptr, false);
}

// Appends a rank's events with its pids moved by `pid_shift`, its ids so that its first call has
// correlation 1 (as in files of fresh processes), and its flow ids moved by `flow_shift` more.
void AppendRank(Json& all, const Json& rank, int64_t pid_shift, int64_t flow_shift) {
  int64_t first = INT64_MAX;
  for (const Json& event : rank["traceEvents"]) {
    if (event.value("cat", "") == "cuda_runtime") {
      first = std::min(first, event["args"]["correlation"].get<int64_t>());
    }
  }
  for (Json event : rank["traceEvents"]) {
    if (event["pid"].is_number()) event["pid"] = event["pid"].get<int64_t>() + pid_shift;
    if (event.contains("args") && event["args"].contains("correlation")) {
      event["args"]["correlation"] = event["args"]["correlation"].get<int64_t>() - first + 1;
    }
    if (event.contains("id")) event["id"] = event["id"].get<int64_t>() - first + 1 + flow_shift;
    all.push_back(std::move(event));
  }
}

struct Joins {
  int64_t right = 0;
  int64_t wrong = 0;
  int64_t none = 0;
};

// A launch is right when host and device stem from the same rank, told by the shift of their pids.
Joins JoinsOf(const Trace& trace, int64_t pid_shift) {
  Joins joins;
  const auto rank_of = [&](TrackId track) {
    return trace.processes[Index(trace.tracks[Index(track)].process)].pid / pid_shift;
  };
  for (size_t op = 0; op < trace.device_ops.size(); ++op) {
    const Row launch = trace.device_ops.launch[op];
    if (launch == kNoRow) {
      ++joins.none;
    } else {
      const bool same =
          rank_of(trace.device_ops.track[op]) == rank_of(trace.api.track[Index(launch)]);
      ++(same ? joins.right : joins.wrong);
    }
  }
  return joins;
}

TEST(MergedRanks, EachOperationJoinsItsOwnProcess) {
  constexpr int64_t kPidShift = 10'000'000;
  if (!std::filesystem::is_directory(std::string(TRAINPROF_CORPUS) + "/dlrm_8ranks")) {
    GTEST_SKIP() << "no corpus: set TRAINPROF_CORPUS";
  }
  // With the arrows' ids repeated like the correlations, and with ids of each rank's own.
  for (int64_t flow_shift : {int64_t{0}, int64_t{1} << 40}) {
    SCOPED_TRACE(flow_shift);
    Json all = Json::array();
    int64_t alone = 0;
    for (int64_t rank : {0, 1}) {
      const std::string name = fmt::format("dlrm_8ranks/rank{}.pt.trace.json.gz", rank);
      const Result<Trace> own = ImportTrace(fmt::format("{}/{}", TRAINPROF_CORPUS, name));
      ASSERT_TRUE(own.ok()) << own.error();
      alone += JoinsOf(own.value(), kPidShift).none;
      AppendRank(all, CorpusTrace(name), kPidShift * rank, flow_shift * rank);
    }
    const Result<Trace> merged = ImportText(all.dump());
    ASSERT_TRUE(merged.ok()) << merged.error();
    const Joins joins = JoinsOf(merged.value(), kPidShift);
    EXPECT_EQ(joins.wrong, 0);
    EXPECT_EQ(joins.none, alone);
    EXPECT_GT(joins.right, 500);
    EXPECT_EQ(merged.value().quality.CountOf("ambiguous_correlation"), 0);
  }
}

// Two processes (pids 100 and 200) with a launch of the same id each, and one kernel.
std::string TwoLaunches(int64_t first_us, int64_t second_us, std::string_view more) {
  return fmt::format(
      R"([{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":1,"ts":{},"dur":2,"args":{{"correlation":7}}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":200,"tid":2,"ts":{},"dur":2,"args":{{"correlation":7}}}},
{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":50,"dur":10,"args":{{"correlation":7}}}}{}])",
      first_us, second_us, more);
}

// The pid of the process whose call launched the first operation; 0: none.
int64_t LauncherOf(const Result<Trace>& result) {
  const Trace& trace = result.value();
  const Row launch = trace.device_ops.launch[0];
  if (launch == kNoRow) return 0;
  return trace.processes[Index(trace.tracks[Index(trace.api.track[Index(launch)])].process)].pid;
}

TEST(MergedRanks, ALaunchThatCameTooLateIsNotTaken) {
  EXPECT_EQ(LauncherOf(ImportText(TwoLaunches(10, 80, ""))), 100);
  EXPECT_EQ(LauncherOf(ImportText(TwoLaunches(80, 10, ""))), 200);
}

TEST(MergedRanks, AnArrowNamesTheProcess) {
  const auto arrow = [](int64_t pid, int64_t tid) {
    return fmt::format(
        R"(,{{"ph":"s","cat":"ac2g","name":"ac2g","id":99,"pid":{},"tid":{},"ts":10}},
{{"ph":"f","cat":"ac2g","name":"ac2g","id":99,"pid":0,"tid":7,"ts":50,"bp":"e"}})",
        pid, tid);
  };
  EXPECT_EQ(LauncherOf(ImportText(TwoLaunches(10, 10, arrow(100, 1)))), 100);
  EXPECT_EQ(LauncherOf(ImportText(TwoLaunches(10, 10, arrow(200, 2)))), 200);
}

TEST(MergedRanks, WhatOneProcessCertainlyLaunchedSpeaksForItsDevice) {
  EXPECT_EQ(
      LauncherOf(ImportText(TwoLaunches(
          10, 10,
          R"(,{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":200,"tid":2,"ts":60,"dur":2,"args":{"correlation":8}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":70,"dur":10,"args":{"correlation":8}})"))),
      200);
}

TEST(MergedRanks, WhatCannotBeDecidedIsCountedAndNotGuessed) {
  const Result<Trace> trace = ImportText(TwoLaunches(10, 12, ""));
  EXPECT_EQ(LauncherOf(trace), 0);
  EXPECT_EQ(trace.value().quality.CountOf("ambiguous_correlation"), 1);
}

TEST(MergedRanks, ACopysSizeComesFromItsOwnProcess) {
  const Result<Trace> trace = ImportText(
      R"([{"ph":"X","cat":"hip_runtime","name":"hipMemcpyAsync","pid":100,"tid":1,"ts":10,"dur":2,"args":{"correlation":7,"size":"64"}},
{"ph":"X","cat":"hip_runtime","name":"hipMemcpyAsync","pid":200,"tid":2,"ts":80,"dur":2,"args":{"correlation":7,"size":"4096"}},
{"ph":"X","cat":"gpu_memcpy","name":"CopyHostToDevice","pid":0,"tid":7,"ts":50,"dur":10,"args":{"correlation":7}}])");
  ASSERT_TRUE(trace.ok()) << trace.error();
  EXPECT_EQ(trace.value().device_ops.bytes[0], 64);
}

}  // namespace
}  // namespace trainprof
