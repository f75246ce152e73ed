// Chunks that threads load come in their order and whole, however early the reader stops.
#include "trace/recording/segments/read_ahead.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/scratch_folder.h"
#include "tests/trace/recording/rows_of.h"
#include "trace/recording/seal/sealer.h"

namespace trainprof::testing {
namespace {

using namespace recording;

// More than is worth threads: chunks of records and of rows.
std::filesystem::path WriteLarge(const ScratchFolder& scratch) {
  SegmentWriter writer(scratch / "pid-1");
  std::mt19937_64 random(1);
  for (uint32_t w = 0; w < 3; ++w) {
    writer.BeginWriter(w, 100 + w);
    for (uint64_t i = 1; i < 20'000; ++i) {
      writer.Push("name " + std::to_string(random() % 100), 1000 * i);
      writer.Pop(1000 * i + random() % 500);
      const auto at = static_cast<int64_t>(1000 * i);
      writer.Row(RowOf(DeviceRowType::kKernel, at, at + static_cast<int64_t>(random() % 900),
                       static_cast<uint32_t>(i)));
    }
  }
  writer.Finish();
  return writer.path();
}

std::vector<const Chunk*> AllChunks(const SegmentReader& segment) {
  std::vector<const Chunk*> chunks;
  for (const Chunk& chunk : segment.chunks()) chunks.push_back(&chunk);
  return chunks;
}

void ExpectAsLoadedAlone(const SegmentReader& segment) {
  ReadAhead ahead(segment, AllChunks(segment));
  Quality of_ahead;
  Quality alone;
  for (const Chunk& chunk : segment.chunks()) {
    const LoadedChunk* loaded = ahead.Next(of_ahead);
    std::vector<uint64_t> words;
    const bool whole = segment.Load(chunk, words, alone);
    ASSERT_EQ(loaded != nullptr, whole);
    if (!whole) continue;
    if (chunk.kind == ChunkKind::kRecords) {
      ASSERT_EQ(loaded->words, words);
    } else {
      std::vector<uint64_t> rows;
      RowsOf(loaded->runs, chunk.row_bytes, rows);
      ASSERT_EQ(rows, words);
    }
  }
  EXPECT_EQ(of_ahead, alone);
}

SegmentReader Opened(const std::filesystem::path& path) {
  Quality quality;
  auto segment = SegmentReader::Open(path, quality);
  EXPECT_TRUE(segment.ok());
  return std::move(segment).value();
}

std::filesystem::path SealedFile(const ScratchFolder& scratch, std::filesystem::path raw) {
  const auto limit = testing::InAnHour();
  EXPECT_TRUE(SealRecording(scratch.path(), {}, limit).ok());
  return raw.replace_extension(kSealedSuffix);
}

TEST(ReadAhead, GivesAllChunksInTheirOrderRawAndSealed) {
  const ScratchFolder scratch;
  const std::filesystem::path raw = WriteLarge(scratch);
  ExpectAsLoadedAlone(Opened(raw));
  ExpectAsLoadedAlone(Opened(SealedFile(scratch, raw)));
}

TEST(ReadAhead, LeavesOutAndCountsDamagedChunks) {
  const ScratchFolder scratch;
  const std::filesystem::path path = SealedFile(scratch, WriteLarge(scratch));
  std::vector<char> bytes = ReadBytes(path);
  {
    const SegmentReader segment = Opened(path);
    for (const size_t chunk : {size_t{3}, size_t{4}, segment.chunks().size() - 1}) {
      bytes[segment.chunks()[chunk].file_offset + 40] ^= 1;
    }
  }
  WriteBytes(path, bytes);
  ExpectAsLoadedAlone(Opened(path));
}

TEST(ReadAhead, MayEndBeforeAllIsRead) {
  const ScratchFolder scratch;
  const SegmentReader segment = Opened(WriteLarge(scratch));
  for (size_t read = 0; read < 4; ++read) {
    ReadAhead ahead(segment, AllChunks(segment));
    Quality quality;
    for (size_t i = 0; i < read; ++i) EXPECT_NE(ahead.Next(quality), nullptr);
  }
}

}  // namespace
}  // namespace trainprof::testing
