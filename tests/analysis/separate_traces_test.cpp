// Which traces of a folder are ranks: by their own word or their file's name, never by a count.
#include "analysis/job/separate_traces.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

using Files = std::vector<std::filesystem::path>;
using RankOfFile = std::map<std::filesystem::path, int64_t>;

Trace Of(std::optional<int64_t> rank) {
  Trace trace;
  trace.rank_known = rank.has_value();
  trace.rank = rank.value_or(0);
  return trace;
}

struct Case {
  Files files;
  std::vector<std::optional<int64_t>> said;  // by the traces themselves
};

// The ranks that are passed on, or the question.
Result<std::vector<int64_t>> Passed(const Case& each) {
  std::vector<int64_t> ranks;
  RankGate gate("traces", each.files, [&](Trace trace) -> Result<void> {
    ranks.push_back(trace.rank);
    return {};
  });
  for (size_t i = 0; i < each.files.size(); ++i) {
    if (Result<void> passed = gate.Pass(each.files[i], Of(each.said[i])); !passed.ok()) {
      return Error{passed.error()};
    }
  }
  if (Result<void> finished = gate.Finish(); !finished.ok()) return Error{finished.error()};
  return ranks;
}

TEST(SeparateTraces, NamesThatSayRank) {
  const std::pair<const char*, int64_t> names[] = {{"rank3.json", 3},
                                                   {"rank_3.pt.trace.json", 3},
                                                   {"Rank-3.json", 3},
                                                   {"trace-rank12.json.gz", 12},
                                                   {"step5.rank=0.json", 0},
                                                   {"run1_rank00007.json", 7},
                                                   {"rank2of8.json", -1},
                                                   {"frank3.json", -1},
                                                   {"ranks3.json", -1},
                                                   {"local_rank3.json", -1},
                                                   {"rank3_rank4.json", -1},
                                                   {"rank3_rank3.json", 3},
                                                   {"rank_20261120.json", -1},
                                                   {"host_4711.1795218811844.pt.trace.json", -1},
                                                   {"rank.json", -1},
                                                   {"r3.json", -1},
                                                   {"3.json", -1}};
  for (const auto& [name, rank] : names) {
    const RankOfFile ranks = RanksOfNames(Files{name});
    EXPECT_EQ(ranks, rank < 0 ? RankOfFile{} : RankOfFile({{name, rank}})) << name;
  }
}

TEST(SeparateTraces, WorkersAreRanksWhereTheyCountFromZero) {
  EXPECT_EQ(RanksOfNames(Files{"worker1.json", "worker0.json"}),
            RankOfFile({{"worker0.json", 0}, {"worker1.json", 1}}));
  EXPECT_EQ(RanksOfNames(Files{"worker0.json", "worker4.json"}), RankOfFile{});
  EXPECT_EQ(RanksOfNames(Files{"worker0.1.json", "worker0.2.json"}), RankOfFile{});
  EXPECT_EQ(RanksOfNames(Files{"workers0.json", "workers1.json"}), RankOfFile{});
  EXPECT_EQ(RanksOfNames(Files{"worker0.json", "other.json"}), RankOfFile{});
}

TEST(SeparateTraces, RanksOfOneJobPass) {
  const auto by_word = Passed({{"a.json", "b.json", "c.json"}, {2, 0, 5}});
  ASSERT_TRUE(by_word.ok());
  EXPECT_EQ(by_word.value(), (std::vector<int64_t>{2, 0, 5}));
  const auto by_name = Passed({{"rank1.json", "rank3.json"}, {{}, {}}});
  ASSERT_TRUE(by_name.ok());
  EXPECT_EQ(by_name.value(), (std::vector<int64_t>{1, 3}));
  // What a trace says itself counts more than its name.
  const auto both = Passed({{"rank1.json", "rank0.json"}, {0, 1}});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both.value(), (std::vector<int64_t>{0, 1}));
  const auto alone = Passed({{"a.json"}, {{}}});
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone.value(), std::vector<int64_t>{0});
}

TEST(SeparateTraces, OthersAreListedAndTheUserIsAsked) {
  const Case cases[] = {
      {{"host_1.10.pt.trace.json", "host_1.20.pt.trace.json"}, {{}, {}}},  // repeat=2
      {{"rank0.1.json", "rank0.2.json"}, {{}, {}}},
      {{"a.json", "b.json"}, {0, 0}},
      {{"rank0.json", "rank1.json", "baseline.json"}, {{}, {}, {}}},
      {{"baseline.json", "rank1.json"}, {{}, {}}},
  };
  for (const Case& each : cases) {
    const auto passed = Passed(each);
    ASSERT_FALSE(passed.ok());
    EXPECT_TRUE(AsksForOneTrace(passed.error()));
    for (const auto& file : each.files) {
      EXPECT_NE(passed.error().find(file.string()), std::string::npos) << passed.error();
    }
  }
  EXPECT_FALSE(AsksForOneTrace("a.json: no such file or folder"));
}

}  // namespace
}  // namespace trainprof
