// Rows of devices that nobody here knows: found by whatever names a device, counted, never a
// thread's.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/trace_text.h"
#include "trace/build/missing_rows.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

Trace ImportedEvents(const std::string& events) {
  return Imported("{\"traceEvents\": [" + events + "]}");
}

// Each way in which a file may say that a row stands on a device.
const std::vector<std::string>& DeviceRows() {
  static const std::vector<std::string> rows = {
      R"({"ph":"X","cat":"mtia_ccp_events","name":"x","pid":0,"tid":7,"ts":5,"dur":2,"args":{"device":0,"stream":7}})",
      R"({"ph":"X","cat":"hpu_op","name":"x","pid":0,"tid":7,"ts":5,"dur":2,"args":{"device":0,"correlation":3}})",
      R"({"ph":"X","cat":"new","name":"x","pid":0,"tid":"stream 7","ts":5,"dur":2})",
      R"({"ph":"X","cat":"new","name":"x","pid":0,"tid":7,"ts":5,"dur":2},
         {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7 "}})",
      R"({"ph":"X","name":"MatMul","pid":1000,"tid":7,"ts":5,"dur":2},
         {"ph":"M","name":"process_name","pid":1000,"tid":0,"args":{"name":"Ascend Hardware"}})",
      R"({"ph":"X","name":"x","pid":1000,"tid":7,"ts":5,"dur":2},
         {"ph":"M","name":"process_labels","pid":1000,"tid":0,"args":{"labels":"NPU"}})",
      R"({"ph":"X","cat":"new","name":"x","pid":3,"tid":7,"ts":5,"dur":2},
         {"ph":"M","name":"process_labels","pid":3,"tid":0,"args":{"labels":"GPU 3"}})",
      R"({"ph":"X","cat":"new","name":"x","pid":3,"tid":7,"ts":5,"dur":2},
         {"ph":"M","name":"process_labels","pid":3,"tid":0,"args":{"labels":"rank 1, MTIA 3"}})",
      R"({"ph":"X","name":"fusion","pid":3,"tid":7,"ts":5,"dur":2},
         {"ph":"M","name":"process_name","pid":3,"tid":0,"args":{"name":"/device:TPU:0"}})",
      R"({"ph":"X","cat":"new","name":"x","pid":3,"tid":7,"ts":5,"dur":2,"args":{"correlation":9}},
         {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":100,"ts":1,"dur":2,"args":{"correlation":9}})"};
  return rows;
}

TEST(DeviceRows, OfAnyKindAreFoundAndCounted) {
  for (const std::string& events : DeviceRows()) {
    SCOPED_TRACE(events);
    const Trace trace = ImportedEvents(events);
    const std::vector<Row> rows = UnknownDeviceRows(trace);
    ASSERT_EQ(rows.size(), 1u);
    const Track& track = trace.tracks[Index(trace.ranges.track[Index(rows[0])])];
    EXPECT_EQ(track.kind, TrackKind::kStream);
    EXPECT_EQ(track.tid, 7);
    EXPECT_NE(track.device, kNoDevice);
    EXPECT_EQ(trace.quality.CountOf("unknown_device_rows"), 1);
  }
}

TEST(DeviceRows, ComeBackEqual) {
  for (const std::string& events : DeviceRows()) {
    const Trace trace = ImportedEvents(events);
    const TemporaryFile out("out.json");
    ASSERT_TRUE(ExportTrace(trace, out.path()).ok());
    const Result<Trace> again = ImportTrace(out.path());
    ASSERT_TRUE(again.ok()) << again.error();
    EXPECT_EQ(TraceText(trace), TraceText(again.value()));
  }
}

TEST(DeviceRows, AreNamedByCategory) {
  const Trace trace =
      ImportedEvents(DeviceRows()[0] + "," + DeviceRows()[0] + "," + DeviceRows()[4]);
  EXPECT_EQ(NamesOfUnknownDeviceRows(trace), "2 x mtia_ccp_events, 1 without a category");
}

// Chrome's own "GPU Process" is a process of the host; so is what calls itself CPU.
TEST(DeviceRows, OfTheHostAreNone) {
  for (
      const std::string events :
      {R"({"ph":"X","cat":"gpu","name":"x","pid":3,"tid":7,"ts":5,"dur":2},
           {"ph":"M","name":"process_name","pid":3,"tid":0,"args":{"name":"GPU Process"}})",
       R"({"ph":"X","cat":"new","name":"x","pid":3,"tid":7,"ts":5,"dur":2},
           {"ph":"M","name":"process_labels","pid":3,"tid":0,"args":{"labels":"CPU"}},
           {"ph":"M","name":"process_name","pid":3,"tid":0,"args":{"name":"GPU 0"}})",
       R"({"ph":"X","cat":"new","name":"x","pid":3,"tid":7,"ts":5,"dur":2},
           {"ph":"M","name":"thread_name","pid":3,"tid":7,"args":{"name":"stream reader"}})",
       R"({"ph":"X","cat":"new","name":"x","pid":3,"tid":7,"ts":5,"dur":2,"args":{"correlation":9}},
           {"ph":"X","cat":"cpu_op","name":"op","pid":3,"tid":7,"ts":5,"dur":1},
           {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":100,"ts":1,"dur":2,"args":{"correlation":9}})"}) {
    SCOPED_TRACE(events);
    const Trace trace = ImportedEvents(events);
    EXPECT_EQ(trace.quality.CountOf("unknown_device_rows"), 0);
    EXPECT_TRUE(UnknownDeviceRows(trace).empty());
  }
}

}  // namespace
}  // namespace trainprof
