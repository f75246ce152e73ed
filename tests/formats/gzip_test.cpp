// Each library against each: what one makes the others read, in whatever pieces, and damage is found.
#include "trace/formats/io/gzip.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace trainprof {
namespace {

std::string Encoded(std::string_view text, GzipLibrary by, size_t piece, size_t room) {
  const std::unique_ptr<GzipEncoder> encoder = MakeGzipEncoder(by);
  std::vector<char> out(room);
  std::string all;
  const auto give = [&](std::string_view bytes, bool is_last) {
    size_t written = 0;
    do {
      written = encoder->Encode(bytes, is_last, out);
      all.append(out.data(), written);
    } while (written == out.size());
    EXPECT_TRUE(bytes.empty());
  };
  for (size_t at = 0; at < text.size(); at += piece) give(text.substr(at, piece), false);
  give({}, true);
  return all;
}

struct Decoded {
  std::string text;
  bool ended = false;
  std::string damage;
  size_t unread = 0;
};

// `pieces` says how much of the input is given at once.
template <class Pieces>
Decoded DecodedBy(GzipLibrary by, std::string_view bytes, size_t room, Pieces pieces) {
  const std::unique_ptr<GzipDecoder> decoder = MakeGzipDecoder(by);
  std::vector<char> out(room);
  Decoded decoded;
  while (true) {
    std::string_view piece = bytes.substr(0, pieces());
    const size_t given = piece.size();
    size_t written = 0;
    const GzipDecoder::State state = decoder->Decode(piece, out, written);
    bytes.remove_prefix(given - piece.size());
    decoded.text.append(out.data(), written);
    decoded.ended = state == GzipDecoder::State::kMemberEnded;
    if (state == GzipDecoder::State::kDamaged) decoded.damage = decoder->damage();
    decoded.unread = bytes.size();
    if (state != GzipDecoder::State::kGoesOn || (bytes.empty() && written < room)) return decoded;
  }
}

Decoded DecodedBy(GzipLibrary by, std::string_view bytes) {
  return DecodedBy(by, bytes, 1 << 20, [] { return size_t{1} << 18; });
}

std::vector<std::string> Texts() {
  std::mt19937_64 random(7);
  std::string noise(300'000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  std::string events;
  for (int i = 0; events.size() < 3'000'000; ++i) {
    events += fmt::format(R"({{"ph":"X","name":"kernel {}","ts":{},"dur":{}}},)", i % 37, i * 1001,
                          random() % 999);
  }
  return {"", "a", "abc", std::string(200'000, 'x'), noise, events};
}

TEST(Gzip, WhatOneLibraryMakesAllRead) {
  for (const std::string& text : Texts()) {
    for (const GzipLibrary made_by : GzipLibraries()) {
      const std::string bytes = Encoded(text, made_by, 100'000, 1 << 16);
      EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
      for (const GzipLibrary read_by : GzipLibraries()) {
        const Decoded decoded = DecodedBy(read_by, bytes + "more");
        EXPECT_TRUE(decoded.text == text) << Name(made_by) << ", " << Name(read_by);
        EXPECT_TRUE(decoded.ended);
        EXPECT_EQ(decoded.damage, "");
        EXPECT_EQ(decoded.unread, 4u) << "what follows is the caller's";
      }
    }
  }
}

TEST(Gzip, InWhateverPieces) {
  const std::string events = Texts().back().substr(0, 50'000);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](size_t n) { return 1 + static_cast<size_t>(random() % n); };
    for (const GzipLibrary library : GzipLibraries()) {
      const std::string bytes = Encoded(events, library, below(5'000), below(3'000));
      const size_t most = below(2'000);
      const Decoded decoded = DecodedBy(library, bytes, below(4'000), [&] { return below(most); });
      ASSERT_TRUE(decoded.text == events) << Name(library) << ", seed " << seed;
      ASSERT_TRUE(decoded.ended);
    }
  }
}

TEST(Gzip, OneMemberAfterTheOther) {
  for (const GzipLibrary library : GzipLibraries()) {
    const std::unique_ptr<GzipDecoder> decoder = MakeGzipDecoder(library);
    const std::string first = Encoded("first", library, 10, 100);
    const std::string both = first + Encoded("second", library, 10, 100);
    std::string_view bytes = both;
    std::vector<char> out(100);
    size_t written = 0;
    EXPECT_EQ(decoder->Decode(bytes, out, written), GzipDecoder::State::kMemberEnded);
    EXPECT_EQ(std::string(out.data(), written), "first");
    EXPECT_EQ(bytes.size(), both.size() - first.size());
    decoder->Begin();
    EXPECT_EQ(decoder->Decode(bytes, out, written), GzipDecoder::State::kMemberEnded);
    EXPECT_EQ(std::string(out.data(), written), "second");
    EXPECT_TRUE(bytes.empty());
  }
}

// Whatever is read of it before is what was written.
TEST(Gzip, AFileThatIsCutOffGivesAllThatIsThere) {
  const std::string events = Texts().back();
  const std::string bytes = Encoded(events, GzipLibrary::kZlib, 100'000, 1 << 16);
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::string_view part = std::string_view(bytes).substr(0, random() % bytes.size());
    const Decoded by_zlib = DecodedBy(GzipLibrary::kZlib, part);
    for (const GzipLibrary library : GzipLibraries()) {
      const Decoded decoded = DecodedBy(library, part);
      EXPECT_FALSE(decoded.ended) << Name(library);
      EXPECT_EQ(decoded.damage, "") << Name(library);
      EXPECT_TRUE(events.starts_with(decoded.text)) << Name(library);
      EXPECT_GE(decoded.text.size() + 300, by_zlib.text.size()) << Name(library);
    }
  }
}

TEST(Gzip, DamageAnywhereIsFoundOrHarmless) {
  const std::string events = Texts().back().substr(0, 200'000);
  for (const GzipLibrary library : GzipLibraries()) {
    const std::string good = Encoded(events, library, 100'000, 1 << 16);
    std::mt19937_64 random(3);
    int found = 0;
    for (int i = 0; i < 1000; ++i) {
      std::string bytes = good;
      const size_t at = i < 20 ? static_cast<size_t>(i) % 10 : random() % bytes.size();
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      const Decoded decoded = DecodedBy(library, bytes);
      if (!decoded.damage.empty()) {
        ++found;
      } else if (decoded.ended) {
        EXPECT_TRUE(decoded.text == events) << Name(library) << ", byte " << at;
      }
    }
    EXPECT_GT(found, 950) << Name(library);
  }
}

// Found by fuzzing: isa-l then says that it has more left than it was given.
TEST(Gzip, DamageThatGoesBackByMoreThanWasGivenIsDamage) {
  constexpr char kHead[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x2a\x29\x4a\x4c\x4e";
  constexpr char kTail[] =
      "\x64\xaa\xa3\x04\xd5\x17\x5b\x0b\x00\x8a\xd3\x26\x22\x68\x42\x00\x00\x00";
  const std::string bytes = std::string(kHead, sizeof kHead - 1) + std::string(98, '\xff') +
                            std::string(kTail, sizeof kTail - 1);
  for (const GzipLibrary library : GzipLibraries()) {
    const Decoded decoded = DecodedBy(library, bytes);
    EXPECT_FALSE(decoded.damage.empty()) << Name(library);
    EXPECT_LE(decoded.unread, bytes.size()) << Name(library);
  }
}

}  // namespace
}  // namespace trainprof
