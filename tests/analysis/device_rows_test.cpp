#include "analysis/steps/device_rows.h"

#include <gtest/gtest.h>

#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

TEST(DeviceRows, StreamsOfADeviceAreMergedByBegin) {
  const Trace trace = TraceFromScript(R"(
    stream 0 7
    kernel 0 10 a
    kernel 20 30 b
    stream 0 8
    kernel 5 9 c
    kernel 20 21 d
    kernel 40 41 e
    stream 1 7
    kernel 1 2 f)");
  std::vector<std::string> names;
  for (const std::vector<uint32_t>& rows : OpsByBegin(trace)) {
    std::string text;
    for (const uint32_t row : rows) text += trace.Text(trace.device_ops.name[row]);
    names.push_back(text);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"acdbe", "f", ""}));
}

}  // namespace
}  // namespace trainprof
