// Several ranks in one file: nothing of two ranks meets, and each comes back as it was.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/formats/perfetto_rules.h"
#include "tests/formats/random_trace.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_text.h"
#include "trace/build/trace_builder.h"
#include "trace/formats/chrome/split_ranks.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

using Json = nlohmann::json;

struct Merged {
  std::string text;
  MergedRanks result;
};

Merged Merge(const std::vector<Trace>& traces) {
  const TemporaryFile out("merged.json");
  const VisitRanks ranks = [&](const VisitRank& visit) -> Result<void> {
    for (const Trace& trace : traces) {
      Result<void> visited = visit(trace);
      if (!visited.ok()) return visited;
    }
    return {};
  };
  const Result<MergedRanks> done = ExportMerged(ranks, out.path());
  EXPECT_TRUE(done.ok()) << done.error();
  return {ReadWhole(out.path()), done.ok() ? done.value() : MergedRanks{}};
}

std::vector<Trace> Split(const std::string& merged) {
  Result<Trace> trace = ImportText(merged);
  EXPECT_TRUE(trace.ok()) << trace.error();
  if (!trace.ok()) return {};
  EXPECT_EQ(trace.value().quality.CountOf("unparsable_event"), 0);
  EXPECT_EQ(trace.value().quality.CountOf("truncated_input"), 0);
  return SplitRanks(std::move(trace).value());
}

// A file of one rank alone, read again.
Trace Alone(const Trace& trace) {
  const TemporaryFile out("alone.json");
  const Result<void> done = ExportTrace(trace, out.path());
  EXPECT_TRUE(done.ok()) << done.error();
  Result<Trace> again = ImportTrace(out.path());
  EXPECT_TRUE(again.ok()) << again.error();
  return std::move(again).value();
}

// Every rank comes back with equal tables; merging them again gives files that stay the same.
void ExpectRanksComeBack(const std::vector<Trace>& traces) {
  const Merged merged = Merge(traces);
  const std::vector<Trace> split = Split(merged.text);
  ASSERT_EQ(split.size(), traces.size());
  for (size_t i = 0; i < traces.size(); ++i) {
    SCOPED_TRACE(fmt::format("rank {}", i));
    const Trace alone = Alone(traces[i]);
    const std::string first = TraceText(alone);
    const std::string second = TraceText(split[i]);
    ASSERT_TRUE(first == second) << FirstDifference(first, second);
    EXPECT_EQ(split[i].source, alone.source);
    EXPECT_EQ(split[i].base_ns, alone.base_ns);
    EXPECT_EQ(split[i].quality.CountOf("kernel_without_launch"),
              alone.quality.CountOf("kernel_without_launch"));
    EXPECT_EQ(split[i].quality.CountOf("track_of_no_rank"), 0);
  }
  const Merged second = Merge(split);
  const Merged third = Merge(Split(second.text));
  EXPECT_TRUE(second.text == third.text) << FirstDifference(second.text, third.text);
}

TEST(Merge, RanksOfTheCorpusComeBackEqual) {
  std::vector<Trace> traces;
  for (const std::string& path : CorpusFiles()) {
    if (path.find("dlrm_8ranks") == std::string::npos) continue;
    Result<Trace> trace = ImportTrace(path);
    ASSERT_TRUE(trace.ok()) << trace.error();
    traces.push_back(std::move(trace).value());
  }
  if (traces.empty()) GTEST_SKIP() << "no corpus: set TRAINPROF_CORPUS";
  ExpectRanksComeBack(traces);
  const Merged merged = Merge(traces);
  EXPECT_EQ(merged.result.count, 8u);
  EXPECT_TRUE(merged.result.aligned) << merged.result.why_not;
  ExpectPerfettoRules(Json::parse(merged.text));
}

// Files of different jobs, makers and years in pairs: far apart, with and without absolute times.
TEST(Merge, AnyTwoFilesOfTheCorpusComeBackEqual) {
  const std::vector<std::string> files = CorpusFiles();
  if (files.empty()) GTEST_SKIP() << "no corpus: set TRAINPROF_CORPUS";
  // Sanitizers take twenty times as long: a quarter of them is enough there.
  for (size_t i = 0; i + 1 < files.size(); i += testing::kIsSanitized ? 4 : 1) {
    SCOPED_TRACE(files[i] + " " + files[i + 1]);
    std::vector<Trace> traces;
    for (const std::string& path : {files[i], files[i + 1]}) {
      Result<Trace> trace = ImportTrace(path);
      ASSERT_TRUE(trace.ok()) << trace.error();
      traces.push_back(std::move(trace).value());
    }
    ExpectRanksComeBack(traces);
    if (HasFatalFailure()) return;
  }
}

// The importer takes the last integer that can be told from none.
TEST(Merge, AnIdThatIsSaidTwiceComesBack) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    traces.push_back(Imported(R"({"traceEvents":[
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":{"correlation":20,"correlation":-9223372036854775808}},
{"ph":"X","cat":"cuda_sync","name":"s","pid":0,"tid":7,"ts":3,"dur":1,"args":{"cuda_sync_kind":"Event Sync","wait_on_cuda_event_record_corr_id":4,"wait_on_cuda_event_record_corr_id":-9223372036854775808}}]})"));
    EXPECT_EQ(traces.back().device_ops.correlation[0], 20);
    EXPECT_EQ(traces.back().syncs.waited_record[0], 4);
  }
  ExpectRanksComeBack(traces);
}

TEST(Merge, WhereRangesAreOpenedComesBack) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    traces.push_back(Imported(fmt::format(
        R"({{"traceEvents":[
{{"ph":"X","cat":"user_annotation","name":"wait","pid":5,"tid":7,"ts":1,"dur":1,"args":{{"Opened at":"a.py({}): f;a.py(1): g"}}}},
{{"ph":"X","cat":"user_annotation","name":"wait","pid":5,"tid":7,"ts":3,"dur":1}}]}})",
        10 + rank)));
    EXPECT_EQ(traces.back().openings.size(), 1u);
  }
  ExpectRanksComeBack(traces);
}

TEST(Merge, RandomRanksComeBackEqual) {
  for (uint32_t seed = 0; seed < testing::Rounds(200u); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::vector<Trace> traces;
    for (uint32_t rank = 0; rank < 2 + seed % 7; ++rank) {
      traces.push_back(Imported(RandomTraceJson(seed * 8 + rank)));
    }
    ExpectRanksComeBack(traces);
    if (HasFatalFailure()) return;
  }
}

// A rank of two processes on GPU 0, with ids that any rank has.
std::string RankJson(int64_t rank, int64_t begin_us, std::string_view more = "") {
  return fmt::format(
      R"({{"schemaVersion":1,"distributedInfo":{{"backend":"nccl","rank":{0},"world_size":2}},"deviceProperties":[{{"id":0,"name":"GPU of rank {0}"}}],"traceEvents":[
{{"ph":"M","name":"process_name","pid":100,"tid":0,"args":{{"name":"python"}}}},
{{"ph":"M","name":"process_labels","pid":0,"tid":0,"args":{{"labels":"GPU 0"}}}},
{{"ph":"X","cat":"cpu_op","name":"op","pid":100,"tid":1,"ts":{1},"dur":20,"args":{{"External id":5}}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":1,"ts":{2},"dur":5,"args":{{"correlation":7,"External id":5}}}},
{{"ph":"s","cat":"ac2g","name":"ac2g","id":7,"pid":100,"tid":1,"ts":{2}}},
{{"ph":"X","cat":"kernel","name":"kernel of rank {0}","pid":0,"tid":7,"ts":{3},"dur":9,"args":{{"device":0,"stream":7,"correlation":7,"External id":5}}}},
{{"ph":"f","cat":"ac2g","name":"ac2g","id":7,"pid":0,"tid":7,"ts":{3},"bp":"e"}}{4}]}})",
      rank, begin_us, begin_us + 2, begin_us + 10, more);
}

constexpr int64_t kEpochUs = 1'751'410'836'000'000;

std::vector<Trace> TwoRanks(int64_t first_us, int64_t second_us) {
  std::vector<Trace> traces;
  traces.push_back(Imported(RankJson(0, first_us)));
  traces.push_back(Imported(RankJson(1, second_us)));
  return traces;
}

TEST(Merge, NothingOfTwoRanksHasTheSameId) {
  const Json document = Json::parse(Merge(TwoRanks(kEpochUs, kEpochUs + 1)).text);
  ExpectPerfettoRules(document);
  std::map<std::string, std::set<int64_t>> seen;
  std::map<int64_t, std::string> labels;
  for (const Json& event : document["traceEvents"]) {
    seen["pid"].insert(event["pid"].get<int64_t>());
    if (event.contains("id")) seen["id"].insert(event["id"].get<int64_t>());
    for (const char* key : {"correlation", "External id"}) {
      if (event.value("args", Json::object()).contains(key)) {
        seen[key].insert(event["args"][key].get<int64_t>());
      }
    }
    if (event["name"] == "process_labels") labels[event["pid"]] = event["args"]["labels"];
  }
  constexpr int64_t kSecond = int64_t{1} << 40;
  EXPECT_EQ(seen["pid"], (std::set<int64_t>{0, 100, 10'000'000, 10'000'100}));
  EXPECT_EQ(seen["id"], (std::set<int64_t>{7, kSecond + 7}));
  EXPECT_EQ(seen["correlation"], (std::set<int64_t>{7, kSecond + 7}));
  EXPECT_EQ(seen["External id"], (std::set<int64_t>{5, kSecond + 5}));
  EXPECT_EQ(labels[100], "rank 0");
  EXPECT_EQ(labels[10'000'000], "rank 1, GPU 0");
}

TEST(Merge, EachRankKeepsItsMembersAndNames) {
  const Json document = Json::parse(Merge(TwoRanks(kEpochUs, kEpochUs + 1)).text);
  EXPECT_EQ(document["distributedInfo"], Json::parse(R"({"world_size":2})"));
  const Json& ranks = document["trainprofRanks"]["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1]["rank"], 1);
  EXPECT_EQ(ranks[1]["members"]["distributedInfo"]["backend"], "nccl");
  EXPECT_EQ(ranks[1]["members"]["deviceProperties"][0]["name"], "GPU of rank 1");
}

std::map<std::string, double> TimeOfKernels(const std::string& merged) {
  std::map<std::string, double> times;
  const Json document = Json::parse(merged);
  for (const Json& event : document["traceEvents"]) {
    if (event.value("cat", "") == "kernel") times[event["name"]] = event["ts"];
  }
  return times;
}

TEST(Merge, AbsoluteTimesPutRanksOnOneClock) {
  const Merged merged = Merge(TwoRanks(kEpochUs + 40, kEpochUs));
  EXPECT_TRUE(merged.result.aligned);
  const auto times = TimeOfKernels(merged.text);
  EXPECT_EQ(times.at("kernel of rank 0"), 50.0);
  EXPECT_EQ(times.at("kernel of rank 1"), 10.0);
}

TEST(Merge, WithoutACommonClockEachRankStartsAtZero) {
  for (const auto& [first, second] : {std::pair(int64_t{1000}, kEpochUs),
                                      {kEpochUs, 2000},
                                      {kEpochUs, kEpochUs + 3'601'000'000}}) {
    const Merged merged = Merge(TwoRanks(first, second));
    EXPECT_FALSE(merged.result.aligned);
    EXPECT_NE(merged.result.why_not, "");
    const auto times = TimeOfKernels(merged.text);
    EXPECT_EQ(times.at("kernel of rank 0"), 10.0);
    EXPECT_EQ(times.at("kernel of rank 1"), 10.0);
    for (const Trace& trace : Split(merged.text)) {
      EXPECT_EQ(trace.quality.CountOf("ranks_not_aligned"), 1);
    }
    ExpectRanksComeBack(TwoRanks(first, second));
  }
}

// Ids that do not fit beside a slot, texts as ids, events without a pid, pids of all kinds.
TEST(Merge, OddIdsComeBackEqual) {
  constexpr std::string_view kOdd = R"json(,
{"ph":"X","cat":"kernel","name":"odd","pid":0,"tid":7,"ts":1751410836000030,"dur":1,"args":{"stream":7,"correlation":-9223372036854775807,"External id":123456789012345678,"correlation":-5,"wait_on_cuda_event_record_corr_id":-7}},
{"ph":"X","cat":"kernel","name":"none","pid":0,"tid":7,"ts":1751410836000032,"dur":1,"args":{"stream":7,"correlation":-1,"External id":"text"}},
{"ph":"s","cat":"c","name":"pointer","id":"0x7fffdeadbeef","cname":"good","pid":100,"tid":1,"ts":1751410836000003},
{"ph":"f","cat":"c","name":"text","tts":1,"id":"any text","pid":100,"tid":1,"ts":1751410836000004,"args":{"correlation":3}},
{"ph":"t","cat":"c","name":"large","id":140737488355328,"pid":100,"tid":1,"ts":1751410836000004},
{"ph":"b","cat":"c","name":"async","id":5,"pid":100,"tid":1,"ts":1751410836000004,"cname":"x"},
{"ph":"e","cat":"c","name":"async","id":"5","pid":100,"tid":1,"ts":1751410836000005,"args":{"x":1}},
{"ph":"n","name":"no pid","id":"a:b'c","ts":1751410836000005},
{"ph":"?","pid":"Spans","id":6}, {}, { }, {"pid":900,"x":{"pid":100}},
{"ph":"X","cat":"Trace","ts":1751410836000000,"dur":99,"pid":"Spans","tid":"PyTorch Profiler","name":"PyTorch Profiler (0)"},
{"ph":"X","name":"huge pid","pid":9223372036854775807,"tid":-1,"ts":1751410836000000,"dur":9},
{"ph":"X","name":"no pid text","pid":"","tid":1,"ts":1751410836000000,"dur":9},
{"ph":"X","name":"minus one","pid":-1,"tid":1,"ts":1751410836000000,"dur":9})json";
  std::vector<Trace> traces;
  for (int64_t rank = 0; rank < 3; ++rank) {
    traces.push_back(Imported(RankJson(rank, kEpochUs, kOdd)));
  }
  ExpectRanksComeBack(traces);
  // Each flow or asynchronous event has its id once a rank.
  std::multiset<std::string> ids;
  const Json document = Json::parse(Merge(traces).text);
  for (const Json& event : document["traceEvents"]) {
    if (event.contains("id")) ids.insert(event.value("name", "") + event["id"].dump());
  }
  for (const std::string& id : ids) {
    EXPECT_EQ(ids.count(id), id.starts_with("ac2g") ? 2u : 1u) << id;
  }
  EXPECT_EQ(ids.size(), 3u * 9u);
}

// As the collectors make it: the device's row has no process of its own.
TEST(Merge, RecordingsComeBackAsTheirExportsDo) {
  std::vector<Trace> traces;
  for (int64_t rank = 0; rank < 2; ++rank) {
    TraceBuilder b;
    b.trace().source = SourceKind::kRecording;
    b.trace().rank = rank;
    b.trace().rank_known = true;
    b.trace().world_size = 2;
    b.trace().base_ns = kEpochUs * 1000;
    const ProcessId process = b.FindOrAddProcess(4711);
    const TrackId thread = b.FindOrAddThread(process, 4711);
    const TrackId stream = b.FindOrAddStream(process, 0, 7);
    const auto at = [&](int64_t begin, int64_t end, const char* name, TrackId track) {
      return Event{
          .begin = TraceTime{begin}, .end = TraceTime{end}, .name = b.Intern(name), .track = track};
    };
    b.AddRange(at(500 + rank, 900, "step", thread), RangeKind::kUserAnnotation);
    b.AddApi(at(510, 520, "cudaLaunchKernel", thread), ApiKind::kLaunch, 1);
    b.AddDeviceOp(at(550, 800, "gemm", stream), DeviceOpKind::kKernel, CopyDirection::kUnknown, 0,
                  1);
    traces.push_back(std::move(b).Build());
  }
  ExpectRanksComeBack(traces);
  const Merged merged = Merge(traces);
  ExpectPerfettoRules(Json::parse(merged.text), true);
  EXPECT_TRUE(merged.result.aligned);
}

TEST(Merge, AFileOfOneRankIsLeftAsItIs) {
  Trace trace = Imported(RankJson(3, kEpochUs));
  const std::string before = TraceText(trace);
  const std::vector<Trace> split = SplitRanks(std::move(trace));
  ASSERT_EQ(split.size(), 1u);
  EXPECT_EQ(TraceText(split[0]), before);
}

TEST(Merge, ABrokenListOfRanksLeavesTheTraceAsItIs) {
  for (const char* list : {"17", "{}", R"({"ranks":[]})", R"({"ranks":[{"rank":0}]})",
                           R"({"ranks":[{"rank":0,"processes":[[1]]}]})",
                           R"({"ranks":[{"rank":0,"processes":[],"shiftNanoseconds":"x"}]})"}) {
    const std::vector<Trace> split = SplitRanks(Imported(fmt::format(
        R"({{"trainprofRanks":{},"traceEvents":[{{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}}]}})",
        list)));
    ASSERT_EQ(split.size(), 1u) << list;
    EXPECT_EQ(split[0].ranges.size(), 1u) << list;
  }
}

TEST(Merge, WhatBelongsToNoRankIsCounted) {
  const std::vector<Trace> split = Split(
      R"({"trainprofRanks":{"ranks":[{"rank":0,"processes":[[1,1]]}]},"traceEvents":[
{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},{"ph":"X","name":"b","pid":2,"tid":1,"ts":1,"dur":1}]})");
  ASSERT_EQ(split.size(), 1u);
  EXPECT_EQ(split[0].ranges.size(), 1u);
  EXPECT_EQ(split[0].quality.CountOf("track_of_no_rank"), 1);
}

TEST(Merge, RanksThatChangeBetweenTheVisitsAreAnError) {
  std::vector<Trace> traces = TwoRanks(kEpochUs, kEpochUs);
  const TemporaryFile out("merged.json");
  for (size_t second_count : {1u, 3u}) {
    size_t visits = 0;
    const VisitRanks ranks = [&](const VisitRank& visit) -> Result<void> {
      const size_t count = visits++ == 0 ? 2 : second_count;
      for (size_t i = 0; i < count; ++i) {
        Result<void> visited = visit(traces[i % 2]);
        if (!visited.ok()) return visited;
      }
      return {};
    };
    const Result<MergedRanks> done = ExportMerged(ranks, out.path());
    ASSERT_FALSE(done.ok());
    EXPECT_NE(done.error().find("changed while it was read"), std::string::npos) << done.error();
    EXPECT_FALSE(std::filesystem::exists(out.path()));
  }
}

}  // namespace
}  // namespace trainprof
