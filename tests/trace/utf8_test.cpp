#include "trace/base/utf8.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

std::string Repaired(std::string_view text) {
  bool repaired = false;
  const std::string valid = RepairUtf8(text, &repaired);
  EXPECT_EQ(repaired, valid != text);
  return valid;
}

TEST(Utf8, ReadsEveryCharacterThatItWrites) {
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    std::string text;
    AppendUtf8(code, text);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    ASSERT_EQ(text.size(), bytes) << code;
    ASSERT_EQ(text == "\uFFFD", surrogate || code == kReplacementCharacter) << code;
    ASSERT_EQ(Utf8Length(text), bytes) << code;
    ASSERT_EQ(Utf8Length(text + "\x80"), bytes) << code;
    if (bytes > 1) {
      ASSERT_EQ(Utf8Length(std::string_view(text).substr(0, bytes - 1)), 0u) << code;
    }
  }
  std::string beyond;
  AppendUtf8(0x110000, beyond);
  EXPECT_EQ(beyond, "\uFFFD");
  EXPECT_EQ(Utf8Length(""), 0u);
}

TEST(Utf8, RefusesWhatHasAShorterFormAndWhatIsNoCharacter) {
  for (const std::string_view text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE2\x82("}) {
    EXPECT_EQ(Utf8Length(text), 0u) << ::testing::PrintToString(text);
  }
}

TEST(Utf8, RepairsEachByteThatIsPartOfNoCharacter) {
  EXPECT_EQ(Repaired("plain, \u00e9 \u20ac \U0001F600"), "plain, \u00e9 \u20ac \U0001F600");
  EXPECT_EQ(Repaired("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(Repaired("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Repaired("cut \xE2\x82"), "cut \uFFFD\uFFFD");
  EXPECT_EQ(Repaired(""), "");
}

}  // namespace
}  // namespace trainprof
