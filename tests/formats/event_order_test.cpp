// The order in which a file lists its events says nothing: any order gives the same trace.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/trace_text.h"

namespace trainprof {
namespace {

using OrderedJson = nlohmann::ordered_json;

Trace ImportedInOrder(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) text += (text.empty() ? "" : ",\n") + event;
  return Imported("{\"traceEvents\": [" + text + "]}");
}

std::string NameOfParent(const Trace& trace, std::string_view name) {
  for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
    if (trace.Text(trace.ranges.name[row]) != name) continue;
    const Row parent = trace.ranges.parent[row];
    return parent == kNoRow ? "none" : std::string(trace.Text(trace.ranges.name[Index(parent)]));
  }
  return "no such range";
}

// torch numbers operators as they are called; times of whole microseconds cannot tell which is
// inside.
TEST(EventOrder, OfRangesThatBeginAndEndTogetherTheOneCalledFirstEncloses) {
  const std::string outer =
      R"({"ph":"X","cat":"cpu_op","name":"aten::item","pid":1,"tid":1,"ts":5,"dur":2,"args":{"External id":9}})";
  const std::string inner =
      R"({"ph":"X","cat":"cpu_op","name":"aten::_local_scalar_dense","pid":1,"tid":1,"ts":5,"dur":2,"args":{"External id":10}})";
  for (const Trace& trace : {ImportedInOrder({outer, inner}), ImportedInOrder({inner, outer})}) {
    EXPECT_EQ(NameOfParent(trace, "aten::item"), "none");
    EXPECT_EQ(NameOfParent(trace, "aten::_local_scalar_dense"), "aten::item");
  }
}

TEST(EventOrder, WithoutANumberTheirWordsDecide) {
  const std::string a = R"({"ph":"X","cat":"x","name":"a","pid":1,"tid":1,"ts":5,"dur":2})";
  const std::string b = R"({"ph":"X","cat":"x","name":"b","pid":1,"tid":1,"ts":5,"dur":2})";
  EXPECT_EQ(NameOfParent(ImportedInOrder({a, b}), "b"), "a");
  EXPECT_EQ(NameOfParent(ImportedInOrder({b, a}), "b"), "a");
}

TEST(EventOrder, DevicesAndTracksAreListedByTheirNumbers) {
  const Trace trace = ImportedInOrder(
      {R"({"ph":"X","cat":"kernel","name":"k","pid":1,"tid":9,"ts":5,"dur":2,"args":{"device":1,"stream":9}})",
       R"({"ph":"X","cat":"kernel","name":"k","pid":1,"tid":7,"ts":5,"dur":2,"args":{"device":1,"stream":7}})",
       R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":2,"args":{"device":0,"stream":7}})",
       R"({"ph":"X","cat":"cpu_op","name":"x","pid":300,"tid":3,"ts":5,"dur":2})",
       R"({"ph":"X","cat":"cpu_op","name":"x","pid":300,"tid":2,"ts":5,"dur":2})"});
  ASSERT_EQ(trace.devices.size(), 2u);
  EXPECT_EQ(trace.devices[0].id, 0);
  EXPECT_EQ(trace.devices[1].id, 1);
  std::vector<int64_t> tids;
  for (const Track& track : trace.tracks) tids.push_back(track.tid);
  EXPECT_EQ(tids, (std::vector<int64_t>{7, 7, 9, 2, 3}));
}

// Of metadata the last counts, so that it stays where it is.
TEST(EventOrder, ShuffledCorpusTracesAreEqual) {
  const std::vector<std::string> files = CorpusFiles();
  if (files.empty()) GTEST_SKIP() << "no corpus: set TRAINPROF_CORPUS";
  constexpr uintmax_t kSmall = 100'000;
  constexpr int kShuffles = 8;
  int shuffled_files = 0;
  for (const std::string& path : files) {
    if (std::filesystem::file_size(path) > kSmall) continue;
    SCOPED_TRACE(path);
    const std::string text = Decompressed(path);
    OrderedJson document = OrderedJson::parse(text, nullptr, false);
    if (document.is_discarded()) continue;  // bare words: not strict JSON
    ++shuffled_files;
    const Result<Trace> first = ImportText(document.dump());
    ASSERT_TRUE(first.ok()) << first.error();
    const std::string expected = TraceText(first.value());
    auto& events = document["traceEvents"].get_ref<OrderedJson::array_t&>();
    const auto rest = std::stable_partition(
        events.begin(), events.end(),
        [](const OrderedJson& event) { return event.value("ph", "") == "M"; });
    for (int seed = 0; seed < kShuffles; ++seed) {
      std::shuffle(rest, events.end(), std::mt19937(static_cast<unsigned>(seed)));
      const Result<Trace> shuffled = ImportText(document.dump());
      ASSERT_TRUE(shuffled.ok()) << shuffled.error();
      const std::string got = TraceText(shuffled.value());
      ASSERT_TRUE(got == expected) << "seed " << seed << "\n" << FirstDifference(expected, got);
    }
  }
  EXPECT_GT(shuffled_files, 0);
}

}  // namespace
}  // namespace trainprof
