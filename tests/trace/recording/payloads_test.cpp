// Structured payloads: as NVTX defines their layouts, and whatever else a recording may hold.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "trace/recording/read/reader.h"

namespace trainprof::testing {
namespace {

using recording::PayloadField;
using recording::PayloadSchema;

constexpr uint64_t kNumber = 1 << 24;
constexpr uint64_t kInner = kNumber + 1;
constexpr uint64_t kOperation = kNumber + 2;
constexpr uint32_t kStatic = 1;
constexpr uint32_t kDynamic = 2;
constexpr uint32_t kUnion = 3;

// Predefined types and flags, in NVTX's numbers.
enum : uint64_t { kChar = 1, kShort = 3, kInt = 5, kUint8 = 12, kInt64 = 17, kUint64 = 18 };
enum : uint64_t { kFloat = 19, kDouble = 20, kSize = 22, kAddress = 23, kByte = 32, kHalf = 42 };
enum : uint64_t { kBf16 = 50, kText = 76, kText16 = 77 };
enum : uint32_t { kPointer = 2, kFixed = 1 << 4, kZeroEnded = 2 << 4, kByIndex = 3 << 4 };

template <class... Values>
std::string Bytes(const Values&... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return bytes;
}

class Payloads : public ::testing::Test {
 protected:
  Payloads() : writer(scratch_ / "pid-1") { writer.BeginWriter(0, 100); }

  void Event() {
    writer.Push("range", at_, 0);
    writer.Pop(at_ + 5);
    at_ += 10;
  }

  Trace Read() {
    writer.Finish();
    auto ranks = recording::ReadRecording(scratch_.path());
    EXPECT_TRUE(ranks.ok()) << (ranks.ok() ? "" : ranks.error());
    return std::move(ranks.value().at(0).trace);
  }

  // "key=value;..." of a range, JSON in angle brackets.
  static std::string ArgsOf(const Trace& trace, size_t row = 0) {
    std::string text;
    trace.args.ForEach(trace.ranges.args[row], [&](const Arg& arg) {
      text += std::string(trace.Text(arg.key)) + "=";
      using enum ArgValue::Type;
      if (arg.value.type == kInt) text += std::to_string(arg.value.integer);
      if (arg.value.type == ArgValue::Type::kDouble) text += std::to_string(arg.value.real);
      if (arg.value.type == kString) text += trace.Text(arg.value.text);
      if (arg.value.type == kJson) text += "<" + std::string(trace.Text(arg.value.text)) + ">";
      text += ";";
    });
    return text;
  }

  // What one payload of this schema gives.
  std::string Decoded(const PayloadSchema& schema, const std::string& bytes) {
    writer.Schema(kNumber, schema);
    writer.Payload(kNumber, bytes);
    Event();
    trace_ = Read();
    return ArgsOf(trace_);
  }

  ScratchFolder scratch_;
  SegmentWriter writer;
  Trace trace_;
  uint64_t at_ = 1000;
};

TEST_F(Payloads, AsNcclMakesThem) {
  writer.Enum(kOperation, {4, {{0, false, "Sum"}, {4, false, "Avg"}}});
  EXPECT_EQ(Decoded({kStatic,
                     24,
                     0,
                     {{kUint64, 0, 0, 0, "NCCL communicator ID"},
                      {kSize, 0, 8, 0, "Message size [bytes]"},
                      {kOperation, 0, 16, 0, "Reduction operation"}}},
                    Bytes(uint64_t{0xF000000000000001}, uint64_t{4096}, int32_t{4}, int32_t{0})),
            "NCCL communicator ID=<17293822569102704641>;Message size [bytes]=4096;"
            "Reduction operation=Avg;");
  EXPECT_TRUE(trace_.quality.items().empty());
}

TEST_F(Payloads, NumbersOfAllKinds) {
  EXPECT_EQ(Decoded({kStatic,
                     0,
                     0,
                     {{kChar, 0, 0, 0, "char"},
                      {kShort, 0, 0, 0, "short"},
                      {kFloat, 0, 0, 0, "float"},
                      {kDouble, 0, 0, 0, "double"},
                      {kAddress, 0, 0, 0, "address"},
                      {kHalf, 0, 0, 0, "half"},
                      {kBf16, 0, 0, 0, ""}}},
                    Bytes(int8_t{-3}, uint8_t{0}, int16_t{-300}, 1.5f, -0.25, uint64_t{0xAB00},
                          uint16_t{0xC100}, uint16_t{0x3FC0})),
            "char=-3;short=-300;float=1.500000;double=-0.250000;address=0xab00;half=-2.500000;"
            "field 6=1.500000;");
}

TEST_F(Payloads, TextsAndArrays) {
  EXPECT_EQ(Decoded({kDynamic,
                     0,
                     0,
                     {{kText, 0, 0, 6, "fixed"},
                      {kText, kZeroEnded, 0, 0, "ended"},
                      {kUint8, 0, 0, 0, "n"},
                      {kShort, kByIndex, 0, 2, "by n"},
                      {kByte, kFixed, 0, 2, "raw"},
                      {kText16, 0, 0, 2, "wide"}}},
                    std::string("abc\0\0\0de\0", 9) + Bytes(uint8_t{2}, int16_t{-1}, int16_t{7}) +
                        "\xAB\x01" + Bytes(uint16_t{0x20AC}, uint16_t{'x'})),
            "fixed=abc;ended=de;n=2;by n=<[-1,7]>;raw=ab01;wide=\xE2\x82\xACx;");
}

TEST_F(Payloads, NestedSchemasHaveTheirPlaceAndName) {
  writer.Schema(kInner, {kStatic, 0, 0, {{kUint8, 0, 0, 0, "a"}, {kInt, 0, 0, 0, "b"}}});
  EXPECT_EQ(Decoded({kStatic,
                     0,
                     0,
                     {{kUint8, 0, 0, 0, "x"},
                      {kInner, kFixed, 0, 2, "in"},
                      {kUint8, 1 << 9, 0, 0, "hidden"},
                      {kUint8, 0, 0, 0, "y"}}},
                    Bytes(1, 2, 3, 4, 5, uint8_t{6}, uint8_t{7})),
            "x=1;in[0].a=2;in[0].b=3;in[1].a=4;in[1].b=5;y=7;");
}

TEST_F(Payloads, FlagsOfAnEnumeration) {
  writer.Enum(kOperation, {1, {{0, false, "none"}, {1, true, "A"}, {4, true, "B"}}});
  EXPECT_EQ(
      Decoded(
          {kStatic,
           0,
           0,
           {{kOperation, 0, 0, 0, "x"}, {kOperation, 0, 0, 0, "y"}, {kOperation, 0, 0, 0, "z"}}},
          "\x05\x07" + std::string(1, '\0')),
      "x=A|B;y=7;z=none;");
}

TEST_F(Payloads, SeveralOfOneEventAndNamesThatRecur) {
  writer.Schema(kNumber, {kStatic, 0, 0, {{kInt, 0, 0, 0, "Rank"}}});
  writer.Payload(kNumber, Bytes(1));
  writer.Payload(kNumber, Bytes(2));
  writer.Payload(kInt64, Bytes(int64_t{-9}));
  writer.Mark("mark", 900);
  Event();
  const Trace trace = Read();
  EXPECT_EQ(ArgsOf(trace), "");  // they were the mark's
  ASSERT_NE(trace.instants.args[0], kNoArgs);
  EXPECT_EQ(trace.args.Find(trace.instants.args[0], trace.strings.Find("Rank (2)"))->integer, 2);
  EXPECT_EQ(trace.args.Find(trace.instants.args[0], trace.strings.Find("payload"))->integer, -9);
}

TEST_F(Payloads, ASchemaHoldsInItsDomain) {
  writer.Schema(kNumber, {kStatic, 0, 0, {{kInt, 0, 0, 0, "theirs"}}}, 3);
  writer.Schema(recording::kFirstRecorderPayloadType, {kStatic, 0, 0, {{kInt, 0, 0, 0, "own"}}}, 3);
  writer.Payload(kNumber, Bytes(1));
  writer.Payload(recording::kFirstRecorderPayloadType, Bytes(2));
  Event();
  const Trace trace = Read();
  EXPECT_EQ(ArgsOf(trace), "own=2;");
  EXPECT_EQ(trace.quality.CountOf("unknown_payload_schema"), 1);
}

TEST_F(Payloads, WhatIsNotThereIsCounted) {
  EXPECT_EQ(Decoded({kStatic,
                     0,
                     0,
                     {{kInt, 0, 0, 0, "there"},
                      {kInt, kPointer, 8, 0, "elsewhere"},
                      {kInt, 0, 16, 0, "behind"},
                      {999, 0, 0, 0, "unknown"},
                      {kInt, 0, 0, 0, "nowhere"},
                      {kInt, 0, 4, 0, "last"},
                      {kInt64, kFixed, 8, 0x80000000, "long"}}},
                    Bytes(1, 2, 3, 4)),
            "there=1;last=2;");
  EXPECT_EQ(trace_.quality.CountOf("malformed_payload"), 1);
  EXPECT_EQ(trace_.quality.CountOf("unread_payload_field"), 3);
}

TEST_F(Payloads, UnionsAndSchemasWithinThemselvesAreNotRead) {
  writer.Schema(kInner, {kUnion, 4, 0, {{kInt, 0, 0, 0, "a"}, {kFloat, 0, 0, 0, "b"}}});
  EXPECT_EQ(Decoded({kStatic,
                     0,
                     0,
                     {{kInt, 0, 0, 0, "x"},
                      {kInner, 0, 4, 0, "union"},
                      {kNumber, kFixed, 0, 4'000'000'000, "self"}}},
                    Bytes(1, 2)),
            "x=1;");
  EXPECT_GE(trace_.quality.CountOf("unread_payload_field"), 2);
}

TEST_F(Payloads, WithoutItsEventItIsCounted) {
  writer.Payload(kInt, Bytes(1));
  EXPECT_EQ(Read().quality.CountOf("stray_payload"), 1);
}

// Structures of random integers, laid out as C does; the twin knows where it put each.
TEST_F(Payloads, RandomSchemasGiveWhatWasPutIn) {
  std::mt19937_64 random(6);
  const std::vector<std::pair<uint64_t, size_t>> types = {{kChar, 1}, {kUint8, 1}, {kShort, 2},
                                                          {kInt, 4},  {kInt64, 8}, {kUint64, 8}};
  std::vector<std::string> expected;
  for (uint64_t n = 0; n < 200; ++n) {
    PayloadSchema schema{kStatic, 0, static_cast<uint32_t>(random() % 4), {}};
    if (schema.packing == 3) schema.packing = 4;
    const bool placed = random() % 2 == 0;
    std::string bytes, text;
    for (uint64_t i = 0; i < 1 + random() % 20; ++i) {
      const auto [type, size] = types[random() % types.size()];
      const size_t alignment = schema.packing == 0 ? size : std::min<size_t>(size, schema.packing);
      while (bytes.size() % alignment != 0) bytes += '\x55';
      const auto value = static_cast<int64_t>(random() >> 1) >> (63 - 8 * size + random() % 8 + 1);
      const auto offset = static_cast<uint32_t>(placed ? bytes.size() : 0);
      schema.fields.push_back({type, 0, offset, 0, "f" + std::to_string(i)});
      bytes.append(reinterpret_cast<const char*>(&value), size);
      int64_t kept = 0;
      std::memcpy(&kept, &value, size);
      if (type == kChar) kept = static_cast<int8_t>(kept);
      if (type == kShort) kept = static_cast<int16_t>(kept);
      if (type == kInt) kept = static_cast<int32_t>(kept);
      text += "f" + std::to_string(i) + "=" + std::to_string(kept) + ";";
    }
    writer.Schema(kNumber + n, schema);
    writer.Payload(kNumber + n, bytes);
    Event();
    expected.push_back(text);
  }
  const Trace trace = Read();
  for (size_t n = 0; n < expected.size(); ++n) EXPECT_EQ(ArgsOf(trace, n), expected[n]) << n;
  EXPECT_TRUE(trace.quality.items().empty());
}

TEST_F(Payloads, AnySchemasAndBytesAreSurvived) {
  std::mt19937_64 random(7);
  for (int n = 0; n < 3000; ++n) {
    PayloadSchema schema{static_cast<uint32_t>(random() % 4),
                         static_cast<uint32_t>(random() % 9),
                         static_cast<uint32_t>(random() % 5),
                         {}};
    for (uint64_t i = 0; i < random() % 8; ++i) {
      const uint64_t type = random() % 3 == 0 ? kNumber + random() % 20 : random() % 110;
      schema.fields.push_back({type, static_cast<uint32_t>(random() % 0x400),
                               static_cast<uint32_t>(random() >> (32 + random() % 32)),
                               static_cast<uint32_t>(random() >> (32 + random() % 32)), ""});
    }
    const uint64_t number = random() % 30 == 0 ? random() % 110 : kNumber + random() % 20;
    writer.Schema(number, schema);
    if (random() % 8 == 0) writer.Enum(random() % 110, {static_cast<uint32_t>(random() % 12), {}});
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    writer.Payload(random() % 4 == 0 ? random() % 110 : kNumber + random() % 20, bytes);
    Event();
  }
  EXPECT_EQ(Read().ranges.size(), 3000u);
}

}  // namespace
}  // namespace trainprof::testing
