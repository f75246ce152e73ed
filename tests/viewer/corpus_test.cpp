// Real traces: each event has its place.
#include <gtest/gtest.h>

#include <filesystem>

#include "trace/formats/importer.h"
#include "viewer/timeline/lane_store.h"

namespace trainprof {
namespace {

// The rows of a table that stand where PlaceOf says.
size_t PlacedRows(LaneStore& store, const EventColumns& rows, Table table) {
  size_t placed = 0;
  for (uint32_t row = 0; row < rows.size(); ++row) {
    const EventRef event{0, table, Row{row}};
    const LaneStore::Place place = store.PlaceOf(event);
    placed += place.line != kNoLine && store.RefOf(place.line, place.lane, place.event) == event;
  }
  return placed;
}

class Corpus : public ::testing::TestWithParam<const char*> {};

TEST_P(Corpus, EachEventHasItsPlace) {
  const std::filesystem::path path = std::filesystem::path(TRAINPROF_CORPUS) / GetParam();
  if (std::string_view(TRAINPROF_CORPUS).empty() || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "no corpus folder: set TRAINPROF_CORPUS";
  }
  const Result<Trace> trace = ImportTrace(path.string());
  ASSERT_TRUE(trace.ok()) << trace.error();
  const Trace& t = trace.value();
  const RankAnalysis analysis = Analyze(t);
  const Lines lines({{&t, &analysis}});
  LaneStore store(lines);
  EXPECT_EQ(PlacedRows(store, t.ranges, Table::kRanges), t.ranges.size());
  EXPECT_EQ(PlacedRows(store, t.api, Table::kApi), t.api.size());
  EXPECT_EQ(PlacedRows(store, t.device_ops, Table::kDeviceOps), t.device_ops.size());
  EXPECT_EQ(PlacedRows(store, t.syncs, Table::kSyncs), t.syncs.size());
}

INSTANTIATE_TEST_SUITE_P(, Corpus,
                         ::testing::Values("tracelens/h100_qwen_chat.json.gz",
                                           "kineto_resnet50/workers4.pt.trace.json.gz",
                                           "hta/ddp_item_a100.json.gz", "hta/amd_mi250.json.gz",
                                           "hta/event_sync_multi_stream.json.gz"));

}  // namespace
}  // namespace trainprof
