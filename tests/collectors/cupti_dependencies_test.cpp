// What waits for what, as the dependency graph of an analysis needs it: streams and how they stand to the
// null stream, which event a wait is for and on which device, which call asked for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/collectors/cuda_run.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof::testing {
namespace {

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
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

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
