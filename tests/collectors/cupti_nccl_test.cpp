// Ranges as NCCL makes them keep their structured payloads: message size, communicator.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/collectors/cuda_run.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof::testing {
namespace {

TEST(NcclPayloads, SchemaAndBytesAreRecordedBeforeTheirRange) {
  CudaRun run;
  ASSERT_EQ(run.Run({"payload", "100"}), 0) << run.output();
  const RecordedRows rows = run.Rows();
  ASSERT_EQ(rows.schemas.size(), 1u);
  const auto& [number, fields] = *rows.schemas.begin();
  ASSERT_EQ(fields.size(), 3u);
  EXPECT_EQ(fields[1].name, "Message size [bytes]");
  EXPECT_EQ(fields[1].offset, 8u);
  ASSERT_EQ(rows.payloads.size(), 100u);
  for (size_t i = 0; i < rows.payloads.size(); ++i) {
    const RecordedPayload& payload = rows.payloads[i];
    EXPECT_EQ(payload.schema, number);
    ASSERT_EQ(payload.bytes.size(), 24u);
    uint64_t bytes = 0;
    std::memcpy(&bytes, payload.bytes.data() + fields[1].offset, sizeof bytes);
    EXPECT_EQ(bytes, 1000 + i);
    EXPECT_EQ(payload.event, recording::RecordType::kPush);
  }
  const Trace trace = run.ReadOne();
  EXPECT_EQ(CountRanges(trace, "ncclAllReduce"), 100);
  EXPECT_EQ(trace.quality.CountOf("unknown_record"), 0);
}

// What the range of the first call says of itself.
void ExpectArgs(const Trace& trace) {
  ASSERT_GT(trace.ranges.size(), 0u);
  const ArgsId args = trace.ranges.args[0];
  const auto value = [&](std::string_view key) {
    return trace.args.Find(args, trace.strings.Find(key)).value_or(ArgValue{});
  };
  EXPECT_EQ(value("NCCL communicator ID").integer, 0xABCDEF);
  EXPECT_EQ(value("Message size [bytes]").integer, 1000);
  EXPECT_EQ(trace.Text(value("Reduction operation").text), "Max");
}

TEST(NcclPayloads, RangesSayThemAndAnExportKeepsThem) {
  CudaRun run;
  ASSERT_EQ(run.Run({"payload", "1"}), 0) << run.output();
  const Trace trace = run.ReadOne();
  ExpectArgs(trace);
  const std::string path = run.Scratch("trace.json");
  ASSERT_TRUE(ExportTrace(trace, path).ok());
  const auto again = ImportTrace(path);
  ASSERT_TRUE(again.ok()) << again.error();
  ExpectArgs(again.value());
}

}  // namespace
}  // namespace trainprof::testing
