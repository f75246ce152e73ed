// Thousands of damaged variants of real segments: never a crash, a hang or memory without bound;
// what is left is read, or the message says why nothing is.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/sanitized.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/seal/sealer.h"
#include "trace/recording/wire/format.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;

// Devices, rows, stacks and modules, one of each kind and a few kernels.
void WriteDevice(SegmentWriter& writer, uint32_t w) {
  writer.Fact("cupti.state", "recording");
  recording::DeviceFacts device{};
  device.ordinal = w;
  writer.Device(device, "GPU");
  writer.Stream(1, 7, -2);
  writer.Module({0x1000, 0x9000, 0, 0x1000, 4, {1, 2, 3, 4}}, "/nowhere/train");
  writer.Stack(1, {0x1010, 0x2020, 0x99});
  for (uint32_t i = 1; i <= 30; ++i) {
    recording::DeviceRow row{};
    row.begin_ns = SegmentWriter::kOriginNs + 100 * i;
    row.end_ns = row.begin_ns + 50;
    row.correlation = 100 * w + i;
    row.name = writer.String("_Z4gemmIfEvPT_");
    row.type = static_cast<recording::DeviceRowType>(1 + i % 9);
    writer.Row(row);
    recording::CallRow call{};
    call.begin_ns = row.begin_ns - 50;
    call.end_ns = row.begin_ns;
    call.correlation = row.correlation;
    call.tid = 100 + w;
    call.name = writer.String("cudaLaunchKernel");
    writer.Row(call);
    if (i % 7 == 0) writer.CallStack(1, row.correlation, recording::CallDomain::kRuntime);
  }
}

// Something of everything, in several chunks and writers.
void WriteRich(SegmentWriter& writer) {
  for (uint32_t w = 0; w < 3; ++w) {
    writer.BeginWriter(w, 100 + w, "thread");
    writer.Domain(2, "library");
    writer.Category(2, 4, "kind");
    writer.Enum(2 << 24, {4, {{1, false, "Sum"}}}, 2);
    writer.Schema(1 << 24,
                  {1, 24, 0, {{18, 0, 0, 0, "ID"}, {2 << 24, 0, 8, 0, "op"}, {75, 0, 12, 9, "s"}}},
                  2);
    for (uint64_t i = 0; i < 40; ++i) {
      const uint64_t t = 1000 * (i + 1);
      writer.Push("step " + std::to_string(i), t);
      writer.ShortPush("data", t + 10);
      writer.ShortPop(t + 20);
      writer.Payload(1 << 24, std::string(24, static_cast<char>(i)));
      writer.Push("reduce", t + 30, 2, {recording::PackAttributes(1, 1, 4), 0xFF00FF00, i});
      writer.Pop(t + 40, 2);
      writer.Start("async", t + 50, w << 20 | i);
      writer.End(t + 60, w << 20 | i);
      writer.Mark("mark", t + 70);
      writer.Pop(t + 80);
      if (i % 15 == 14) writer.NewChunk();
    }
    writer.ThreadName(100 + w, "named");
    WriteDevice(writer, w);
    writer.Gap(60'000, 70'000);
  }
  writer.Finish();
}

// Of host threads, and CUPTI's overhead of every ninth row.
constexpr int64_t kRanges = 3 * (40 * 4 + 3);

struct Damage {
  const char* what;
  bool sealed;
};

class Damaged : public ::testing::TestWithParam<Damage> {
 protected:
  void SetUp() override {
    folder_ = scratch_ / "pid-1";
    SegmentWriter writer(folder_);
    WriteRich(writer);
    if (GetParam().sealed) {
      ASSERT_TRUE(recording::SealRecording(scratch_.path(), {}, testing::InAnHour()).ok());
    }
    file_ = fs::directory_iterator(folder_)->path();
    ASSERT_EQ(file_.extension() == recording::kSealedSuffix, GetParam().sealed);
    bytes_ = ReadBytes(file_);
  }

  // Reads whatever it is; the number of ranges, or -1 with a message.
  int64_t Read(const std::vector<char>& bytes) {
    WriteBytes(file_, bytes);
    auto ranks = recording::ReadRecording(scratch_.path());
    (void)recording::SummarizeRecording(scratch_.path()).ok();
    if (!ranks.ok()) {
      EXPECT_FALSE(ranks.error().empty());
      return -1;
    }
    return static_cast<int64_t>(ranks.value().at(0).trace.ranges.size());
  }

  // Where damage hits something: the headers, and each chunk's header and records.
  size_t InterestingByte(std::mt19937_64& random) const {
    if (GetParam().sealed) return random() % bytes_.size();
    const size_t chunks = bytes_.size() / recording::kChunkAlignment;
    return random() % chunks * recording::kChunkAlignment + random() % 2200;
  }

  ScratchFolder scratch_;
  fs::path folder_;
  fs::path file_;
  std::vector<char> bytes_;
};

TEST_P(Damaged, FlippedBitsCostAtMostTheirChunk) {
  const int64_t whole = Read(bytes_);
  EXPECT_EQ(whole, kRanges);
  std::mt19937_64 random(1);
  int readable = 0;
  for (int i = 0; i < Rounds(2000); ++i) {
    std::vector<char> bytes = bytes_;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      const size_t at = std::min(InterestingByte(random), bytes.size() - 1);
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
    }
    readable += Read(bytes) >= 0;
  }
  EXPECT_GT(readable, Rounds(GetParam().sealed ? 100 : 1000));
}

TEST_P(Damaged, CutAnywhereItReadsWhatIsLeft) {
  std::mt19937_64 random(2);
  for (int i = 0; i < Rounds(500); ++i) {
    std::vector<char> bytes = bytes_;
    bytes.resize(random() % bytes.size());
    EXPECT_LE(Read(bytes), kRanges);
  }
}

TEST_P(Damaged, NoiseInPlaceOfRecordsIsSurvived) {
  std::mt19937_64 random(3);
  for (int i = 0; i < Rounds(500); ++i) {
    std::vector<char> bytes = bytes_;
    const size_t at = random() % bytes.size();
    const size_t length = std::min<size_t>(random() % 4096, bytes.size() - at);
    for (size_t k = at; k < at + length; ++k) bytes[k] = static_cast<char>(random());
    Read(bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Segments, Damaged,
                         ::testing::Values(Damage{"raw", false}, Damage{"sealed", true}),
                         [](const auto& info) { return info.param.what; });

TEST(Hostile, RecordsWithValidHeadersAndAnyWordsAreSurvived) {
  const ScratchFolder scratch;
  std::mt19937_64 random(4);
  for (int i = 0; i < Rounds(1500); ++i) {
    SegmentWriter writer(scratch / "pid-1");
    writer.BeginWriter(0, 100);
    for (int k = 0; k < 60; ++k) {
      std::vector<uint64_t> record(1 + random() % 6);
      for (uint64_t& word : record) word = random() >> random() % 64;
      if (random() % 4 != 0) {
        record[0] = recording::PackHead(static_cast<recording::RecordType>(random() % 24),
                                        static_cast<uint32_t>(record.size()),
                                        static_cast<uint32_t>(random() % 4096),
                                        static_cast<uint32_t>(random() >> random() % 64));
      }
      writer.Raw(record);
    }
    writer.Finish();
    auto ranks = recording::ReadRecording(scratch.path());
    ASSERT_TRUE(ranks.ok()) << ranks.error();
  }
}

TEST(Hostile, RowsOfAnyBytesAreSurvived) {
  const ScratchFolder scratch;
  std::mt19937_64 random(5);
  for (int i = 0; i < Rounds(600); ++i) {
    SegmentWriter writer(scratch / "pid-1");
    writer.BeginWriter(0, 100);
    writer.String("name");
    for (int k = 0; k < 60; ++k) {
      uint64_t row[12];
      for (uint64_t& word : row) word = random() >> random() % 64;
      if (random() % 4 != 0) {
        row[4] = (row[4] & ~(uint64_t{0xFF} << 32)) | (random() % 11) << 32;  // a type
      }
      const bool call = random() % 3 == 0;
      writer.RawRow(call ? recording::ChunkKind::kCallRows : recording::ChunkKind::kDeviceRows,
                    call ? sizeof(recording::CallRow) : sizeof row, row,
                    call ? sizeof(recording::CallRow) : sizeof row);
    }
    writer.Finish();
    auto ranks = recording::ReadRecording(scratch.path());
    ASSERT_TRUE(ranks.ok()) << ranks.error();
  }
}

TEST(Hostile, AHugeSparseFileIsReadAtOnce) {
  const ScratchFolder scratch;
  SegmentWriter writer(scratch / "pid-1");
  writer.BeginWriter(0, 100);
  writer.Push("a", 10);
  writer.Pop(20);
  writer.Finish();
  fs::resize_file(writer.path(), uint64_t{100} << 30);
  auto ranks = recording::ReadRecording(scratch.path());
  ASSERT_TRUE(ranks.ok());
  EXPECT_EQ(ranks.value()[0].trace.ranges.size(), 1u);
}

// The kill came between the first and the last field of a chunk's header: nothing was in it yet.
TEST(Hostile, AnUnfinishedClaimIsNoLoss) {
  const ScratchFolder scratch;
  SegmentWriter writer(scratch / "pid-1");
  writer.BeginWriter(0, 100);
  writer.Push("a", 10);
  writer.Pop(20);
  writer.Finish();
  std::vector<char> bytes = ReadBytes(writer.path());
  const size_t at = (bytes.size() + recording::kChunkAlignment - 1) / recording::kChunkAlignment *
                    recording::kChunkAlignment;
  bytes.resize(at + recording::kChunkAlignment, 0);
  memcpy(bytes.data() + at, &recording::kChunkMagic, sizeof recording::kChunkMagic);
  memcpy(bytes.data() + at + offsetof(recording::ChunkHeader, file_offset), &at, sizeof at);
  WriteBytes(writer.path(), bytes);
  auto ranks = recording::ReadRecording(scratch.path());
  ASSERT_TRUE(ranks.ok());
  EXPECT_EQ(ranks.value()[0].trace.ranges.size(), 1u);
  EXPECT_EQ(ranks.value()[0].trace.quality.CountOf("corrupt_chunk"), 0);
}

// The segment of a process that was killed: a chunk each for three ranges, and the claim of a
// fourth that came to nothing.
std::vector<char> KilledAmidAClaim(const ScratchFolder& scratch) {
  SegmentWriter writer(scratch / "pid-1");
  writer.header().clean_exit.store(0);
  for (uint32_t w = 0; w < 3; ++w) {
    writer.BeginWriter(w, 100 + w);
    writer.Push("a", 10);
    writer.Pop(20);
  }
  writer.Finish();
  std::vector<char> bytes = ReadBytes(writer.path());
  const uint64_t claimed = bytes.size() + recording::kChunkAlignment;
  memcpy(bytes.data() + offsetof(recording::SegmentHeader, next_offset), &claimed, sizeof claimed);
  WriteBytes(writer.path(), bytes);
  return bytes;
}

// Writes the bytes in place of those of KilledAmidAClaim; the kinds of loss that reading them says.
std::string LossesOf(const ScratchFolder& scratch, const std::vector<char>& bytes) {
  WriteBytes(fs::directory_iterator(scratch / "pid-1")->path(), bytes);
  auto ranks = recording::ReadRecording(scratch.path());
  if (!ranks.ok()) return ranks.error();
  std::string kinds;
  for (const QualityItem& item : ranks.value()[0].trace.quality.items()) {
    if (item.severity == QualitySeverity::kDataLoss) kinds += item.kind + " ";
  }
  return kinds;
}

TEST(Hostile, AKilledProcessesSegmentIsWholeOrSaysThatItIsNot) {
  const ScratchFolder scratch;
  const std::vector<char> whole = KilledAmidAClaim(scratch);
  constexpr size_t kStep = recording::kChunkAlignment;
  ASSERT_EQ(whole.size(), 4 * kStep);
  EXPECT_EQ(LossesOf(scratch, whole), "");
  std::vector<char> bytes = whole;
  bytes.resize(5 * kStep);  // allocated, not written
  EXPECT_EQ(LossesOf(scratch, bytes), "");
  for (size_t chunks = 1; chunks < 3; ++chunks) {
    bytes.assign(whole.begin(), whole.begin() + static_cast<ptrdiff_t>((1 + chunks) * kStep));
    EXPECT_EQ(LossesOf(scratch, bytes), "truncated_segment ") << "cut between two chunks";
    bytes.resize(whole.size(), 0);
    EXPECT_EQ(LossesOf(scratch, bytes), "corrupt_chunk ") << "wiped from there";
  }
}

// What a disk that lost its power leaves: zeros from some byte on.
TEST(Hostile, RowsThatWereWipedAreCounted) {
  const ScratchFolder scratch;
  SegmentWriter writer(scratch / "pid-1");
  writer.BeginWriter(0, 100);
  WriteDevice(writer, 0);
  writer.Finish();
  for (const auto kind : {recording::ChunkKind::kDeviceRows, recording::ChunkKind::kCallRows}) {
    std::vector<char> bytes = ReadBytes(writer.path());
    for (size_t at = recording::kChunkAlignment; at < bytes.size();
         at += recording::kChunkAlignment) {
      recording::ChunkHeader header{};
      memcpy(static_cast<void*>(&header), bytes.data() + at, sizeof header);
      if (header.kind != kind) continue;
      const size_t end = at + sizeof header + header.committed.load();
      std::fill(bytes.begin() + static_cast<ptrdiff_t>(end - 2 * header.row_bytes),
                bytes.begin() + static_cast<ptrdiff_t>(end), 0);
    }
    const std::vector<char> whole = ReadBytes(writer.path());
    WriteBytes(writer.path(), bytes);
    auto ranks = recording::ReadRecording(scratch.path());
    WriteBytes(writer.path(), whole);
    ASSERT_TRUE(ranks.ok()) << ranks.error();
    EXPECT_EQ(ranks.value()[0].trace.quality.CountOf("wiped_record"), 2);
  }
}

// Recorders of before count no whole chunks: a claim without its chunk may be one that was lost.
TEST(Hostile, ASegmentOfAnOlderRecorderIsTakenAtItsClaims) {
  const ScratchFolder scratch;
  std::vector<char> bytes = KilledAmidAClaim(scratch);
  memset(bytes.data() + offsetof(recording::SegmentHeader, whole_bytes), 0, sizeof(uint64_t));
  EXPECT_EQ(LossesOf(scratch, bytes), "truncated_segment ");
  const uint64_t size = bytes.size();
  memcpy(bytes.data() + offsetof(recording::SegmentHeader, next_offset), &size, sizeof size);
  EXPECT_EQ(LossesOf(scratch, bytes), "");
}

TEST(Hostile, ClaimsBeyondTheFileAreCountedNotBelieved) {
  const ScratchFolder scratch;
  SegmentWriter writer(scratch / "pid-1");
  writer.BeginWriter(0, 100);
  writer.Push("a", 10);
  writer.Pop(20);
  writer.Finish();
  std::vector<char> bytes = ReadBytes(writer.path());
  const uint64_t claim = uint64_t{1} << 60;
  memcpy(bytes.data() + recording::kChunkAlignment + offsetof(recording::ChunkHeader, committed),
         &claim, sizeof claim);
  WriteBytes(writer.path(), bytes);
  auto ranks = recording::ReadRecording(scratch.path());
  ASSERT_TRUE(ranks.ok());
  EXPECT_EQ(ranks.value()[0].trace.ranges.size(), 1u);
  EXPECT_EQ(ranks.value()[0].trace.quality.CountOf("truncated_chunk"), 1);
}

}  // namespace
}  // namespace trainprof::testing
