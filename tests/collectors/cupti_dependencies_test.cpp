// What waits for what, as the dependency graph of an analysis needs it: streams and how they stand to the
// null stream, which event a wait is for and on which device, which call asked for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "tests/collectors/cuda_run.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof::testing {
namespace {

using recording::DeviceRow;

std::string VersionName(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::string NameOfTrack(const Trace& t, TrackId id) {
  if (id == kNoTrack) return "none";
  const Track& track = t.tracks[Index(id)];
  return std::to_string(t.devices[Index(track.device)].id) + " " + std::string(Name(track.order)) +
         (track.priority == 0 ? "" : " " + std::to_string(track.priority));
}

std::string NameOfCall(const Trace& t, Row call) {
  return call == kNoRow ? "none" : std::string(t.Text(t.api.name[Index(call)]));
}

// A line a row of syncs, by time.
std::vector<std::string> Waits(const Trace& t) {
  std::vector<std::pair<TraceTime, std::string>> rows;
  for (uint32_t row = 0; row < t.syncs.size(); ++row) {
    if (t.syncs.kind[row] == SyncKind::kEventRecord) continue;
    const Row call = t.syncs.call[row];
    rows.emplace_back(call == kNoRow ? TraceTime{} : t.api.begin[Index(call)],
                      NameOfCall(t, call) + " on " + NameOfTrack(t, t.syncs.track[row]) + ": " +
                          std::string(Name(t.syncs.kind[row])) + " of " +
                          NameOfTrack(t, t.syncs.awaited[row]) + " by " +
                          NameOfCall(t, t.syncs.record[row]));
  }
  std::sort(rows.begin(), rows.end());
  std::vector<std::string> lines;
  for (auto& [time, line] : rows) lines.push_back(line);
  return lines;
}

const std::vector<std::string> kWaits = {
    "cudaStreamWaitEvent on 1 blocking: Stream Wait Event of 0 non-blocking -1 by cudaEventRecord",
    "cudaStreamSynchronize on 1 blocking: Stream Sync of 1 blocking by none",
    "cudaEventSynchronize on 0 unknown: Event Sync of 0 non-blocking -1 by cudaEventRecord",
    "cudaDeviceSynchronize on 0 unknown: Context Sync of none by none",
};

class CuptiDependencies : public ::testing::TestWithParam<const char*> {};

TEST_P(CuptiDependencies, AreKnownByStreamDeviceAndCall) {
  CudaRun run;
  run.environment["VGPU_CUPTI_VERSION"] = GetParam();
  run.environment["VGPU_SETTINGS"] = "devices=2";
  ASSERT_EQ(run.Run({"dependencies"}), 0) << run.output();
  const Trace recorded = run.ReadOne();
  EXPECT_EQ(Waits(recorded), kWaits);
  const bool has_null = std::any_of(recorded.tracks.begin(), recorded.tracks.end(),
                                    [](const Track& t) { return t.order == StreamOrder::kNull; });
  EXPECT_TRUE(has_null);

  const std::filesystem::path file = run.Scratch("trace.json");
  ASSERT_TRUE(ExportTrace(recorded, file).ok());
  const Result<Trace> back = ImportTrace(file);
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(Waits(back.value()), kWaits);
}

INSTANTIATE_TEST_SUITE_P(Versions, CuptiDependencies, ::testing::Values("12.4", "13.0", "13.1"),
                         VersionName);

// A function of the host that a stream waits for: as its program saw it, as a row, and in a trace.
struct HostCall {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t thread = 0;
};

// And when all had ended.
std::vector<HostCall> CallsIn(const std::string& output, size_t count, int64_t* ended_ns) {
  std::istringstream words(output);
  std::string first;
  words >> first;
  std::vector<HostCall> calls(count);
  for (HostCall& call : calls) words >> call.begin_ns >> call.end_ns >> call.thread;
  words >> *ended_ns;
  EXPECT_TRUE(words) << output;
  return calls;
}

std::vector<DeviceRow> HostFunctionRows(const RecordedRows& rows) {
  std::vector<DeviceRow> found = rows.Of(recording::DeviceRowType::kSync);
  std::erase_if(found,
                [](const DeviceRow& row) { return row.detail != recording::kHostFunctionSync; });
  std::sort(found.begin(), found.end(),
            [](const DeviceRow& a, const DeviceRow& b) { return a.begin_ns < b.begin_ns; });
  return found;
}

// A line each: the call that asked for it, its stream, its thread, its length.
std::vector<std::string> HostFunctionsOf(const Trace& t) {
  std::vector<std::string> lines;
  for (uint32_t row = 0; row < t.syncs.size(); ++row) {
    if (t.syncs.kind[row] != SyncKind::kHostFunction) continue;
    EXPECT_EQ(t.Text(t.syncs.name[row]), "Host Function");
    EXPECT_EQ(t.syncs.awaited[row], kNoTrack);
    const TrackId stream = t.syncs.track[row];
    EXPECT_EQ(stream, t.device_ops.track[0]);
    lines.push_back(NameOfCall(t, t.syncs.call[row]) + " on " + NameOfTrack(t, stream) + " by " +
                    std::to_string(t.syncs.waited_thread[row]) + " for " +
                    std::to_string(t.syncs.interval(Row{row}).Length().ns));
  }
  return lines;
}

std::vector<std::string> ExpectedOf(const std::vector<DeviceRow>& rows,
                                    const std::vector<std::string>& callers) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < rows.size(); ++i) {
    lines.push_back(callers[i] + " on 0 non-blocking by " + std::to_string(rows[i].sync.thread) +
                    " for " + std::to_string(rows[i].end_ns - rows[i].begin_ns));
  }
  return lines;
}

// Of the same stream and device as the kernels, each in the call that asked for it.
void ExpectToMatch(const RecordedRows& rows, const std::vector<DeviceRow>& functions,
                   const std::vector<HostCall>& calls, int64_t ended_ns) {
  ASSERT_EQ(functions.size(), calls.size());
  const DeviceRow kernel = rows.Of(recording::DeviceRowType::kKernel).at(0);
  int64_t before_ns = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const DeviceRow& row = functions[i];
    EXPECT_LE(before_ns, row.begin_ns);
    EXPECT_LE(row.begin_ns, calls[i].begin_ns);
    EXPECT_LE(calls[i].end_ns, row.end_ns);
    EXPECT_EQ(row.sync.thread, calls[i].thread);
    EXPECT_EQ(row.stream, kernel.stream);
    EXPECT_EQ(row.context, kernel.context);
    EXPECT_EQ(row.device, kernel.device);
    const auto call = std::find_if(rows.calls.begin(), rows.calls.end(), [&](const auto& each) {
      return each.correlation == row.correlation;
    });
    ASSERT_NE(call, rows.calls.end());
    EXPECT_LE(call->begin_ns, row.begin_ns);
    before_ns = row.end_ns;
  }
  EXPECT_LE(before_ns, ended_ns);
}

class CuptiHostFunctions : public ::testing::TestWithParam<const char*> {
 protected:
  CuptiHostFunctions() { run_.environment["VGPU_CUPTI_VERSION"] = GetParam(); }
  static bool Tells() { return std::string_view(GetParam()) >= "13.1"; }

  // That mode of the program, whose functions these calls asked for, in their order.
  void Expect(const char* mode, const std::vector<std::string>& callers, bool tells) {
    const size_t count = callers.size();
    ASSERT_EQ(run_.Run({mode, std::to_string(count)}), 0) << run_.output();
    const RecordedRows rows = run_.Rows();
    EXPECT_EQ(rows.Fact("cupti.refused").find("HOST_"), std::string::npos);
    const std::vector<DeviceRow> functions = HostFunctionRows(rows);
    ASSERT_EQ(functions.size(), tells ? count : 0);
    int64_t ended_ns = 0;
    const std::vector<HostCall> calls = CallsIn(run_.output(), count, &ended_ns);
    if (tells) ExpectToMatch(rows, functions, calls, ended_ns);

    const Trace recorded = run_.ReadOne();
    EXPECT_EQ(HostFunctionsOf(recorded), ExpectedOf(functions, callers));
    for (const QualityItem& item : recorded.quality.items()) {
      EXPECT_NE(item.severity, QualitySeverity::kDataLoss) << item.kind;
    }
    const std::filesystem::path file = run_.Scratch("trace.json");
    ASSERT_TRUE(ExportTrace(recorded, file).ok());
    const Result<Trace> back = ImportTrace(file);
    ASSERT_TRUE(back.ok()) << back.error();
    EXPECT_EQ(HostFunctionsOf(back.value()), ExpectedOf(functions, callers));
  }

  CudaRun run_;
};

TEST_P(CuptiHostFunctions, HaveTheirTimeFromTheVersionOnThatTellsIt) {
  Expect("host_functions",
         {"cudaLaunchHostFunc", "cudaLaunchHostFunc", "cudaLaunchHostFunc", "cuLaunchHostFunc"},
         Tells());
  EXPECT_EQ(run_.Rows().Of(recording::DeviceRowType::kKernel).size(), 5u);
}

TEST_P(CuptiHostFunctions, OfAGraphHaveTheirs) {
  Expect("graph_host_functions", std::vector<std::string>(3, "cudaGraphLaunch"), Tells());
  EXPECT_EQ(run_.Rows().Of(recording::DeviceRowType::kKernel).size(), 6u);
}

TEST_P(CuptiHostFunctions, OfAWholeGraphAreItsOwn) {
  run_.environment[recording::kEnvOptions] = "graphs=graph";
  Expect("graph_host_functions", std::vector<std::string>(3, "cudaGraphLaunch"), false);
  EXPECT_EQ(run_.Rows().Of(recording::DeviceRowType::kGraph).size(), 3u);
}

// Graphs that have nothing a device does.
TEST_P(CuptiHostFunctions, AreAllThatAGraphHas) {
  ASSERT_EQ(run_.Run({"graph_of_host_functions", "3"}), 0) << run_.output();
  EXPECT_EQ(HostFunctionRows(run_.Rows()).size(), Tells() ? 3u : 0u);
  const Trace recorded = run_.ReadOne();
  EXPECT_EQ(recorded.quality.CountOf("graph_launches_without_nodes"), Tells() ? 0 : 3);
  EXPECT_EQ(recorded.quality.CountOf("launches_without_kernel"), 0);
  const std::filesystem::path file = run_.Scratch("trace.json");
  ASSERT_TRUE(ExportTrace(recorded, file).ok());
  const Result<Trace> back = ImportTrace(file);
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(back.value().quality.CountOf("launches_without_kernel"), Tells() ? 0 : 3);
}

INSTANTIATE_TEST_SUITE_P(Versions, CuptiHostFunctions,
                         ::testing::Values("12.4", "13.0", "13.1", "13.5"), VersionName);

// A program of host functions of so many ms each, in one stream, most of which have not run when its
// window ends.
class CuptiHostFunctionsUnderWay : public ::testing::Test {
 protected:
  void Run(const char* functions, const char* ms) {
    run_.environment["VGPU_CUPTI_VERSION"] = "13.1";
    run_.environment[recording::kEnvOptions] = "duration_ms=600";
    ASSERT_EQ(run_.Run({"host_functions", functions, ms}), 0) << run_.output();
    const RecordedRows rows = run_.Rows();
    EXPECT_EQ(rows.gaps_begun, 1);
    EXPECT_EQ(rows.Fact("cupti.untimed"), "");
    launched_ = rows.CountCalls("cudaLaunchHostFunc") + rows.CountCalls("cuLaunchHostFunc");
    timed_ = static_cast<int64_t>(HostFunctionRows(rows).size());
    const Trace trace = run_.ReadOne();
    for (const QualityItem& item : trace.quality.items()) {
      EXPECT_NE(item.severity, QualitySeverity::kDataLoss) << item.kind;
    }
    EXPECT_EQ(trace.quality.CountOf("host_functions_without_time"), launched_ - timed_);
  }

  CudaRun run_;
  int64_t launched_ = 0;
  int64_t timed_ = 0;
};

TEST_F(CuptiHostFunctionsUnderWay, AreWaitedForAtAWindowsEnd) {
  Run("2000", "2");
  EXPECT_GT(timed_, 20);
  EXPECT_EQ(timed_, launched_);
}

TEST_F(CuptiHostFunctionsUnderWay, AreCountedWhereTheyLastTooLong) {
  Run("1", "3500");
  EXPECT_EQ(launched_, 1);
  EXPECT_EQ(timed_, 0);
}

// A launch that finds the queue full waits in its call.
TEST(CuptiQueueFull, IsPartOfItsLaunch) {
  CudaRun run;
  run.environment["VGPU_SETTINGS"] = "queue_depth=4";
  ASSERT_EQ(run.Run({"unfinished", "12"}), 0) << run.output();
  const Trace t = run.ReadOne();
  int64_t waited = 0;
  for (uint32_t row = 0; row < t.api.size(); ++row) {
    const int64_t ns = t.api.queue_full_ns[row];
    waited += ns > 0 ? 1 : 0;
    EXPECT_LE(ns, t.api.interval(Row{row}).Length().ns + 2000);
    EXPECT_TRUE(ns == 0 || t.api.kind[row] == ApiKind::kLaunch);
  }
  EXPECT_GE(waited, 4);
  EXPECT_EQ(t.quality.CountOf("queue_full_without_call"), 0);
}

}  // namespace
}  // namespace trainprof::testing
