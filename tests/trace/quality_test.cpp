// Bad input is counted by kind, once, in the order of first sight.
#include "trace/tables/quality.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

TEST(Quality, AddsUpByKindAndKeepsTheFirstDetail) {
  Quality quality;
  quality.Count("negative_duration", QualitySeverity::kWarning, 1, "event 812");
  quality.Count("dropped", QualitySeverity::kDataLoss, 40, "buffer full");
  quality.Count("negative_duration", QualitySeverity::kWarning, 2, "event 900");
  ASSERT_EQ(quality.items().size(), 2u);
  EXPECT_EQ(quality.items()[0],
            (QualityItem{"negative_duration", QualitySeverity::kWarning, 3, "event 812"}));
  EXPECT_EQ(quality.items()[1].kind, "dropped");
  EXPECT_EQ(quality.CountOf("dropped"), 40);
  EXPECT_EQ(quality.CountOf("never"), 0);
}

TEST(Quality, TakesTheFirstDetailThatIsGiven) {
  Quality quality;
  quality.Count("orphan", QualitySeverity::kInfo);
  quality.Count("orphan", QualitySeverity::kInfo, 1, "event 7");
  quality.Count("orphan", QualitySeverity::kInfo, 1, "event 8");
  EXPECT_EQ(quality.items()[0].detail, "event 7");
}

TEST(Quality, KeepsTheGravestSeverityAndWhatItSays) {
  Quality quality;
  quality.Count("missing", QualitySeverity::kInfo, 1, "a graph explains it");
  quality.Count("missing", QualitySeverity::kDataLoss, 2, "lost");
  quality.Count("missing", QualitySeverity::kWarning, 4, "repaired");
  ASSERT_EQ(quality.items().size(), 1u);
  EXPECT_EQ(quality.items()[0], (QualityItem{"missing", QualitySeverity::kDataLoss, 7, "lost"}));
}

TEST(Quality, CountingNothingAddsNoKind) {
  Quality quality;
  quality.Count("overlap", QualitySeverity::kWarning, 0, "none");
  EXPECT_TRUE(quality.items().empty());
}

TEST(Quality, NamesItsSeverities) {
  EXPECT_EQ(Name(QualitySeverity::kInfo), "info");
  EXPECT_EQ(Name(QualitySeverity::kWarning), "warning");
  EXPECT_EQ(Name(QualitySeverity::kDataLoss), "data_loss");
}

}  // namespace
}  // namespace trainprof
