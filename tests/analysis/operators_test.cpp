// Own times of operators and modules: an example, and random nestings beside a twin that looks at each
// nanosecond.
#include "analysis/account/operators.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

struct Range {
  int64_t begin;
  int64_t end;
  std::string name;
  bool is_operator = true;
};

Trace TraceOf(const std::vector<Range>& ranges, const char* cost = "500") {
  TraceBuilder builder;
  builder.trace().source = SourceKind::kRecording;
  if (cost != nullptr) builder.trace().environment.emplace_back("ops.cost_ns", cost);
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  for (const Range& range : ranges) {
    builder.AddRange({.begin = TraceTime{range.begin},
                      .end = TraceTime{range.end},
                      .name = builder.Intern(range.name),
                      .track = thread},
                     range.is_operator ? RangeKind::kCpuOp : RangeKind::kUserAnnotation);
  }
  return std::move(builder).Build();
}

Steps Window(int64_t begin, int64_t end) {
  Steps steps;
  steps.window = IntervalSet::Union({{TraceTime{begin}, TraceTime{end}}});
  return steps;
}

std::map<std::string, std::vector<int64_t>> ByName(const std::vector<OperatorTime>& times) {
  std::map<std::string, std::vector<int64_t>> rows;
  for (const OperatorTime& time : times) {
    rows[time.name] = {time.count, time.own.ns, time.whole.ns};
  }
  return rows;
}

TEST(Operators, OwnTimeIsWithoutWhatWasCalled) {
  const std::vector<Range> ranges = {
      {0, 100, "step", false},  {10, 60, "nn.Module: Model"}, {20, 50, "nn.Module: head (Linear)"},
      {22, 48, "aten::linear"}, {25, 45, "aten::addmm"},      {51, 55, "aten::add"},
      {90, 200, "aten::add"},  // half of it is in no step
  };
  const Operators found = OperatorsOf(TraceOf(ranges), Window(0, 100));
  using Rows = std::map<std::string, std::vector<int64_t>>;
  EXPECT_EQ(ByName(found.operators), (Rows{{"aten::linear", {1, 6, 26}},
                                           {"aten::addmm", {1, 20, 20}},
                                           {"aten::add", {2, 14, 14}}}));
  EXPECT_EQ(ByName(found.modules),
            (Rows{{"nn.Module: Model", {1, 20, 50}}, {"nn.Module: head (Linear)", {1, 30, 30}}}));
  EXPECT_EQ(found.operators.front().name, "aten::addmm");
  EXPECT_EQ(found.recorded, 6);
  EXPECT_EQ(found.recording.ns, 3000);
}

TEST(Operators, OfOtherTracesThereAreNone) {
  EXPECT_EQ(OperatorsOf(TraceOf({{0, 9, "aten::add"}}, nullptr), Window(0, 9)), Operators());
  EXPECT_EQ(OperatorsOf(TraceOf({{20, 29, "aten::add"}}), Window(0, 9)).operators.size(), 0u);
}

TEST(Operators, AgreeWithATwinAtEachNanosecond) {
  std::mt19937 random(7);
  const auto below = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<Range> ranges;
    // Nested at random: each range lies in one that is still open, or behind it.
    std::vector<int64_t> ends = {200};
    for (int64_t at = 0; at < 200; at += 1 + below(4)) {
      while (ends.size() > 1 && ends.back() <= at) ends.pop_back();
      if (below(2) == 0) continue;
      const int64_t end = std::min(ends.back(), at + 1 + below(60));
      const bool is_module = below(3) == 0;
      ranges.push_back(
          {at, end, (is_module ? "nn.Module: " : "op") + std::to_string(below(4)), below(5) != 0});
      ends.push_back(end);
    }
    const int64_t from = below(100);
    const int64_t to = from + 1 + below(100);
    const Operators found = OperatorsOf(TraceOf(ranges), Window(from, to));
    std::map<std::string, int64_t> own;
    for (int64_t ns = from; ns < to; ++ns) {
      // The innermost of each kind; ranges stand in the order in which they were opened.
      const Range* innermost[2] = {};
      for (const Range& range : ranges) {
        if (!range.is_operator || ns < range.begin || ns >= range.end) continue;
        innermost[range.name.starts_with("nn.Module: ") ? 1 : 0] = &range;
      }
      for (const Range* const range : innermost) {
        if (range != nullptr) ++own[range->name];
      }
    }
    std::map<std::string, int64_t> got;
    for (const auto* times : {&found.operators, &found.modules}) {
      for (const OperatorTime& time : *times) {
        if (time.own.ns != 0) got[time.name] = time.own.ns;
      }
    }
    ASSERT_EQ(got, own) << "round " << round;
  }
}

}  // namespace
}  // namespace trainprof
