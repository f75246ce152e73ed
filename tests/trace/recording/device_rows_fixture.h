// A recording of one process, written row by row.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "trace/recording/read/reader.h"

namespace trainprof::testing {

class DeviceRows : public ::testing::Test {
 protected:
  DeviceRows() : writer_(scratch_ / "pid-1") { writer_.BeginWriter(0, 100, "main"); }

  Trace Read() {
    writer_.Finish();
    auto ranks = recording::ReadRecording(scratch_.path());
    EXPECT_TRUE(ranks.ok()) << (ranks.ok() ? "" : ranks.error());
    return ranks.ok() ? std::move(ranks.value().at(0).trace) : Trace{};
  }

  ScratchFolder scratch_;
  SegmentWriter writer_;
};

}  // namespace trainprof::testing
