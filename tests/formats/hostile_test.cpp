// Hostile input never crashes or hangs: mutated, truncated, deeply nested and absurd files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "tests/support/trace_text.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

constexpr std::string_view kSeed =
    R"json({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "G"}],
"distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": [
{"ph":"M","name":"process_name","pid":5,"tid":0,"args":{"name":"python"}},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":5,"tid":"5","ts":10.25,"dur":9,"args":{"External id":1,"Input Dims":[[1, 2], []]}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":11,"dur":2,"args":{"correlation":3}},
{"ph":"s","cat":"ac2g","name":"ac2g","id":3,"pid":5,"tid":5,"ts":11},
{"ph":"X","cat":"kernel","name":"k\u00e9","pid":0,"tid":7,"ts":14.5e0,"dur":3,"args":{"device":0,"stream":7,"correlation":3,"g":0.1}},
{"ph":"f","cat":"ac2g","name":"ac2g","id":3,"pid":0,"tid":7,"ts":14.5,"bp":"e"},
{"ph":"B","name":"b","pid":5,"tid":5,"ts":15},{"ph":"E","pid":5,"tid":5,"ts":16},
{"ph":"b","cat":"c","name":"async","id":"0x1f","pid":"Spans","tid":"x","ts":5}],
"traceName": "t.json", "baseTimeNanoseconds": 1751410836000000000})json";

// What comes in must come out of an export again, whatever it was.
void ImportAndExport(const std::string& text) {
  const Result<Trace> trace = ImportText(text);
  if (!trace.ok()) {
    EXPECT_FALSE(trace.error().empty());
    return;
  }
  const TemporaryFile out("out.json");
  ASSERT_TRUE(ExportTrace(trace.value(), out.path()).ok());
  const Result<Trace> again = ImportTrace(out.path());
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(again.value().quality.CountOf("unparsable_event"), 0) << text;
  EXPECT_EQ(again.value().quality.CountOf("truncated_input"), 0) << text;
}

TEST(HostileInput, MutatedTracesNeverCrash) {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr std::string_view kTokens[] = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"",
                                          "\\",
                                          "\\u",
                                          "1e999",
                                          "-",
                                          "NaN",
                                          "null",
                                          "\n",
                                          std::string_view("\0", 1),
                                          "\xFF",
                                          "9223372036854775807",
                                          "4000000000000000",
                                          "0",
                                          "-1"};
  for (int i = 0; i < 1500; ++i) {
    std::string text(kSeed);
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(text.size());
      const std::string_view token = kTokens[below(std::size(kTokens))];
      switch (below(4)) {
        case 0:
          text.erase(at, below(20));
          break;
        case 1:
          text.insert(at, token);
          break;
        case 2:
          text.replace(at, std::min(token.size(), text.size() - at), token);
          break;
        default:
          text[at] = static_cast<char>(random());
      }
    }
    SCOPED_TRACE(i);
    ImportAndExport(text);
  }
}

TEST(HostileInput, EveryTruncationKeepsTheEventsBefore) {
  size_t most = 0;
  for (size_t size = 1; size <= kSeed.size(); ++size) {
    const Result<Trace> trace = ImportText(kSeed.substr(0, size));
    if (!trace.ok()) continue;
    const size_t events = trace.value().ranges.size() + trace.value().api.size();
    EXPECT_GE(events, most);
    most = std::max(most, events);
  }
  EXPECT_EQ(most, 3u);
}

TEST(HostileInput, DeepNestingIsAnErrorOrACount) {
  const std::string deep(100'000, '[');
  const Result<Trace> member = ImportText("{\"x\": " + deep);
  EXPECT_FALSE(member.ok());
  const Result<Trace> event = ImportText(
      "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"args\":{\"a\":" + deep + "}}]}");
  ASSERT_TRUE(event.ok()) << event.error();
  EXPECT_EQ(event.value().quality.CountOf("unparsable_event"), 1);
}

// Found by fuzzing: the letter of a phase is no quote, and no half of a character.
TEST(HostileInput, APhaseIsOnePlainLetter) {
  for (const char* text : {R"([{"ph":"""}])", "[{\"ph\":\"\xFF\"}]", "[{\"ph\":\"\xC3\xA9\"}]"}) {
    SCOPED_TRACE(text);
    ImportAndExport(text);
  }
}

TEST(HostileInput, FarApartTimesDoNotOverflow) {
  ImportAndExport(
      R"([{"ph":"X","ts":-3999999999999999,"dur":1},{"ph":"X","ts":3999999999999999,"dur":
3999999999999999},{"ph":"X","ts":1,"dur":-3999999999999999},{"ph":"i","ts":-3999999999999999}])");
  ImportAndExport(
      R"({"baseTimeNanoseconds": 99999999999999999999, "traceEvents":[{"ph":"X","ts":1,"dur":1}]})");
}

TEST(HostileInput, BrokenEventsCostNoMoreThanTheirLength) {
  std::string text = "[";
  for (int i = 0; i < 200'000; ++i) text += "{\"ph\":[{\"ph\" 1,";
  const auto start = std::chrono::steady_clock::now();
  const Result<Trace> trace = ImportText(text);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
  ASSERT_TRUE(trace.ok()) << trace.error();
  EXPECT_GT(trace.value().quality.CountOf("unparsable_event"), 0);
  EXPECT_LT(seconds.count(), 20.0);  // quadratic would take minutes
}

TEST(HostileInput, ManyThreadsAndOverlapsAreBounded) {
  std::string text = "[";
  for (int i = 0; i < 20'000; ++i) {
    text += fmt::format(R"({}{{"ph":"X","name":"a","pid":"p{}","tid":"t{}","ts":{},"dur":100000}})",
                        i == 0 ? "" : ",", i, i, i);
  }
  for (int i = 0; i < 20'000; ++i) {
    text += fmt::format(R"(,{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{},"dur":{}}})", i, 100000);
  }
  const Result<Trace> trace = ImportText(text + "]");
  ASSERT_TRUE(trace.ok()) << trace.error();
  EXPECT_EQ(trace.value().processes.size(), 20'001u);
  const TemporaryFile out("out.json");
  EXPECT_TRUE(ExportTrace(trace.value(), out.path()).ok());
}

}  // namespace
}  // namespace trainprof
