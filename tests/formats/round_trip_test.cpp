// Import, export, import again: equal tables, for every corpus file and for random traces.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/formats/random_trace.h"
#include "tests/support/every_table.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_text.h"
#include "trace/formats/chrome/split_ranks.h"
#include "trace/formats/chrome/stack_text.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

void ExpectRoundTrip(const Trace& trace, const char* name) {
  const TemporaryFile out(name);
  const Result<void> exported = ExportTrace(trace, out.path());
  ASSERT_TRUE(exported.ok()) << exported.error();
  const Result<Trace> again = ImportTrace(out.path());
  ASSERT_TRUE(again.ok()) << again.error();
  const std::string first = TraceText(trace);
  const std::string second = TraceText(again.value());
  ASSERT_TRUE(first == second) << FirstDifference(first, second);
  EXPECT_EQ(again.value().source, trace.source);
  EXPECT_EQ(again.value().quality.CountOf("truncated_input"), 0);
  EXPECT_EQ(again.value().quality.CountOf("unparsable_event"), 0);
}

TEST(RoundTrip, CorpusTracesComeBackEqual) {
  const std::vector<std::string> files = CorpusFiles();
  if (files.empty()) GTEST_SKIP() << "no corpus: set TRAINPROF_CORPUS";
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    const Result<Trace> trace = ImportTrace(path);
    ASSERT_TRUE(trace.ok()) << trace.error();
    ExpectRoundTrip(trace.value(), "out.json");
  }
}

TEST(RoundTrip, GzipComesBackEqual) {
  const Result<Trace> trace = ImportText(
      R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":1.5,"dur":2,"pid":0,"tid":7}]})");
  ASSERT_TRUE(trace.ok()) << trace.error();
  ExpectRoundTrip(trace.value(), "out.json.gz");
}

// Found by fuzzing: such an event looked like one of ours, whose time stands elsewhere.
TEST(RoundTrip, EventsWithoutATimeComeBackEqual) {
  for (const char* event : {R"({"ts":null,"a":1})", R"({"ts":null})", R"({"ts":N/A,"a":1})",
                            "{\"ts\":null\xff,\"a\":1}", "{\"a\":b\xff}",
                            "{\"ph\":\"X\",\"ts\":1,\"args\":{\"x\":b\xff}}"}) {
    SCOPED_TRACE(event);
    const Result<Trace> trace =
        ImportText(fmt::format(R"([{{"ph":"X","ts":1,"dur":2}},{}])", event));
    ASSERT_TRUE(trace.ok()) << trace.error();
    ExpectRoundTrip(trace.value(), "out.json");
  }
}

// What the named columns of the first row say, and its stack.
template <class T>
std::vector<std::string> Columns(const Trace& trace, const T& table) {
  std::vector<std::string> said;
  if constexpr (DescribedTable<T>) {
    ForEachNamedColumn(table, [&]<class C>(std::string_view name, const std::vector<C>& column) {
      if constexpr (std::is_same_v<C, int64_t>)
        said.push_back(fmt::format("{} {}", name, column[0]));
      if constexpr (NamedValue<C>) said.push_back(fmt::format("{} {}", name, NameOf(column[0])));
    });
  }
  if constexpr (requires { table.stack; }) said.push_back(StackSpelled(trace, table.stack[0]));
  return said;
}

// `after` is of an import.
template <class T>
void ExpectTheSameRow(const Trace& trace_before, const T& before, const Trace& trace,
                      const T& after) {
  SCOPED_TRACE(T::kTitle);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(trace.Text(after.name[0]), T::kTitle);
  EXPECT_EQ(after.end(0) - after.begin[0], before.end(0) - before.begin[0]);
  EXPECT_EQ(Columns(trace, after), Columns(trace_before, before));
}

TEST(RoundTrip, ARowOfEachTableComesBack) {
  const Trace trace = TraceWithEveryTable();
  const TemporaryFile out("out.json");
  ASSERT_TRUE(ExportTrace(trace, out.path()).ok());
  const Result<Trace> again = ImportTrace(out.path());
  ASSERT_TRUE(again.ok()) << again.error();
  ForEachTable(trace, [&]<class T>(Table, const T& table) {
    ExpectTheSameRow(trace, table, again.value(), std::get<const T&>(Trace::Tables(again.value())));
  });
  ExpectRoundTrip(again.value(), "again.json");
}

TEST(RoundTrip, ARowOfEachTableComesBackFromAFileOfSeveralRanks) {
  Trace ranks[2] = {TraceWithEveryTable(), TraceWithEveryTable()};
  ranks[1].rank = 1;
  const VisitRanks visit = [&](const VisitRank& pass) -> Result<void> {
    for (const Trace& rank : ranks) {
      if (Result<void> done = pass(rank); !done.ok()) return done;
    }
    return {};
  };
  const TemporaryFile out("out.json");
  ASSERT_TRUE(ExportMerged(visit, out.path()).ok());
  Result<Trace> merged = ImportTrace(out.path());
  ASSERT_TRUE(merged.ok()) << merged.error();
  const std::vector<Trace> split = SplitRanks(std::move(merged).value());
  ASSERT_EQ(split.size(), 2u);
  for (size_t r = 0; r < 2; ++r) {
    ForEachTable(ranks[r], [&]<class T>(Table, const T& table) {
      ExpectTheSameRow(ranks[r], table, split[r], std::get<const T&>(Trace::Tables(split[r])));
    });
  }
}

// The least number stands for none. An end that says it left the begin's value, and the whole event
// that was exported lost it.
TEST(RoundTrip, AnArgumentThatIsTheLeastNumberHidesNoOther) {
  const Result<Trace> trace = ImportText(
      R"([{"ph":"B","cat":"gpu_memset","name":"m","ts":1,"pid":0,"tid":7,"args":{"bytes":4}},
          {"ph":"E","ts":3,"pid":0,"tid":7,"args":{"bytes":-9223372036854775808}}])");
  ASSERT_TRUE(trace.ok()) << trace.error();
  EXPECT_EQ(trace.value().device_ops.bytes[0], 4);
  ExpectRoundTrip(trace.value(), "out.json");
}

TEST(RoundTrip, RandomTracesComeBackEqual) {
  for (uint32_t seed = 0; seed < testing::Rounds(1500u); ++seed) {
    const std::string json = RandomTraceJson(seed);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, json));
    const Result<Trace> trace = ImportText(json);
    ASSERT_TRUE(trace.ok()) << trace.error();
    ASSERT_EQ(trace.value().quality.CountOf("unparsable_event"), 0);
    ExpectRoundTrip(trace.value(), "out.json");
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace trainprof
