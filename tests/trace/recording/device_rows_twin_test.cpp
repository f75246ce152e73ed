// Random rows of devices and calls, against a slow twin, raw and sealed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/sanitized.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/trace_text.h"
#include "tests/trace/recording/rows_of.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/seal/sealer.h"
#include "trace/symbols/demangle.h"

namespace trainprof::testing {
namespace {

using namespace recording;

// Random rows, decoded by the letter of rows.h into lines of text.
class Twin {
 public:
  Twin(SegmentWriter& writer, uint64_t seed) : writer_(writer), random_(seed) {}

  void Write(int writers, int rows) {
    for (int w = 0; w < writers; ++w) {
      writer_.BeginWriter(static_cast<uint32_t>(w), 100 + w, "worker");
      for (int i = 0; i < rows; ++i) {
        if (Below(40) == 0) writer_.NewChunk();
        Below(3) == 0 ? Call() : Device();
      }
    }
    std::sort(lines_.begin(), lines_.end());
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }

  std::string Name() {
    constexpr const char* kNames[] = {"_Z4gemmIfEvPT_", "_Z3addPfS_i", "plain", "_Zbroken",
                                      "ncclDevKernel_AllReduce"};
    return kNames[Below(std::size(kNames))];
  }

  void Call() {
    constexpr const char* kCalls[] = {"cudaLaunchKernel", "cudaMemcpyAsync",
                                      "cudaStreamSynchronize", "cuLaunchKernel"};
    const std::string name = kCalls[Below(4)];
    const auto begin = static_cast<int64_t>(Below(1'000'000));
    const auto end = begin + static_cast<int64_t>(Below(1000));
    const auto tid = static_cast<uint32_t>(100 + Below(3));
    const uint32_t correlation = ++correlation_;
    writer_.Row(CallOf(begin, end, correlation, writer_.String(name), tid));
    lines_.push_back(fmt::format("call {} {} {}-{} {}", tid, name, begin, end, correlation));
  }

  void Device() {
    const auto begin = static_cast<int64_t>(Below(1'000'000));
    const auto end = begin + static_cast<int64_t>(Below(5000));
    DeviceRow row = RowOf(DeviceRowType::kKernel, begin, end, Below(5) == 0 ? 0 : ++correlation_);
    row.stream = static_cast<uint32_t>(7 + Below(3));
    std::string name;
    int64_t bytes = 0;
    switch (Below(3)) {
      case 0:
        name = Name();
        row.name = writer_.String(name);
        name = Demangled(name);
        row.kernel.grid[0] = static_cast<uint32_t>(Below(4));
        break;
      case 1:
        row.type = DeviceRowType::kCopy;
        row.detail = 2;
        row.source_kind = 3;
        row.target_kind = static_cast<uint8_t>(1 + Below(2));
        row.copy.bytes = Below(100'000);
        bytes = static_cast<int64_t>(row.copy.bytes);
        name = row.target_kind == 1 ? "Memcpy DtoH (Device -> Pageable)"
                                    : "Memcpy DtoH (Device -> Pinned)";
        break;
      default:
        row.type = DeviceRowType::kMemset;
        row.source_kind = 3;
        row.memset.bytes = 8;
        bytes = 8;
        name = "Memset (Device)";
    }
    writer_.Row(row);
    lines_.push_back(fmt::format("op {} {} {}-{} {} {}", row.stream, name, begin, end,
                                 row.correlation == 0 ? kNoCorrelation : int64_t{row.correlation},
                                 bytes));
  }

  SegmentWriter& writer_;
  std::mt19937_64 random_;
  uint32_t correlation_ = 0;
  std::vector<std::string> lines_;
};

std::vector<std::string> LinesOf(const Trace& t) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < t.api.size(); ++i) {
    lines.push_back(fmt::format("call {} {} {}-{} {}", t.tracks[Index(t.api.track[i])].tid,
                                t.Text(t.api.name[i]), t.api.begin[i].ns, t.api.end(i).ns,
                                t.api.correlation[i]));
  }
  for (size_t i = 0; i < t.device_ops.size(); ++i) {
    lines.push_back(fmt::format("op {} {} {}-{} {} {}", t.tracks[Index(t.device_ops.track[i])].tid,
                                t.Text(t.device_ops.name[i]), t.device_ops.begin[i].ns,
                                t.device_ops.end(i).ns, t.device_ops.correlation[i],
                                t.device_ops.bytes[i]));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

void ExpectTwinAgrees(uint64_t seed, int writers, int rows) {
  const ScratchFolder scratch;
  SegmentWriter writer(scratch / "pid-1");
  Twin twin(writer, seed);
  twin.Write(writers, rows);
  writer.Finish();
  auto raw = ReadRecording(scratch.path());
  ASSERT_TRUE(raw.ok());
  EXPECT_EQ(LinesOf(raw.value()[0].trace), twin.lines()) << "seed " << seed;
  const auto limit = testing::InAnHour();
  ASSERT_TRUE(SealRecording(scratch.path(), {}, limit).ok());
  ASSERT_FALSE(std::filesystem::exists(writer.path()));
  auto sealed = ReadRecording(scratch.path());
  ASSERT_TRUE(sealed.ok());
  EXPECT_EQ(TraceText(sealed.value()[0].trace), TraceText(raw.value()[0].trace));
}

TEST(DeviceRowsTwin, RandomRowsReadAsTheyWereWrittenRawAndSealed) {
  for (uint64_t seed = 1; seed <= Rounds(30u); ++seed) {
    ASSERT_NO_FATAL_FAILURE(ExpectTwinAgrees(seed, 1 + static_cast<int>(seed % 3), 400));
  }
}

// So many that their chunks are loaded, and their tables sorted, on several threads.
TEST(DeviceRowsTwin, SoDoManyRows) { ExpectTwinAgrees(31, 3, Rounds(30'000)); }

}  // namespace
}  // namespace trainprof::testing
