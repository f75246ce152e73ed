// Arguments of events come back as they went in: order, types, values.
#include "trace/tables/args.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace trainprof {
namespace {

using Type = ArgValue::Type;

Arg Int(uint32_t key, int64_t value) {
  return {StringId{key}, {.type = Type::kInt, .integer = value}};
}
Arg Double(uint32_t key, double value) {
  return {StringId{key}, {.type = Type::kDouble, .real = value}};
}
Arg Text(uint32_t key, uint32_t text) {
  return {StringId{key}, {.type = Type::kString, .text = StringId{text}}};
}
Arg Json(uint32_t key, uint32_t text) {
  return {StringId{key}, {.type = Type::kJson, .text = StringId{text}}};
}
Arg Bare(uint32_t key, Type type) { return {StringId{key}, {.type = type}}; }

std::vector<Arg> Stored(const ArgsTable& table, ArgsId id) {
  std::vector<Arg> args;
  table.ForEach(id, [&](const Arg& arg) { args.push_back(arg); });
  return args;
}

// Equality to the bit, so that NaN equals itself and -0.0 is not 0.0.
bool Same(const Arg& a, const Arg& b) {
  return a.key == b.key && a.value.type == b.value.type && a.value.text == b.value.text &&
         a.value.integer == b.value.integer &&
         std::bit_cast<uint64_t>(a.value.real) == std::bit_cast<uint64_t>(b.value.real);
}

TEST(ArgsTable, OfNoArgumentsIsNoArgs) {
  ArgsTable table;
  EXPECT_EQ(table.Add({}), kNoArgs);
  EXPECT_TRUE(Stored(table, kNoArgs).empty());
  EXPECT_FALSE(table.Find(kNoArgs, StringId{1}).has_value());
}

TEST(ArgsTable, KeepsOrderTypesAndValues) {
  ArgsTable table;
  const std::vector<Arg> args = {Text(7, 3),           Int(1, 42),           Json(2, 9),
                                 Double(5, 0.5),       Bare(4, Type::kTrue), Bare(3, Type::kFalse),
                                 Bare(6, Type::kNull), Int(8, INT64_MIN)};
  const ArgsId id = table.Add(args);
  EXPECT_NE(id, kNoArgs);
  EXPECT_EQ(Stored(table, id), args);
}

TEST(ArgsTable, KeepsTheEdgesOfIntegers) {
  ArgsTable table;
  for (int64_t value : {int64_t{0}, int64_t{-1}, int64_t{INT32_MAX}, int64_t{INT32_MIN},
                        int64_t{INT32_MAX} + 1, int64_t{INT32_MIN} - 1, INT64_MAX, INT64_MIN}) {
    const Arg arg = Int(1, value);
    EXPECT_EQ(Stored(table, table.Add(std::span(&arg, 1))), std::vector{arg}) << value;
  }
}

TEST(ArgsTable, KeepsEveryBitOfADouble) {
  ArgsTable table;
  using Limits = std::numeric_limits<double>;
  for (double value : {-0.0, Limits::denorm_min(), Limits::max(), Limits::infinity(),
                       -Limits::infinity(), Limits::quiet_NaN(), 0.1}) {
    const Arg arg = Double(1, value);
    const std::vector<Arg> stored = Stored(table, table.Add(std::span(&arg, 1)));
    ASSERT_EQ(stored.size(), 1u);
    EXPECT_TRUE(Same(stored[0], arg)) << value;
  }
}

TEST(ArgsTable, FindsTheFirstArgumentOfAKey) {
  ArgsTable table;
  const ArgsId id = table.Add(std::vector{Int(1, 10), Int(2, 20), Int(1, 30)});
  ASSERT_TRUE(table.Find(id, StringId{1}).has_value());
  EXPECT_EQ(table.Find(id, StringId{1})->integer, 10);
  EXPECT_EQ(table.Find(id, StringId{2})->integer, 20);
  EXPECT_FALSE(table.Find(id, StringId{3}).has_value());
}

TEST(ArgsTable, StoresAShapeOnce) {
  ArgsTable table;
  table.Add(std::vector{Int(1, 0), Text(2, 1), Bare(3, Type::kTrue)});
  const size_t before = table.size_bytes();
  for (int i = 1; i <= 1000; ++i)
    table.Add(std::vector{Int(1, i), Text(2, 1), Bare(3, Type::kTrue)});
  // The shape's number, one small integer and one string: 4 bytes each.
  EXPECT_EQ(table.size_bytes() - before, 1000u * 12);
}

Arg RandomArg(std::mt19937_64& random) {
  const auto key = static_cast<uint32_t>(random() % 6);
  const auto text = static_cast<uint32_t>(random());
  switch (random() % 8) {
    case 0:
      return Text(key, text);
    case 1:
      return Json(key, text);
    case 2:
      return Int(key, static_cast<int32_t>(random()));
    case 3:
      return Int(key, static_cast<int64_t>(random()));
    case 4:
      return Double(key, std::bit_cast<double>(random()));
    case 5:
      return Bare(key, Type::kTrue);
    case 6:
      return Bare(key, Type::kFalse);
    default:
      return Bare(key, Type::kNull);
  }
}

// Thousands of shapes, so that the shape index grows several times over.
TEST(ArgsTableTwin, GivesBackRandomArguments) {
  std::mt19937_64 random(99);
  ArgsTable table;
  std::vector<std::pair<ArgsId, std::vector<Arg>>> twin;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<Arg> args(random() % 6);
    for (Arg& arg : args) arg = RandomArg(random);
    twin.emplace_back(table.Add(args), args);
  }
  for (const auto& [id, args] : twin) {
    const std::vector<Arg> stored = Stored(table, id);
    ASSERT_EQ(stored.size(), args.size());
    for (size_t i = 0; i < args.size(); ++i) ASSERT_TRUE(Same(stored[i], args[i]));
    for (const Arg& arg : args) {
      const auto first = std::find_if(args.begin(), args.end(),
                                      [&](const Arg& other) { return other.key == arg.key; });
      const std::optional<ArgValue> found = table.Find(id, arg.key);
      ASSERT_TRUE(found.has_value());
      ASSERT_TRUE(Same({arg.key, *found}, *first));
    }
  }
}

}  // namespace
}  // namespace trainprof
