// Ranges as NCCL makes them keep their structured payloads: message size, communicator.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/collectors/cuda_run.h"

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

}  // namespace
}  // namespace trainprof::testing
