#include "viewer/navigation/search.h"

#include <gtest/gtest.h>

#include "tests/analysis/trace_script.h"
#include "trace/trace_builder.h"
#include "viewer/timeline/series.h"

namespace trainprof {
namespace {

class SearchTest : public ::testing::Test {
 protected:
  SearchTest() {
    for (size_t r = 0; r < 2; ++r) {
      traces_[r] = TraceFromScript(R"(
thread 1
op 0 3000 aten::Linear
call 100 110 cudaLaunchKernel | corr=1
stream 0 7
kernel 200 900 void gemm kernel(int) | corr=1
kernel 900 2900 ncclDevKernel_AllReduce
)");
      traces_[r].rank = static_cast<int64_t>(r) + 4;
      traces_[r].base_ns = static_cast<int64_t>(r) * 1000;
    }
    lines_.emplace(std::vector<RankView>{{&traces_[0], &analysis_}, {&traces_[1], &analysis_}});
  }

  std::string Find(std::string_view text) {
    const Result<Query> query = ParseQuery(text);
    if (!query.ok()) return query.error();
    std::string found;
    for (const EventRef& event : Search(*lines_, query.value()).events) {
      found += std::to_string(lines_->ranks()[event.rank].trace->rank) + " " +
               std::string(lines_->NameOf(event)) + "\n";
    }
    return found;
  }

  Trace traces_[2];
  RankAnalysis analysis_;
  std::optional<Lines> lines_;
};

TEST_F(SearchTest, FindsByNameWithoutCase) {
  EXPECT_EQ(Find("LINEAR"), "4 aten::Linear\n5 aten::Linear\n");
  EXPECT_EQ(Find("name:nccl rank:5"), "5 ncclDevKernel_AllReduce\n");
  EXPECT_EQ(Find("name:\"gemm kernel\" rank:4"), "4 void gemm kernel(int)\n");
  EXPECT_EQ(Find("kernel gemm rank:4"), "4 void gemm kernel(int)\n");
  EXPECT_EQ(Find("nothing"), "");
}

TEST_F(SearchTest, FindsByDurationAndRank) {
  EXPECT_EQ(Find("name: dur>1ms rank:4"), "4 aten::Linear\n4 ncclDevKernel_AllReduce\n");
  EXPECT_EQ(Find("dur>2ms rank:4"), "4 aten::Linear\n");
  EXPECT_EQ(Find("dur>=2000us dur<3ms"), "4 ncclDevKernel_AllReduce\n5 ncclDevKernel_AllReduce\n");
  EXPECT_EQ(Find("dur<=0.00001s rank:4"), "4 cudaLaunchKernel\n");
  EXPECT_EQ(Find("dur<10us"), "");
}

TEST_F(SearchTest, AnEmptyQueryFindsNothing) {
  EXPECT_EQ(Find(""), "");
  EXPECT_EQ(Find("  name:  "), "");
}

TEST_F(SearchTest, SaysWhatIsWrong) {
  EXPECT_EQ(Find("dur>1"), "dur>1: write a duration with its unit, dur>1ms");
  EXPECT_EQ(Find("dur>ms"), "dur>ms: write a duration with its unit, dur>1ms");
  EXPECT_EQ(Find("dur<-1ms"), "dur<-1ms: write a duration with its unit, dur>1ms");
  EXPECT_EQ(Find("rank:a"), "rank:a: write a number, rank:0");
  EXPECT_EQ(Find("rank:1x"), "rank:1x: write a number, rank:0");
}

TEST_F(SearchTest, HostileQueriesAreHarmless) {
  EXPECT_EQ(Find("dur>1e300s"), "");
  EXPECT_EQ(Find("\"\" \"unclosed"), "");
  EXPECT_EQ(Find("dur>nans"), "dur>nans: write a duration with its unit, dur>1ms");
}

TEST(Search, KeepsTheFirstOfTooMany) {
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  const StringId name = builder.Intern("f");
  for (int64_t i = 0; i < static_cast<int64_t>(kMostHits) + 5; ++i) {
    builder.AddRange({.begin = {i}, .end = {i + 1}, .name = name, .track = thread},
                     RangeKind::kUserAnnotation);
  }
  const Trace trace = std::move(builder).Build();
  const RankAnalysis analysis;
  const Lines lines({{&trace, &analysis}});
  const Hits hits = Search(lines, ParseQuery("f").value());
  EXPECT_EQ(hits.total, kMostHits + 5);
  EXPECT_EQ(hits.events.size(), kMostHits);
}

TEST_F(SearchTest, GoesRoundTheHits) {
  const Hits hits = Search(*lines_, ParseQuery("aten").value());
  ASSERT_EQ(hits.total, 2u);  // at 0 and 1000 ns
  EXPECT_EQ(NextHit(*lines_, hits, {-1}), 0u);
  EXPECT_EQ(NextHit(*lines_, hits, {0}), 1u);
  EXPECT_EQ(NextHit(*lines_, hits, {1000}), 0u);
  EXPECT_EQ(PreviousHit(*lines_, hits, {1000}), 0u);
  EXPECT_EQ(PreviousHit(*lines_, hits, {0}), 1u);
  EXPECT_EQ(NextHit(*lines_, {}, {0}), std::nullopt);
  EXPECT_EQ(PreviousHit(*lines_, {}, {0}), std::nullopt);
}

}  // namespace
}  // namespace trainprof
