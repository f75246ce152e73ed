// Rows put together by their tracks, against what that means, row by row.
#include "trace/recording/seal/row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "trace/recording/wire/rows.h"

namespace trainprof::recording {
namespace {

template <class Row>
std::vector<uint64_t> WordsOf(const std::vector<Row>& rows, size_t row_words, size_t rest) {
  std::vector<uint64_t> words(rows.size() * row_words + rest, 0x5151);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(words.data() + i * row_words, static_cast<const void*>(&rows[i]), sizeof(Row));
  }
  return words;
}

template <class Row>
std::vector<Row> RowsOf(const std::vector<uint64_t>& words, size_t row_words) {
  std::vector<Row> rows(words.size() / row_words);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(static_cast<void*>(&rows[i]), words.data() + i * row_words, sizeof(Row));
  }
  return rows;
}

using RowTrack = std::pair<uint64_t, uint64_t>;

RowTrack TrackOf(const CallRow& row) { return {0, row.tid}; }
RowTrack TrackOf(const DeviceRow& row) {
  const bool is_work = row.type == DeviceRowType::kKernel || row.type == DeviceRowType::kCopy ||
                       row.type == DeviceRowType::kPeerCopy || row.type == DeviceRowType::kMemset ||
                       row.type == DeviceRowType::kGraph;
  return is_work ? RowTrack{row.device, row.stream} : RowTrack{UINT64_MAX, 0};
}

// begin_ns numbers the rows of `before`.
template <class Row>
void ExpectGrouped(const std::vector<Row>& before, const std::vector<Row>& after) {
  ASSERT_EQ(after.size(), before.size());
  std::map<RowTrack, int64_t> newest;
  std::vector<bool> seen(before.size(), false);
  for (size_t i = 0; i < after.size(); ++i) {
    const auto number = static_cast<size_t>(after[i].begin_ns);
    ASSERT_LT(number, before.size());
    EXPECT_EQ(std::memcmp(&after[i], &before[number], sizeof(Row)), 0);
    EXPECT_FALSE(seen[number]);
    seen[number] = true;
    if (i + 1 == after.size()) {
      EXPECT_EQ(number + 1, before.size()) << "the last row stays the last";
      break;
    }
    const RowTrack track = TrackOf(after[i]);
    const auto [last, is_new] = newest.try_emplace(track, -1);
    EXPECT_TRUE(is_new || TrackOf(after[i - 1]) == track) << "its rows lie together";
    EXPECT_LT(last->second, after[i].begin_ns) << "in the order of before";
    last->second = after[i].begin_ns;
  }
}

template <class Row>
void ExpectGroupsAny(ChunkKind kind, uint64_t seed, uint32_t tracks) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  const size_t count = below(300);
  const size_t row_words = sizeof(Row) / 8 + below(3);  // of a later version, too
  std::vector<Row> rows(count);
  for (size_t i = 0; i < count; ++i) {
    for (char& byte : std::span(reinterpret_cast<char*>(&rows[i]), sizeof(Row))) {
      byte = static_cast<char>(random());
    }
    rows[i].begin_ns = static_cast<int64_t>(i);
    if constexpr (std::is_same_v<Row, CallRow>) {
      rows[i].tid = static_cast<uint32_t>(below(tracks));
    } else {
      rows[i].device = static_cast<uint32_t>(below(2));
      rows[i].stream = static_cast<uint32_t>(below(tracks));
      rows[i].type = static_cast<DeviceRowType>(below(12));
    }
  }
  Chunk chunk;
  chunk.kind = kind;
  chunk.row_bytes = static_cast<uint16_t>(row_words * 8);
  const size_t rest = below(row_words);
  std::vector<uint64_t> words = WordsOf(rows, row_words, rest);
  const std::vector<uint64_t> before = words;
  GroupByTrack(chunk, words);
  ASSERT_EQ(words.size(), before.size());
  ExpectGrouped(rows, RowsOf<Row>(words, row_words));
  EXPECT_TRUE(std::equal(words.end() - static_cast<ptrdiff_t>(rest), words.end(),
                         before.end() - static_cast<ptrdiff_t>(rest)));
}

TEST(GroupByTrack, RowsOfATrackLieTogetherInTheirOrder) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto tracks = static_cast<uint32_t>(1 + seed % 7);
    ExpectGroupsAny<CallRow>(ChunkKind::kCallRows, seed, tracks);
    ExpectGroupsAny<DeviceRow>(ChunkKind::kDeviceRows, seed, tracks);
  }
}

TEST(GroupByTrack, LeavesWhatItDoesNotKnow) {
  std::vector<CallRow> rows(200);
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i].tid = i;
  const std::vector<uint64_t> many = WordsOf(rows, sizeof(CallRow) / 8, 0);
  for (CallRow& row : rows) row.tid %= 2;
  const std::vector<uint64_t> few = WordsOf(rows, sizeof(CallRow) / 8, 0);
  const auto is_left = [](std::vector<uint64_t> words, ChunkKind kind, uint16_t row_bytes) {
    const std::vector<uint64_t> before = words;
    Chunk chunk;
    chunk.kind = kind;
    chunk.row_bytes = row_bytes;
    GroupByTrack(chunk, words);
    return words == before;
  };
  EXPECT_FALSE(is_left(few, ChunkKind::kCallRows, sizeof(CallRow)));
  EXPECT_TRUE(is_left(many, ChunkKind::kCallRows, sizeof(CallRow))) << "too many tracks";
  EXPECT_TRUE(is_left(few, ChunkKind::kRecords, sizeof(CallRow)));
  EXPECT_TRUE(is_left(few, ChunkKind::kDeviceRows, sizeof(CallRow))) << "too short for such rows";
  EXPECT_TRUE(is_left(few, static_cast<ChunkKind>(77), sizeof(CallRow)));
  EXPECT_TRUE(is_left({}, ChunkKind::kCallRows, sizeof(CallRow)));
}

}  // namespace
}  // namespace trainprof::recording
