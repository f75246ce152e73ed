// What people are shown of texts that may hold anything.
#include "trace/io/printable.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "trace/io/print.h"

namespace trainprof {
namespace {

TEST(Printable, PlainTextInAnyScriptStaysAsItIs) {
  for (const char* text :
       {"void gemm<float>(int)", "Schritt für Schritt", "学習", "👩‍🔬", "שלום", ""}) {
    EXPECT_EQ(OneLine(text), text);
    EXPECT_EQ(SeveralLines(text), text);
    EXPECT_EQ(HarmlessJson(text), text);
  }
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(OneLine("\x1b]0;title\x07\x1b[2J"), "\\x1b]0;title\\x07\\x1b[2J");
  EXPECT_EQ(OneLine(std::string_view("a\0b\r\b\x7f", 6)), "a\\x00b\\r\\x08\\x7f");
  EXPECT_EQ(OneLine("\xc2\x9b"
                    "31m"),
            "\\u009b31m");  // C1 as UTF-8
  EXPECT_EQ(OneLine("\x9b"
                    "31m"),
            "\\x9b31m");  // and as a byte
}

TEST(Printable, ShowsWhatTurnsTheDirectionOfWritingOrCannotBeSeen) {
  EXPECT_EQ(OneLine("a\xe2\x80\xae"
                    "b"),
            "a\\u202eb");
  EXPECT_EQ(OneLine("\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8f\xd8\x9c"),
            "\\u2066\\u2069\\u200f\\u061c");
  EXPECT_EQ(OneLine("\xef\xbb\xbf\xe2\x80\x8b"), "\\ufeff\\u200b");
  EXPECT_EQ(OneLine("\xf3\xa0\x81\x81"), "\\U000e0041");
}

TEST(Printable, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(OneLine("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(OneLine("\xe2\x80"), "\\xe2\\x80");                    // cut off
  EXPECT_EQ(OneLine("\xc0\x9b"), "\\xc0\\x9b");                    // overlong
  EXPECT_EQ(OneLine("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(OneLine("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // past the last character
}

TEST(Printable, ANameCannotBeginALineOfOurs) {
  EXPECT_EQ(OneLine("kernel\nPASS\t1\xe2\x80\xa8x"), "kernel\\nPASS\\t1\\u2028x");
  EXPECT_EQ(SeveralLines("a\n\tb\x1b"), "a\n\tb\\x1b");
}

TEST(Printable, OnlyOurOwnStylesPassAndOnlyWhereAskedFor) {
  EXPECT_EQ(SeveralLines("\033[1mbold\033[0m", true), "\033[1mbold\033[0m");
  EXPECT_EQ(SeveralLines("\033[1mbold", false), "\\x1b[1mbold");
  EXPECT_EQ(SeveralLines("\033[7m\033[31;5m\033]52;c;x", true), "\\x1b[7m\\x1b[31;5m\\x1b]52;c;x");
}

TEST(Printable, JsonStaysTheSameJson) {
  const nlohmann::json json = {{"name", "a\x7f\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81\n\x1b z"}};
  const std::string text = HarmlessJson(json.dump(2));
  EXPECT_EQ(text.find_first_of("\x1b\x7f"), std::string::npos);
  EXPECT_EQ(SeveralLines(text), text);
  EXPECT_EQ(nlohmann::json::parse(text), json);
}

TEST(Printable, AWordOfACommandNeitherRunsNorCommandsWhenPasted) {
  EXPECT_EQ(ShellQuoted("/a/b-1.json"), "/a/b-1.json");
  EXPECT_EQ(ShellQuoted(""), "''");
  EXPECT_EQ(ShellQuoted("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(ShellQuoted("a\nb'\\\x1b[201~\x9b"), "$'a\\012b\\'\\\\\\033[201~\\233'");
}

TEST(Print, TextsAmongTheArgumentsBecomeOneLine) {
  std::FILE* const file = std::tmpfile();
  const std::string name = "a\nb\x1b";
  Print(file, "{}: {:>4} {:.1f} {}\n", name, 7, 0.25, "c\x9b");
  Print(file, "plain\n");
  std::rewind(file);
  char text[100] = {};
  EXPECT_EQ(std::string(text, std::fread(text, 1, sizeof text, file)),
            "a\\nb\\x1b:    7 0.2 c\\x9b\nplain\n");
  std::fclose(file);
}

}  // namespace
}  // namespace trainprof
