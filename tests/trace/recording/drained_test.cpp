// Reading chunks that the supervisor has taken out of a segment: by the letter of FORMAT.md, whole, torn and damaged.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <random>

#include "tests/support/sanitized.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "trace/io/write_all.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/seal/chunk_packer.h"
#include "trace/recording/seal/sealer.h"
#include "trace/recording/segments/drained_file.h"
#include "trace/recording/segments/segment_reader.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;
using recording::Chunk;
using recording::ChunkHeader;
using recording::ChunkState;

constexpr int kChunks = 12;

// A thread's ranges and rows, in chunks of both.
fs::path WriteRangesAndCalls(const fs::path& run) {
  SegmentWriter writer(run / "pid-1");
  writer.BeginWriter(0, 100);
  for (int i = 0; i < kChunks; ++i) {
    if (i > 0) writer.NewChunk();
    for (uint64_t n = 0; n < 20; ++n) {
      const uint64_t at = 1'000'000 * static_cast<uint64_t>(i + 1) + 1000 * n;
      writer.Push("range " + std::to_string(n % 5), at);
      writer.Pop(at + 900);
    }
  }
  writer.BeginWriter(1, 101);
  for (uint32_t n = 0; n < 50; ++n) {
    recording::CallRow row{};
    row.begin_ns = SegmentWriter::kOriginNs + 1000 * n;
    row.end_ns = row.begin_ns + 300;
    row.correlation = n + 1;
    row.tid = 101;
    row.domain = recording::CallDomain::kRuntime;
    row.name = writer.String("cudaLaunchKernel");
    writer.Row(row);
  }
  writer.Finish();
  return writer.path();
}

void Change(const fs::path& file, uint64_t at, const void* bytes, size_t size) {
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(pwrite(fd, bytes, size, static_cast<off_t>(at)), static_cast<ssize_t>(size));
  close(fd);
}

// Appends these chunks to the drained file and gives them that state. What is drained alone is wiped.
void Drain(const fs::path& path, const std::vector<Chunk>& chunks, ChunkState state) {
  Quality quality;
  const auto segment = recording::SegmentReader::Open(path, quality);
  ASSERT_TRUE(segment.ok()) << segment.error();
  const fs::path drained = recording::DrainedPath(path);
  uint64_t end = fs::exists(drained) ? fs::file_size(drained) : 0;
  if (end == 0) {
    const recording::DrainedHeader header = {recording::kDrainedMagic,
                                             segment.value().info().identity};
    Change(drained, 0, &header, sizeof header);
    end = sizeof header;
  }
  recording::ChunkPacker packer;
  for (const Chunk& chunk : chunks) {
    std::vector<uint64_t> words;
    ASSERT_TRUE(segment.value().Load(chunk, words, quality));
    recording::ChunkEncoding encoding{};
    const auto packed = packer.Pack(chunk, words, recording::kSealLevel, &encoding);
    recording::DrainedChunk entry{};
    entry.magic = recording::kDrainedChunkMagic;
    entry.chunk = {end + sizeof entry,  static_cast<uint32_t>(packed.size()),
                   chunk.payload_bytes, chunk.kind,
                   chunk.row_bytes,     chunk.writer,
                   chunk.sequence,      static_cast<uint32_t>(encoding),
                   chunk.opened};
    entry.check = recording::CheckOf(&entry, offsetof(recording::DrainedChunk, check));
    Change(drained, end, &entry, sizeof entry);
    Change(drained, end + sizeof entry, packed.data(), packed.size());
    end += (sizeof entry + packed.size() + 7) / 8 * 8;
    fs::resize_file(drained, end);
    const uint64_t header = chunk.file_offset - sizeof(ChunkHeader);
    Change(path, header + offsetof(ChunkHeader, state), &state, sizeof state);
    if (state == ChunkState::kHandedOver) continue;
    const std::vector<char> wiped(chunk.payload_bytes, 'x');
    Change(path, chunk.file_offset, wiped.data(), wiped.size());
    if (state != ChunkState::kTaken) continue;
    const uint32_t half_written = 77;
    Change(path, header + offsetof(ChunkHeader, sequence), &half_written, sizeof half_written);
  }
}

std::vector<Chunk> ChunksOf(const fs::path& path) {
  Quality quality;
  const auto segment = recording::SegmentReader::Open(path, quality);
  EXPECT_TRUE(segment.ok());
  return segment.ok() ? segment.value().chunks() : std::vector<Chunk>{};
}

std::vector<Chunk> Every(const std::vector<Chunk>& chunks, size_t step, size_t first) {
  std::vector<Chunk> some;
  for (size_t i = first; i < chunks.size(); i += step) some.push_back(chunks[i]);
  return some;
}

Trace ReadOne(const fs::path& run) {
  auto ranks = recording::ReadRecording(run);
  EXPECT_TRUE(ranks.ok()) << (ranks.ok() ? "" : ranks.error());
  return ranks.ok() ? std::move(ranks.value().at(0).trace) : Trace{};
}

class Drained : public ::testing::Test {
 protected:
  Drained() {
    EXPECT_TRUE(recording::CreateRun(run_, {}).ok());
    path_ = WriteRangesAndCalls(run_);
    whole_ = ReadOne(run_);
    chunks_ = ChunksOf(path_);
  }

  void ExpectTheSame(const Trace& trace) const {
    EXPECT_EQ(trace.ranges, whole_.ranges);
    EXPECT_EQ(trace.api, whole_.api);
    EXPECT_EQ(trace.quality, whole_.quality);
  }

  ScratchFolder scratch_;
  fs::path run_ = scratch_ / "run";
  fs::path path_;
  Trace whole_;
  std::vector<Chunk> chunks_;
};

TEST_F(Drained, ChunksReadAsIfTheyHadStayed) {
  ASSERT_GT(whole_.ranges.size(), 200u);
  ASSERT_EQ(whole_.api.size(), 50u);
  Drain(path_, Every(chunks_, 3, 0), ChunkState::kDrained);
  ExpectTheSame(ReadOne(run_));
  Drain(path_, Every(chunks_, 3, 1), ChunkState::kTaken);
  ExpectTheSame(ReadOne(run_));
  Drain(path_, Every(chunks_, 3, 2), ChunkState::kHandedOver);
  ExpectTheSame(ReadOne(run_));
}

TEST_F(Drained, SealedTheyAreOneFile) {
  Drain(path_, Every(chunks_, 2, 0), ChunkState::kDrained);
  Drain(path_, Every(chunks_, 2, 1), ChunkState::kHandedOver);
  const auto summary = recording::SealRecording(run_, {}, InAnHour());
  ASSERT_TRUE(summary.ok()) << summary.error();
  EXPECT_EQ(summary.value().left_raw, 0u);
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_FALSE(fs::exists(recording::DrainedPath(path_)));
  ExpectTheSame(ReadOne(run_));
}

// As a kill leaves it: what was not whole is in the segment still.
TEST_F(Drained, ATornEndIsNoLoss) {
  Drain(path_, Every(chunks_, 4, 0), ChunkState::kDrained);
  const fs::path drained = recording::DrainedPath(path_);
  const uint64_t whole = fs::file_size(drained);
  Drain(path_, Every(chunks_, 4, 1), ChunkState::kHandedOver);
  for (uint64_t bytes = fs::file_size(drained); bytes >= whole; bytes -= 3) {
    fs::resize_file(drained, bytes);
    ExpectTheSame(ReadOne(run_));
  }
}

TEST_F(Drained, AMissingFileIsSaid) {
  Drain(path_, Every(chunks_, 2, 0), ChunkState::kDrained);
  fs::remove(recording::DrainedPath(path_));
  const Trace trace = ReadOne(run_);
  EXPECT_GT(trace.quality.CountOf("lost_chunk"), 0);
  EXPECT_LT(trace.ranges.size(), whole_.ranges.size());
}

TEST_F(Drained, AnotherSegmentsFileIsLeftOut) {
  Drain(path_, Every(chunks_, 2, 0), ChunkState::kHandedOver);
  const uint64_t other = 4711;
  Change(recording::DrainedPath(path_), offsetof(recording::DrainedHeader, identity), &other,
         sizeof other);
  const Trace trace = ReadOne(run_);
  EXPECT_EQ(trace.quality.CountOf("corrupt_chunk"), 1);
  EXPECT_EQ(trace.ranges, whole_.ranges);
}

// One flipped bit anywhere: the same, or a loss that is counted.
TEST_F(Drained, DamageIsCounted) {
  Drain(path_, Every(chunks_, 1, 0), ChunkState::kDrained);
  const fs::path drained = recording::DrainedPath(path_);
  std::ifstream file(drained, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::mt19937 random(20261126);
  for (int i = 0; i < Rounds(600); ++i) {
    const size_t at = random() % bytes.size();
    const char flipped = static_cast<char>(bytes[at] ^ 1 << random() % 8);
    Change(drained, at, &flipped, 1);
    auto ranks = recording::ReadRecording(run_);
    if (ranks.ok()) {
      const Trace& trace = ranks.value().at(0).trace;
      const bool is_same = trace.ranges == whole_.ranges && trace.api == whole_.api;
      EXPECT_TRUE(is_same || !trace.quality.items().empty()) << "byte " << at;
    }
    Change(drained, at, &bytes[at], 1);
  }
}

}  // namespace
}  // namespace trainprof::testing
