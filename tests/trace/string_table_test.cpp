// The interner, by example and against std::map on 10^5 strings.
#include "trace/base/string_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace trainprof {
namespace {

TEST(StringTable, HoldsTheEmptyStringFromTheStart) {
  StringTable table;
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.Intern(""), kEmptyString);
  EXPECT_EQ(table.View(kEmptyString), "");
  EXPECT_EQ(table.size(), 1u);
}

TEST(StringTable, GivesTheSameTextTheSameId) {
  StringTable table;
  const StringId a = table.Intern("aten::mm");
  const StringId b = table.Intern("aten::bmm");
  EXPECT_NE(a, b);
  EXPECT_EQ(table.Intern(std::string("aten::") + "mm"), a);
  EXPECT_EQ(table.View(b), "aten::bmm");
}

TEST(StringTable, FindsOnlyWhatWasInterned) {
  StringTable table;
  const StringId id = table.Intern("step");
  EXPECT_EQ(table.Find("step"), id);
  EXPECT_EQ(table.Find("stepp"), kEmptyString);
  EXPECT_EQ(table.size(), 2u);
}

TEST(StringTable, TellsApartTextsThatDifferOnlyInNulBytes) {
  StringTable table;
  const std::string one("a\0b", 3);
  const std::string two("a\0c", 3);
  const std::string nul("\0", 1);
  const StringId plain = table.Intern("a");
  const StringId id_one = table.Intern(one);
  const StringId id_two = table.Intern(two);
  const StringId id_nul = table.Intern(nul);
  EXPECT_NE(id_one, plain);
  EXPECT_NE(id_one, id_two);
  EXPECT_NE(id_nul, kEmptyString);
  EXPECT_EQ(table.View(id_one), one);
  EXPECT_EQ(table.View(id_nul), nul);
}

// A part of a name that the table itself holds: the pool may move while the part is copied.
TEST(StringTable, InternsAPartOfItsOwnText) {
  StringTable table;
  std::string expected(100, 'x');
  StringId id = table.Intern(expected);
  for (int length = 100; length > 1; --length) {
    id = table.Intern(table.View(id).substr(1));
    expected.pop_back();
    ASSERT_EQ(table.View(id), expected);
  }
  const std::string far = "Optimizer.step#" + std::string(1 << 16, 'S');
  const StringId whole = table.Intern(far);
  const StringId part = table.Intern(table.View(whole).substr(15));
  EXPECT_EQ(table.View(part), std::string(1 << 16, 'S'));
}

TEST(StringTableTwin, AgreesWithAMapOnManyStrings) {
  constexpr int kStrings = 100'000;
  constexpr size_t kLongest = 70'000;  // longer than any real name: a 64 KiB argument fits
  std::mt19937_64 random(4711);
  std::uniform_int_distribution<int> percent(0, 99);
  StringTable table;
  std::map<std::string, StringId> twin = {{"", kEmptyString}};
  for (int i = 0; i < kStrings; ++i) {
    std::string text;
    const int kind = percent(random);
    if (kind < 30) {  // few distinct, short: hits
      text = "op" + std::to_string(random() % 500);
    } else if (kind < 90) {  // raw bytes, NUL among them, short enough to repeat
      text.resize(random() % 12);
      for (char& c : text) c = static_cast<char>(random() % (kind < 60 ? 3 : 256));
    } else {  // shared head and tail, differing in the middle
      text = "void at::native::" + std::to_string(random()) + "<float>(int, float*)";
    }
    if (i % 10'000 == 0) text.assign(kLongest + static_cast<size_t>(i), 'k');
    const StringId id = table.Intern(text);
    const auto [it, is_new] = twin.try_emplace(text, id);
    ASSERT_EQ(it->second, id) << "string " << i;
    ASSERT_EQ(table.size(), twin.size()) << "string " << i;
  }
  EXPECT_GT(twin.size(), 20'000u);
  for (const auto& [text, id] : twin) {
    ASSERT_EQ(table.View(id), text);
    ASSERT_EQ(table.Find(text), id);
    const std::string absent = text + "\x01 never interned";
    ASSERT_EQ(table.Find(absent), kEmptyString);
  }
}

}  // namespace
}  // namespace trainprof
