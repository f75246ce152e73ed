#include "trace/recording/segments/row_codec.h"

#include <gtest/gtest.h>

#include <random>
#include <type_traits>

namespace trainprof::recording {
namespace {

using Words = std::vector<uint64_t>;

// What an earlier chunk may have left.
RowRuns UsedRuns() { return {{1, 2}, {3}, {4}, {0, 2, 5}, {1, 0}, {6, 7}, {8}}; }

// By the letter of FORMAT.md: encoding 1 is read, and no longer written.
Words InAllPlanes(const Words& rows, uint16_t row_bytes) {
  const size_t words = row_bytes / 8;
  const size_t count = rows.size() / words;
  Words packed = rows;
  auto* bytes = reinterpret_cast<unsigned char*>(packed.data());
  const auto zigzag = [](auto difference) {
    using Signed = std::make_signed_t<decltype(difference)>;
    return difference << 1 ^ static_cast<decltype(difference)>(static_cast<Signed>(difference) >>
                                                               (8 * sizeof difference - 1));
  };
  const auto put = [&](size_t row, size_t at, auto code) {
    for (size_t b = 0; b < sizeof code; ++b) {
      bytes[(at + b) * count + row] = static_cast<unsigned char>(code >> 8 * b);
    }
  };
  for (size_t i = 0; i < count; ++i) {
    const uint64_t* row = rows.data() + i * words;
    const auto before = [&](size_t word) { return i == 0 ? 0 : (row - words)[word]; };
    put(i, 0, zigzag(row[0] - before(0)));
    put(i, 8, zigzag(row[1] - row[0]));
    for (size_t w = 2; w < words; ++w) {
      for (const int shift : {0, 32}) {
        const auto value = static_cast<uint32_t>(row[w] >> shift);
        put(i, w * 8 + static_cast<size_t>(shift) / 8,
            zigzag(value - static_cast<uint32_t>(before(w) >> shift)));
      }
    }
  }
  return packed;
}

bool SameRuns(const RowRuns& a, const RowRuns& b) {
  return a.begin_ns == b.begin_ns && a.end_ns == b.end_ns && a.correlation == b.correlation &&
         a.run_begin == b.run_begin && a.look_of_run == b.look_of_run && a.rest == b.rest;
}

void ExpectSameInEveryForm(const Words& rows, uint16_t row_bytes) {
  RowRuns runs = UsedRuns();
  RunsOf(rows, row_bytes, runs);
  Words back = {99};
  RowsOf(runs, row_bytes, back);
  EXPECT_EQ(back, rows) << row_bytes;
  const Words packed = PackRows(rows, row_bytes);
  EXPECT_LE(packed.size(), MostPackedWords(rows.size(), row_bytes));
  RowRuns unpacked = UsedRuns();
  ASSERT_TRUE(UnpackRuns(packed, ChunkEncoding::kPlanes, rows.size(), row_bytes, unpacked));
  EXPECT_TRUE(SameRuns(unpacked, runs)) << row_bytes;
  RowsOf(unpacked, row_bytes, back);
  EXPECT_EQ(back, rows) << row_bytes;
  ASSERT_TRUE(UnpackRuns(InAllPlanes(rows, row_bytes), ChunkEncoding::kAllPlanes, rows.size(),
                         row_bytes, unpacked));
  EXPECT_TRUE(SameRuns(unpacked, runs)) << row_bytes;
  RowsOf(unpacked, row_bytes, back);
  EXPECT_EQ(back, rows) << row_bytes;
}

TEST(RowCodec, AnyWordsComeBackAsTheyWere) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    const auto row_bytes = static_cast<uint16_t>(8 * (3 + random() % 20));
    std::vector<uint64_t> rows(random() % 500);
    for (uint64_t& word : rows) word = random() >> random() % 64;
    ExpectSameInEveryForm(rows, row_bytes);
  }
}

// Any mixture of columns that hold and columns that vary, also by one value alone.
TEST(RowCodec, ColumnsThatHoldComeBackAsTheyWere) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) {
    const size_t words = 3 + random() % 12;
    const size_t count = 1 + random() % 40;
    std::vector<uint64_t> row(words);
    for (uint64_t& word : row) word = random() >> random() % 64;
    std::vector<uint64_t> rows;
    for (size_t r = 0; r < count; ++r) rows.insert(rows.end(), row.begin(), row.end());
    for (size_t changes = random() % 4; changes > 0; --changes) {
      rows[random() % rows.size()] ^= uint64_t{1} << random() % 64;
    }
    rows.resize(rows.size() + random() % words, 5);
    ExpectSameInEveryForm(rows, static_cast<uint16_t>(8 * words));
  }
}

TEST(RowCodec, WhatHoldsFromRowToRowTakesNoRoom) {
  Words rows;
  for (uint64_t i = 0; i < 100; ++i) rows.insert(rows.end(), {1000 * i, 1000 * i + 7, 5, 6});
  // The mask, the first row, and a row two bytes for the step of 1000, one for the length.
  EXPECT_EQ(PackRows(rows, 32).size(), 1 + 4 + (3 * 99 + 7) / 8u);
  RowRuns runs;
  RunsOf(rows, 32, runs);
  EXPECT_EQ(runs.runs(), 1u);
}

TEST(RowCodec, RunsThatLookTheSameShareALook) {
  Words rows;
  for (uint64_t i = 0; i < 1000; ++i) rows.insert(rows.end(), {10 * i, 10 * i + 7, i, i % 50});
  RowRuns runs;
  RunsOf(rows, 32, runs);
  EXPECT_EQ(runs.runs(), 1000u);
  EXPECT_EQ(runs.looks.size(), 50 * 4u);
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(runs.looks[runs.look_of_run[i] * 4 + 3], i % 50) << i;
  }
}

TEST(RowCodec, WordsThatAreNoRowsAreRefused) {
  std::mt19937_64 random(3);
  Words rows(40 * 5);
  for (uint64_t& word : rows) word = random() % 4;
  const Words packed = PackRows(rows, 40);
  RowRuns runs;
  for (const auto encoding : {ChunkEncoding::kAllPlanes, ChunkEncoding::kPlanes}) {
    for (size_t words = 0; words < packed.size(); ++words) {
      const Words cut(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(words));
      EXPECT_FALSE(UnpackRuns(cut, encoding, rows.size(), 40, runs)) << words;
    }
  }
  Words all_bits = packed;
  all_bits[0] = UINT64_MAX;  // more planes than a row has bytes
  EXPECT_FALSE(UnpackRuns(all_bits, ChunkEncoding::kPlanes, rows.size(), 40, runs));
}

TEST(RowCodec, NoiseIsRefusedOrReadAsSoManyRows) {
  std::mt19937_64 random(4);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto row_bytes = static_cast<uint16_t>(8 * (3 + random() % 12));
    const size_t words = random() % 60;
    Words packed(random() % 70);
    for (uint64_t& word : packed) word = random() >> random() % 64;
    if (!packed.empty() && random() % 2 == 0) packed[0] &= random() % 16;  // few planes
    const auto encoding = random() % 2 == 0 ? ChunkEncoding::kAllPlanes : ChunkEncoding::kPlanes;
    RowRuns runs = UsedRuns();
    if (!UnpackRuns(packed, encoding, words, row_bytes, runs)) continue;
    ++read;
    Words rows;
    RowsOf(runs, row_bytes, rows);
    ASSERT_EQ(rows.size(), words);
  }
  EXPECT_GT(read, 100);
}

TEST(RowCodec, RowsWithoutTimesAndCorrelationHaveNoColumns) {
  for (const uint16_t bytes : {0, 8, 16, 28}) EXPECT_FALSE(HasColumns(bytes)) << bytes;
  for (const uint16_t bytes : {24, 40, 96}) EXPECT_TRUE(HasColumns(bytes)) << bytes;
}

}  // namespace
}  // namespace trainprof::recording
