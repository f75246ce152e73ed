#include "trace/base/nearest.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("formt", "format"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("sitting", "kitten"), 3u);
}

TEST(Nearest, IsTheOneWithTheFewestEdits) {
  EXPECT_EQ(Nearest("theem", {"theme", "scale", "step"}), "theme");
  EXPECT_EQ(Nearest("stpes", {"select", "steps"}), "steps");
  EXPECT_EQ(Nearest("screnshot", {"select", "screenshot"}), "screenshot");
}

TEST(Nearest, IsNoneWhenNothingIsNear) {
  EXPECT_EQ(Nearest("nonsense", {"theme", "scale"}), "");
  EXPECT_EQ(Nearest("x", {"rank", "to"}), "");
  EXPECT_EQ(Nearest("theme", {}), "");
}

TEST(Nearest, ABeginningOfExactlyOneIsMeant) {
  EXPECT_EQ(Nearest("allow", {"allow-inconclusive", "format"}), "allow-inconclusive");
  EXPECT_EQ(Nearest("no", {"no-gpu", "no-report"}), "");
}

TEST(Nearest, NamesTheOptionThatWasProbablyMeant) {
  EXPECT_EQ(NoSuchOption("--theem", {"theme"}, " Otherwise."),
            "there is no option '--theem'. Did you mean '--theme'?");
  EXPECT_EQ(NoSuchOption("--", {"theme"}, " Otherwise."), "there is no option '--'. Otherwise.");
}

}  // namespace
}  // namespace trainprof
