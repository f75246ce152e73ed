// JsonWriter's quick way through texts, against the one that looks at each character.
#include "trace/formats/chrome/json_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "trace/formats/io/json_text.h"

namespace trainprof {
namespace {

// Every character at every place of texts of every length up to more than three blocks.
TEST(JsonWriter, QuotesAsCharacterByCharacter) {
  int64_t escaped = 0;
  for (size_t size = 0; size <= 52; ++size) {
    for (size_t at = 0; at < std::max<size_t>(size, 1); ++at) {
      for (int c = 0; c < 256; ++c) {
        std::string text(size, 'x');
        if (size > 0) text[at] = static_cast<char>(c);
        std::string expected;
        json::AppendQuoted(expected, text);
        JsonWriter writer;
        writer.Raw("before");
        writer.Quoted(text);
        ASSERT_EQ(writer.text(), "before" + expected) << size << ' ' << at << ' ' << c;
        escaped += expected.size() != size + 2;
      }
    }
  }
  EXPECT_GT(escaped, 300 * 30) << "a quote, a backslash and what is below a space, at 300 places";
}

TEST(JsonWriter, CopiesTextsOfAnyLength) {
  std::string text;
  for (size_t size = 0; size < 200; ++size) {
    JsonWriter writer;
    writer.Raw(text);
    writer.Raw(text);
    ASSERT_EQ(writer.text(), text + text);
    text += static_cast<char>('a' + size % 26);
  }
}

// Keys are spelled once; those outside "args", and those that only look like it.
TEST(JsonWriter, TellsFieldsFromArguments) {
  StringTable strings;
  const auto arg = [&](std::string_view key, int64_t value) {
    return Arg{strings.Intern(key), {.type = ArgValue::Type::kInt, .integer = value}};
  };
  const std::vector<Arg> args{arg("a\"b", 1), arg("^id", 2), arg("^^twice", 3), arg("^", 4)};
  ArgKeys keys(strings);
  const int64_t id = 7;
  for (int round = 0; round < 2; ++round) {
    JsonWriter writer;
    writer.Arguments(args, keys, nullptr);
    EXPECT_EQ(writer.text(), R"(,"id":2,"args":{"a\"b":1,"^twice":3,"":4})");
    writer.Clear();
    writer.Arguments(args, keys, &id, {}, true);
    EXPECT_EQ(writer.text(), R"(,"id":"7","args":{"a\"b":1,"^twice":3,"":4})");
  }
}

// An argument outside "args" behind one inside, and none at all: what was begun goes.
TEST(JsonWriter, WritesNoArgsWhereNoneAre) {
  StringTable strings;
  const std::vector<Arg> outside{{strings.Intern("^s"), {.type = ArgValue::Type::kTrue}}};
  ArgKeys keys(strings);
  JsonWriter writer;
  writer.Char('{');
  writer.Arguments({}, keys, nullptr);
  EXPECT_EQ(writer.text(), "{");
  writer.Arguments(outside, keys, nullptr);
  EXPECT_EQ(writer.text(), R"({,"s":true)");
}

// Around each length of the part before the point, and each that three digits of a table fill up.
TEST(JsonWriter, WritesNanosecondsAsMicroseconds) {
  std::vector<int64_t> times{0, INT64_MAX, INT64_MIN};
  for (int64_t power = 1; power <= INT64_MAX / 10; power *= 10) {
    for (int64_t off : {-1, 0, 1, 7}) times.push_back(power + off);
  }
  for (const int64_t ns : times) {
    for (const int64_t signed_ns : {ns, ns == INT64_MIN ? ns : -ns}) {
      JsonWriter writer;
      writer.Microseconds(signed_ns);
      const auto magnitude =
          signed_ns < 0 ? 0 - static_cast<uint64_t>(signed_ns) : static_cast<uint64_t>(signed_ns);
      std::string fraction = std::to_string(1000 + magnitude % 1000);
      fraction[0] = '.';
      EXPECT_EQ(writer.text(),
                (signed_ns < 0 ? "-" : "") + std::to_string(magnitude / 1000) + fraction);
    }
  }
}

// Texts that change hands: what the room held before is gone, however long it was.
TEST(JsonWriter, WritesIntoTheRoomOfATextThatWas) {
  JsonWriter writer;
  std::string text;
  for (const size_t size : {5, 5000, 3, 40, 6000, 0, 17}) {
    const std::string expected(size, 'x');
    writer.Begin(text);
    writer.Raw(expected);
    writer.End(text);
    EXPECT_EQ(text, expected);
    EXPECT_EQ(writer.text(), "");
  }
}

}  // namespace
}  // namespace trainprof
