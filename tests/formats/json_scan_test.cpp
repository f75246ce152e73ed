// The inner loops of reading JSON against obvious twins, at every length where they change their
// step.
#include "trace/formats/io/json_scan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "trace/formats/io/json_window.h"

namespace trainprof {
namespace {

// The text as it would stand in a window: zeros follow.
std::string Padded(std::string_view text) {
  return std::string(text) + std::string(JsonWindow::kPadding, '\0');
}

TEST(JsonScan, SkipsWhiteSpaceOfAnyLengthAndNothingElse) {
  for (size_t length = 0; length < 70; ++length) {
    for (const char* next : {"x", "\v", "\f", "\x01", "\xA0", ""}) {
      std::string space;
      while (space.size() < length) space += " \n\r\t"[space.size() % 4];
      const std::string text = Padded(space + next);
      EXPECT_EQ(json::SkipSpace(text.data()) - text.data(), static_cast<ptrdiff_t>(length));
    }
  }
}

TEST(JsonScan, ReadsIntegersOfUpTo18Digits) {
  std::mt19937 random(1);
  for (size_t digits = 1; digits <= 30; ++digits) {
    for (const std::string sign : {"", "-"}) {
      std::string number = sign + static_cast<char>('1' + random() % 9);
      while (number.size() < sign.size() + digits) {
        number += static_cast<char>('0' + random() % 10);
      }
      for (const char* next : {",", "}", " ", "/", ":", "\xB0", ""}) {
        const std::string text = Padded(number + next);
        int64_t value = 0;
        const char* after = json::ParseSmallInteger(text.data(), value);
        if (digits > 18) {
          EXPECT_EQ(after, nullptr) << number;
          continue;
        }
        ASSERT_EQ(after, text.data() + number.size()) << number << next;
        EXPECT_EQ(value, std::stoll(number));
      }
    }
  }
}

TEST(JsonScan, LeavesOtherNumbersToTheGeneralPath) {
  for (const char* text :
       {"", "-", "-0", "00", "01", "1.5", "1e3", "1E3", "12345678.5", "x", "+1"}) {
    int64_t value = 0;
    EXPECT_EQ(json::ParseSmallInteger(Padded(text).c_str(), value), nullptr) << text;
  }
}

TEST(JsonScan, ReadsMicrosecondsExactly) {
  struct Case {
    const char* text;
    int64_t ns;
  };
  for (const Case& c : {Case{"0", 0},
                        {"7", 7000},
                        {"0.5", 500},
                        {"1.25", 1250},
                        {"1661203462598.772", 1661203462598772},
                        {"12345678.001", 12345678001},
                        {"1661203462598772", 1661203462598772000},
                        {"3999999999999999.999", 3999999999999999999},
                        {"-2.5", -2500}}) {
    const std::string text = Padded(std::string(c.text) + ",");
    int64_t ns = 0;
    EXPECT_EQ(json::ParseMicroseconds(text.data(), ns), text.data() + std::strlen(c.text));
    EXPECT_EQ(ns, c.ns) << c.text;
  }
}

TEST(JsonScan, LeavesOtherTimesToTheGeneralPath) {
  for (const char* text : {"", "-", ".5", "1.", "1.2345", "1.5e3", "1e3", "4000000000000001",
                           "12345678901234567", "123456789012345678901234567", "1.2.3"}) {
    int64_t ns = 0;
    EXPECT_EQ(json::ParseMicroseconds(Padded(text).c_str(), ns), nullptr) << text;
  }
}

}  // namespace
}  // namespace trainprof
