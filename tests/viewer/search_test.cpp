#include "viewer/navigation/search.h"

#include <gtest/gtest.h>

#include "analysis/tables/facts.h"
#include "tests/support/every_table.h"
#include "tests/support/random_trace.h"
#include "tests/support/trace_script.h"
#include "trace/base/cancel.h"
#include "trace/build/trace_builder.h"
#include "viewer/timeline/line_events.h"
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
  // As `at:` takes it.
  EXPECT_EQ(Find("\"dur<=10 \xc2\xb5s\" rank:4"), "4 cudaLaunchKernel\n");
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
  EXPECT_EQ(Find("dur>1e300s"), "dur>1e300s: write a duration with its unit, dur>1ms");
  EXPECT_EQ(Find("\"\" \"unclosed"), "");
  EXPECT_EQ(Find("dur>nans"), "dur>nans: write a duration with its unit, dur>1ms");
}

// Ranges "f" of 1 ns on one thread, one behind the other.
Trace ManyRanges(int64_t count) {
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  const StringId name = builder.Intern("f");
  for (int64_t i = 0; i < count; ++i) {
    builder.AddRange({.begin = {i}, .end = {i + 1}, .name = name, .track = thread},
                     RangeKind::kUserAnnotation);
  }
  return std::move(builder).Build();
}

TEST(Search, EndsWhenItIsCancelled) {
  const Trace trace = ManyRanges(50'000);
  const RankAnalysis analysis;
  const Lines lines({{&trace, &analysis}});
  const std::atomic<bool> cancel = true;
  EXPECT_FALSE(RunUnlessCancelled(&cancel, [&] {
    Search(lines, ParseQuery("f").value());
    ADD_FAILURE() << "went on to the end";
  }));
}

TEST(Search, KeepsTheFirstOfTooMany) {
  const Trace trace = ManyRanges(static_cast<int64_t>(kMostHits) + 5);
  const RankAnalysis analysis;
  const Lines lines({{&trace, &analysis}});
  const Hits hits = Search(lines, ParseQuery("f").value());
  EXPECT_EQ(hits.total, kMostHits + 5);
  EXPECT_EQ(hits.events.size(), kMostHits);
}

TEST(Search, PixelsWithHitsAreThoseOfEachHit) {
  Random random(7);
  for (int round = 0; round < 100; ++round) {
    const Trace trace = BuildTrace(DrawTrace(static_cast<uint64_t>(round), {}));
    const RankAnalysis analysis;
    const Lines lines({{&trace, &analysis}});
    const Hits hits = Search(lines, ParseQuery("dur>=0ns name:a").value());
    const int64_t length = std::max<int64_t>(lines.extent().Length().ns / random.Between(1, 9), 1);
    const TraceTime begin = lines.extent().begin + Duration{random.Between(0, length)};
    const auto width = static_cast<int32_t>(random.Between(1, 300));
    const Scale scale = Scale::Of({begin, begin + Duration{length}}, width);
    std::vector<int32_t> expected;
    const auto [first, last] = HitsWithin(lines, hits, scale.view);
    for (size_t i = 0; i < hits.events.size(); ++i) {
      const TraceTime at = lines.TimeOf(hits.events[i]).begin;
      EXPECT_EQ(scale.view.Contains(at), i >= first && i < last);
      if (!scale.view.Contains(at)) continue;
      const auto pixel = static_cast<int32_t>(scale.PixelOf(at));
      if (expected.empty() || expected.back() != pixel) expected.push_back(pixel);
    }
    EXPECT_EQ(HitPixels(lines, hits, scale), expected) << "round " << round;
  }
}

TEST_F(SearchTest, TellsHitsAmongEvents) {
  for (const char* text : {"aten", "nccl dur>1ms", "rank:5", "name:e dur<1ms rank:4", "nothing"}) {
    const Hits hits = Search(*lines_, ParseQuery(text).value());
    size_t found = 0;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      for (const Table table : {Table::kRanges, Table::kApi, Table::kDeviceOps}) {
        for (uint32_t row = 0; row < ColumnsOf(traces_[rank], table)->size(); ++row) {
          const EventRef event{rank, table, Row{row}};
          const std::optional<size_t> at = FindHit(*lines_, hits, event);
          EXPECT_EQ(hits.Contain(*lines_, event), at.has_value()) << text;
          EXPECT_TRUE(!at || hits.events[*at] == event);
          found += at.has_value();
        }
      }
    }
    EXPECT_EQ(found, hits.total) << text;
    EXPECT_FALSE(hits.Contain(*lines_, {0, Table::kIdle, Row{0}}));
    EXPECT_FALSE(hits.Contain(*lines_, {7, Table::kRanges, Row{0}}));
  }
}

TEST_F(SearchTest, CountsWhatItFoundSoFar) {
  std::atomic<size_t> found = 0;
  const Hits hits = Search(*lines_, ParseQuery("name:e").value(), &found);
  EXPECT_EQ(found, hits.total);
  EXPECT_GT(found, 0u);
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

// Whatever table a trace gets: its events are seen, found, and told about.
TEST(EveryTableOfEvents, HasALineAHitATitleAndItsColumnsAsFacts) {
  const Trace trace = TraceWithEveryTable();
  const RankAnalysis analysis;
  const Lines lines({{&trace, &analysis}});
  ForEachEventTable(trace, [&]<class T>(Table which, const T& rows) {
    SCOPED_TRACE(T::kTitle);
    const EventRef event{0, which, Row{0}};
    const uint32_t line = lines.LineOf(event);
    ASSERT_NE(line, kNoLine);
    size_t shown = 0;
    VisitEvents(lines, lines.lines()[line],
                [&](const Interval&, Table table, uint32_t) { shown += table == which ? 1 : 0; });
    EXPECT_EQ(shown, 1u);
    Query query;
    query.names.push_back(std::string(T::kTitle));
    EXPECT_TRUE(FindHit(lines, Search(lines, query), event).has_value());
    if constexpr (DescribedTable<T>) {
      std::vector<std::string> labels;
      for (const Fact& fact : FactsOf(trace, which, Row{0})) labels.push_back(fact.label);
      // These rows lack a category; a stack is shown by itself.
      std::vector<std::string> names;
      ForEachNamedColumn(rows, [&]<class C>(std::string_view name, const std::vector<C>&) {
        if constexpr (!std::is_same_v<C, StringId> && !std::is_same_v<C, StackId>) {
          names.emplace_back(name);
        }
      });
      EXPECT_EQ(labels, names);
    }
    if constexpr (requires { rows.stack; } && !std::is_same_v<T, RangeTable>) {
      ASSERT_EQ(StackOf(trace, which, Row{0}).size(), 1u);
      EXPECT_TRUE(StackOf(trace, which, Row{0})[0].is_users);
    }
  });
}

}  // namespace
}  // namespace trainprof
