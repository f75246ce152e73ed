// A rank's digest is all that a job needs of it: read back from JSON it is the same, in whatever
// order ranks come the job is the same, and of damaged text comes an error.
#include "analysis/job/digest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "analysis/job/coverage.h"
#include "analysis/job/job.h"
#include "analysis/job/verdict.h"
#include "tests/support/random_trace.h"
#include "tests/support/trace_script.h"
#include "tests/support/trace_text.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

RankDigest Digest(const Trace& trace, int64_t place = 0) {
  return DigestOf(RankModel(trace), place);
}

RankDigest ReadBack(const RankDigest& digest) {
  const Result<RankDigest> read = DigestFromJson(DigestToJson(digest), "digest.json");
  EXPECT_TRUE(read.ok()) << read.error();
  return read.ok() ? read.value() : RankDigest{};
}

JobAnalysis JobOfDigests(std::vector<RankDigest> digests, JobFacts facts = {}) {
  JobAnalyzer analyzer;
  for (RankDigest& digest : digests) analyzer.Add(std::move(digest));
  JobSource source;
  source.path = "job";
  return std::move(analyzer).Finish(source, std::move(facts));
}

void ExpectSums(const RankDigest& digest) {
  const RankAnalysis& rank = digest.analysis;
  ASSERT_EQ(digest.host_steps.size(), rank.steps.count());
  ASSERT_EQ(digest.devices.size(), rank.devices.size());
  for (size_t d = 0; d < digest.devices.size(); ++d) {
    ASSERT_EQ(digest.devices[d].steps.size(), rank.device_steps.count());
    for (size_t c = 0; c < kDeviceClasses && rank.device_steps.count() > 0; ++c) {
      Duration sum;
      for (const DeviceSplit& step : digest.devices[d].steps) sum += step[c];
      EXPECT_EQ(sum, rank.devices[d].account[c].total) << rank.devices[d].account[c].name;
    }
  }
}

TEST(Digest, OfRandomTracesIsReadBackEqual) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Trace trace = BuildTrace(DrawTrace(seed, {.most_events = 400}));
    trace.rank = static_cast<int64_t>(seed);
    trace.base_ns = INT64_MAX - static_cast<int64_t>(seed);
    const RankDigest digest = Digest(trace, 3);
    EXPECT_EQ(ReadBack(digest), digest) << seed;
    ExpectSums(digest);
  }
}

TEST(Digest, OfTheSamplesIsReadBackEqual) {
  for (const char* sample : {"trainer_cpu_workers2", "trainer_killed", "virtual_gpu_habits"}) {
    const fs::path path = fs::path(TRAINPROF_SOURCE_DIR) / "samples" / sample / "recording";
    const Result<std::vector<Trace>> traces = LoadTraces(path, {});
    ASSERT_TRUE(traces.ok()) << traces.error();
    for (const Trace& trace : traces.value()) {
      const RankDigest digest = Digest(trace);
      EXPECT_EQ(ReadBack(digest), digest) << sample;
      EXPECT_EQ(digest.host, trace.environment.empty() ? "" : digest.host);
      ExpectSums(digest);
    }
  }
}

// What JSON has no word for: a path that is no UTF-8, a figure that is no number.
TEST(Digest, KeepsBytesThatAreNoText) {
  RankDigest digest = Digest(BuildTrace(DrawTrace(3)));
  digest.analysis.path = "/data/\xff\xfe\x01.json";
  digest.analysis.environment = {{"\x80", std::string("a\0b", 3)}};
  EXPECT_EQ(ReadBack(digest), digest);
}

TEST(Digest, NamesWhatCollectivesAreTheSame) {
  const Trace trace = TraceFromScript(R"(
thread 1
step 0 1000 ProfilerStep#1
stream 0 7
kernel 10 20 ncclDevKernel_AllReduce_Sum_f32_RING_LL
kernel 30 40 gemm
kernel 50 90 ncclDevKernel_AllReduce_Sum_f32_RING_LL
kernel 91 95 ncclDevKernel_AllGather_RING_LL
)");
  const RankDigest digest = Digest(trace);
  ASSERT_EQ(digest.collectives.size(), 2u);
  const Collectives& reduce = digest.collectives[0];
  EXPECT_EQ(reduce.operation, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  EXPECT_EQ(reduce.communicator, "");
  EXPECT_FALSE(reduce.numbered);
  ASSERT_EQ(reduce.calls.size(), 2u);
  EXPECT_EQ(reduce.calls[1].sequence, 1);
  EXPECT_EQ(reduce.calls[1].when, (Interval{{50'000}, {90'000}}));
  EXPECT_EQ(digest.collectives[1].calls[0].sequence, 0);
}

// As torch.profiler writes them since 2.6: the group, its ranks and the number of the call.
TEST(Digest, TakesTheTracesOwnCommunicatorAndNumber) {
  std::string events;
  for (int i = 0; i < 3; ++i) {
    events += fmt::format(
        R"(,{{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,"ts":{},"dur":5,
          "args":{{"device":0,"stream":7,"Collective name":"allreduce","Process Group Name":"{}",
                   "Process Group Ranks":"[0, 1]","Seq":{}}}}})",
        100 + 10 * i, i == 2 ? "dp" : "tp", 41 + i);
  }
  const TemporaryFile file(
      "trace.json",
      R"({"deviceProperties":[{"id":0}],"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":2})" +
          events + "]}");
  for (const KeptArgs args : {KeptArgs::kAll, KeptArgs::kOfAnalysis}) {
    ImportOptions options;
    options.args = args;
    const Result<Trace> trace = ImportTrace(file.path(), options);
    ASSERT_TRUE(trace.ok()) << trace.error();
    const RankDigest digest = Digest(trace.value());
    ASSERT_EQ(digest.collectives.size(), 2u);
    EXPECT_EQ(digest.collectives[0].communicator, "tp");
    EXPECT_EQ(digest.collectives[0].members, "[0, 1]");
    EXPECT_EQ(digest.collectives[0].operation, "allreduce");
    EXPECT_TRUE(digest.collectives[0].numbered);
    ASSERT_EQ(digest.collectives[0].calls.size(), 2u);
    EXPECT_EQ(digest.collectives[0].calls[1].sequence, 42);
    EXPECT_EQ(digest.collectives[1].communicator, "dp");
    EXPECT_EQ(ReadBack(digest), digest);
  }
}

TEST(Digest, OneRankGivesTheRanksOwnReport) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Trace trace = BuildTrace(DrawTrace(seed));
    const JobAnalysis job = JobOfDigests({ReadBack(Digest(trace))});
    ASSERT_EQ(job.ranks.size(), 1u);
    EXPECT_EQ(job.ranks[0], Analyze(trace)) << seed;
    EXPECT_EQ(Verdict(job.ranks[0]), Verdict(Analyze(trace)));
  }
}

TEST(Digest, TheOrderOfRanksDoesNotMatter) {
  std::vector<RankDigest> digests;
  for (int64_t place = 0; place < 4; ++place) {
    Trace trace = BuildTrace(DrawTrace(11 + static_cast<uint64_t>(place), {.least_steps = 3}));
    trace.rank = place / 2;  // two pairs of one number
    trace.base_ns = 1000 * (7 - place);
    digests.push_back(Digest(trace, place));
  }
  JobFacts facts;
  facts.unreadable = {"c.json: damaged"};
  const JobAnalysis expected = JobOfDigests(digests, facts);
  EXPECT_EQ(expected.ranks[0].quality.back().kind, "unreadable_file");
  ASSERT_EQ(expected.late.size(), 4u);
  std::vector<size_t> order = {0, 1, 2, 3};
  while (std::next_permutation(order.begin(), order.end())) {
    std::vector<RankDigest> shuffled;
    for (size_t i : order) shuffled.push_back(digests[i]);
    const JobAnalysis job = JobOfDigests(std::move(shuffled), facts);
    EXPECT_EQ(job.ranks, expected.ranks);
    EXPECT_EQ(job.late, expected.late);
  }
}

// Whatever is read is used as a job's ranks are.
void ExpectAnErrorOrADigest(const std::string& text) {
  const Result<RankDigest> read = DigestFromJson(text, "d.json");
  if (!read.ok()) {
    EXPECT_TRUE(read.error().starts_with("d.json: not a rank's digest: ")) << read.error();
    return;
  }
  const JobAnalysis job = JobOfDigests({read.value(), ReadBack(read.value())});
  Verdict(SlowestRank(job));
  DoubtsOf(job);
  UncoveredClasses(job.ranks[0]);
}

std::string Sample() {
  const Trace trace = TraceFromScript(R"(
thread 1
repeat 6 every 1000
step 0 900 ProfilerStep#1
call 10 400 cudaMemcpyAsync | corr=3
call 500 510 cudaLaunchKernel | corr=1
end
stream 0 7
repeat 6 every 1000
copy 380 390 Memcpy DtoH (Device -> Pageable) | corr=3 bytes=4
kernel 520 620 ncclDevKernel_AllReduce | corr=1
end
)");
  return DigestToJson(Digest(trace));
}

TEST(Digest, CutOrChangedTextIsAnErrorOrADigest) {
  const std::string text = Sample();
  for (size_t end = 0; end < text.size(); end += 1 + text.size() / 300) {
    EXPECT_FALSE(DigestFromJson(text.substr(0, end), "d.json").ok()) << end;
  }
  Random random(7);
  for (int turn = 0; turn < 400; ++turn) {
    std::string changed = text;
    for (int64_t i = random.Between(1, 4); i > 0; --i) {
      const auto at = static_cast<size_t>(random.Between(0, static_cast<int64_t>(text.size()) - 1));
      changed[at] = static_cast<char>(random.Between(0, 255));
    }
    ExpectAnErrorOrADigest(changed);
  }
}

// In each place of the text, once: another value there.
void ChangeEach(Json& place, const Json& value, const std::function<void()>& visit) {
  Json kept = std::move(place);
  place = value;
  visit();
  place = std::move(kept);
  if (!place.is_structured()) return;
  size_t seen = 0;
  for (auto& inner : place) {
    if (++seen > 3 && place.is_array()) break;
    ChangeEach(inner, value, visit);
  }
}

TEST(Digest, AnyValueInAnyPlaceIsAnErrorOrADigest) {
  Json json = Json::parse(Sample());
  for (const Json& value :
       {Json(nullptr), Json(-1), Json(INT64_MAX), Json(INT64_MIN), Json(UINT64_MAX), Json(1e300),
        Json("x"), Json::array(), Json::object(), Json(true)}) {
    ChangeEach(json, value, [&] { ExpectAnErrorOrADigest(json.dump()); });
  }
}

std::string ErrorIn(const Json& json) { return DigestFromJson(json.dump(), "d.json").error(); }

TEST(Digest, AnErrorSaysWhatIsWrong) {
  const Json json = Json::parse(Sample());
  Json changed = json;
  changed["version"] = 2;
  EXPECT_EQ(ErrorIn(changed),
            "d.json: not a rank's digest: it has version 2, and this trainprof reads 7");
  changed = json;
  changed["analysis"]["steps"]["steps"][1].erase("span");
  EXPECT_EQ(ErrorIn(changed), "d.json: not a rank's digest: analysis.steps.steps.1 lacks \"span\"");
  changed = json;
  changed["analysis"]["steps"]["source"] = "guessed";
  EXPECT_EQ(
      ErrorIn(changed),
      "d.json: not a rank's digest: analysis.steps.source is \"guessed\", which is not known");
  changed = json;
  changed["analysis"]["steps"]["window"] = {{5, 9}, {1, 3}};
  EXPECT_EQ(ErrorIn(changed), "d.json: not a rank's digest: analysis.steps.window is not in order");
  changed = json;
  changed["host_steps"].erase(0);
  EXPECT_EQ(ErrorIn(changed), "d.json: not a rank's digest: host_steps are not the steps");
  changed = json;
  Json* inside = &changed["analysis"]["host_other"]["items"];
  for (int depth = 0; depth < 100; ++depth) {
    *inside = Json::array({{{"kind", "range"},
                            {"name", ""},
                            {"total", 0},
                            {"count", 0},
                            {"is_users", true},
                            {"inside", Json::array()}}});
    inside = &(*inside)[0]["inside"];
  }
  EXPECT_NE(ErrorIn(changed).find("nested too deeply"), std::string::npos) << ErrorIn(changed);
  EXPECT_EQ(DigestFromJson("", "d.json").error(),
            "d.json: not a rank's digest: no whole JSON object");
}

}  // namespace
}  // namespace trainprof
