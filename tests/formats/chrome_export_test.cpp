// What an exported file looks like to Perfetto, chrome://tracing and HTA, and what happens to it on
// disk.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/formats/perfetto_rules.h"
#include "tests/support/trace_text.h"
#include "trace/build/trace_builder.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

using Json = nlohmann::json;

Json Exported(const Trace& trace) {
  const TemporaryFile out("out.json");
  const Result<void> done = ExportTrace(trace, out.path());
  EXPECT_TRUE(done.ok()) << done.error();
  return Json::parse(ReadWhole(out.path()));
}

TEST(ChromeExport, OverlappingKernelsGoToASecondLaneWithTheirTrueStream) {
  const Trace trace = Imported(R"([
    {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":10,"args":{"stream":7}},
    {"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":15,"dur":10,"args":{"stream":7}},
    {"ph":"X","cat":"gpu_user_annotation","name":"c","pid":0,"tid":7,"ts":12,"dur":10},
    {"ph":"f","cat":"ac2g","name":"ac2g","id":1,"pid":0,"tid":7,"ts":15,"bp":"e"}])");
  const Json document = Exported(trace);
  ExpectPerfettoRules(document);
  std::map<std::string, Json> by_name;
  for (const Json& event : document["traceEvents"]) {
    if (event["ph"] == "X") by_name[event["name"]] = event;
    if (event["ph"] == "f") {
      EXPECT_EQ(event["tid"], 2000007);  // with its kernel
    }
  }
  EXPECT_EQ(by_name["a"]["tid"], 7);
  EXPECT_EQ(by_name["c"]["tid"], 1000007);
  EXPECT_EQ(by_name["c"]["args"]["trainprof tid"], 7);
  EXPECT_EQ(by_name["b"]["tid"], 2000007);
  EXPECT_EQ(by_name["b"]["args"]["stream"], 7);
}

TEST(ChromeExport, MetadataStandsBeforeTheEventsAndTheRankReadsAsHtaWants) {
  const TemporaryFile out("out.json");
  const Trace trace = Imported(
      R"({"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1.5,"dur":1}],"distributedInfo":{"rank":3}})");
  ASSERT_TRUE(ExportTrace(trace, out.path()).ok());
  const std::string text = ReadWhole(out.path());
  EXPECT_LT(text.find("\"rank\": 3"), text.find("traceEvents")) << text;
  EXPECT_LT(text.find("\"baseTimeNanoseconds\": 1000"), text.find("traceEvents")) << text;
  EXPECT_NE(text.find("\"ts\":0.500,\"dur\":1.000"), std::string::npos) << text;
}

// HTA rounds times to microseconds: a base between two of them would move each end by another
// amount.
TEST(ChromeExport, TimesKeepTheirDigitsBelowAMicrosecond) {
  const Json out = Exported(Imported(
      R"({"baseTimeNanoseconds": 1700000000000000000, "traceEvents":[
          {"ph":"X","name":"a","pid":1,"tid":1,"ts":7.321,"dur":1},
          {"ph":"X","name":"b","pid":1,"tid":1,"ts":9.000,"dur":1.001}]})"));
  EXPECT_EQ(out["baseTimeNanoseconds"], 1'700'000'000'000'007'000);
  std::map<std::string, double> times;
  for (const Json& event : out["traceEvents"]) {
    if (event["ph"] == "X") times[event["name"]] = event["ts"];
  }
  EXPECT_EQ(times.at("a"), 0.321);
  EXPECT_EQ(times.at("b"), 2.0);
}

// A recording as the collectors make it: ranges with NVTX domains, no Kineto words.
Trace Recording(int64_t steps = 2) {
  TraceBuilder b;
  b.trace().source = SourceKind::kRecording;
  b.trace().rank = 2;
  b.trace().world_size = 4;
  b.trace().base_ns = 1'700'000'000'000'000'000;
  const ProcessId process = b.FindOrAddProcess(4711);
  b.process(process).name = b.Intern("python");
  const TrackId thread = b.FindOrAddThread(process, 4712);
  const TrackId stream = b.FindOrAddStream(process, 0, 7);
  const auto at = [&](int64_t begin, int64_t end, const char* name, TrackId track) {
    return Event{
        .begin = TraceTime{begin}, .end = TraceTime{end}, .name = b.Intern(name), .track = track};
  };
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t t = step * 1000;
    Event range = at(t, t + 900, "step", thread);
    range.category = b.Intern("trainer");
    b.AddRange(range, RangeKind::kUserAnnotation);
    b.AddApi(at(t + 10, t + 20, "cudaLaunchKernel", thread), ApiKind::kLaunch, 100 + step);
    b.AddDeviceOp(at(t + 50, t + 500, "gemm", stream), DeviceOpKind::kKernel,
                  CopyDirection::kUnknown, 0, 100 + step);
  }
  b.AddDeviceOp(at(600, 700, "Memcpy HtoD (Pinned -> Device)", stream), DeviceOpKind::kCopy,
                CopyDirection::kHostToDevice, 4096, 99);
  return std::move(b).Build();
}

TEST(ChromeExport, RecordingsSpeakKineto) {
  const Json document = Exported(Recording());
  ExpectPerfettoRules(document, true);
  EXPECT_EQ(document["distributedInfo"]["rank"], 2);
  EXPECT_EQ(document["deviceProperties"][0]["id"], 0);
  std::map<std::string, int> categories;
  std::vector<std::string> steps;
  int arrows = 0;
  for (const Json& event : document["traceEvents"]) {
    if (event["ph"] == "s" || event["ph"] == "f") ++arrows;
    if (event["ph"] != "X") continue;
    ++categories[event["cat"]];
    if (event["cat"] == "user_annotation") {
      steps.push_back(event["name"]);
      EXPECT_EQ(event["args"]["name"], "step");
      EXPECT_EQ(event["args"]["domain"], "trainer");
    }
    if (event["cat"] == "kernel") {
      EXPECT_EQ(event["pid"], 0);  // a device is a process of its number
      EXPECT_EQ(event["tid"], 7);
      EXPECT_EQ(event["args"]["stream"], 7);
      EXPECT_EQ(event["args"]["device"], 0);
      EXPECT_GE(event["args"]["correlation"].get<int>(), 100);
    }
    if (event["cat"] == "gpu_memcpy") {
      EXPECT_EQ(event["args"]["bytes"], 4096);
    }
  }
  EXPECT_EQ(steps, (std::vector<std::string>{"ProfilerStep#0", "ProfilerStep#1"}));
  EXPECT_EQ(categories,
            (std::map<std::string, int>{
                {"cuda_runtime", 2}, {"gpu_memcpy", 1}, {"kernel", 2}, {"user_annotation", 2}}));
  EXPECT_EQ(arrows, 4);
}

// Its rows are written in pieces, on several threads.
TEST(ChromeExport, ALongRecordingIsNumberedThroughAndInOrder) {
  constexpr int64_t kSteps = 5000;
  const Json document = Exported(Recording(kSteps));
  ExpectPerfettoRules(document, true);
  std::map<std::string, std::vector<double>> times;  // of a category, in the order of the file
  std::vector<std::string> steps;
  std::map<int64_t, std::string> phases_of_arrow;
  for (const Json& event : document["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "s" || phase == "f") phases_of_arrow[event["id"]] += phase;
    if (phase != "X") continue;
    times[event["cat"]].push_back(event["ts"]);
    if (event["cat"] == "user_annotation") steps.push_back(event["name"]);
  }
  ASSERT_EQ(steps.size(), static_cast<size_t>(kSteps));
  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_EQ(steps[static_cast<size_t>(step)], fmt::format("ProfilerStep#{}", step));
    ASSERT_EQ(phases_of_arrow[step + 1], "sf");
  }
  EXPECT_EQ(phases_of_arrow.size(), static_cast<size_t>(kSteps));
  for (const char* category : {"user_annotation", "cuda_runtime", "kernel"}) {
    EXPECT_EQ(times[category].size(), static_cast<size_t>(kSteps)) << category;
    EXPECT_TRUE(std::is_sorted(times[category].begin(), times[category].end())) << category;
  }
}

TEST(ChromeExport, ARecordingReadsBackWithItsTimesAndLaunches) {
  const Trace recording = Recording();
  const TemporaryFile out("out.json.gz");
  ASSERT_TRUE(ExportTrace(recording, out.path()).ok());
  const Result<Trace> again = ImportTrace(out.path());
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(again.value().base_ns, recording.base_ns);
  EXPECT_EQ(again.value().rank, 2);
  EXPECT_EQ(again.value().ranges.begin, recording.ranges.begin);
  EXPECT_EQ(again.value().ranges.duration, recording.ranges.duration);
  EXPECT_EQ(again.value().device_ops.begin, recording.device_ops.begin);
  EXPECT_EQ(again.value().device_ops.launch, recording.device_ops.launch);
  EXPECT_EQ(again.value().device_ops.bytes, recording.device_ops.bytes);
}

// One kernel and one copy with all that columns can hold.
Trace LaunchedRecording() {
  TraceBuilder b;
  b.trace().source = SourceKind::kRecording;
  const TrackId stream = b.FindOrAddStream(b.FindOrAddProcess(4711), 3, 7);
  b.device(b.FindOrAddDevice(3)).num_sms = 108;
  LaunchConfig config;
  config.context = 1;
  config.graph_node = 9;
  const LaunchConfigId of_copy = b.FindOrAddLaunchConfig(config);
  config.grid = {216, 2, 1};
  config.block = {128, 1, 1};
  config.cluster = {2, 1, 1};
  config.registers_per_thread = 168;
  config.shared_bytes = 3072;
  config.local_bytes_per_thread = 16;
  config.theoretical_occupancy_percent = 18.75;
  config.graph = 5;
  const LaunchConfigId of_kernel = b.FindOrAddLaunchConfig(config);
  const auto at = [&](int64_t begin, int64_t end, const char* name) {
    return Event{
        .begin = TraceTime{begin}, .end = TraceTime{end}, .name = b.Intern(name), .track = stream};
  };
  b.AddDeviceOp(at(0, 1000, "gemm"), DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, 41,
                {.launch_config = of_kernel});
  b.AddDeviceOp(at(2000, 3000, "Memcpy DtoH (Device -> Pinned)"), DeviceOpKind::kCopy,
                CopyDirection::kDeviceToHost, 4000, 42,
                {MemoryKind::kDevice, MemoryKind::kPinned, of_copy});
  return std::move(b).Build();
}

TEST(ChromeExport, ARecordingsLaunchesAreSpelledAsKinetoWould) {
  const TemporaryFile out("out.json");
  ASSERT_TRUE(ExportTrace(LaunchedRecording(), out.path()).ok());
  const std::string text = ReadWhole(out.path());
  EXPECT_NE(text.find(R"("args":{"device":3,"context":1,"stream":7,"registers per thread":168,)"
                      R"("shared memory":3072,"blocks per SM":4.0,"warps per SM":16.0,)"
                      R"("grid":[216,2,1],"block":[128,1,1],"theoretical occupancy %":18.75,)"
                      R"("cluster":[2,1,1],"local memory per thread":16,"graph id":5,)"
                      R"("graph node id":9,"correlation":41})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"x("args":{"device":3,"context":1,"stream":7,"bytes":4000,)x"
                      R"x("memory bandwidth (GB/s)":4.0,"graph node id":9,"correlation":42})x"),
            std::string::npos)
      << text;
}

TEST(ChromeExport, ARecordingsLaunchesReadBackEqual) {
  const Trace recording = LaunchedRecording();
  const TemporaryFile out("out.json");
  ASSERT_TRUE(ExportTrace(recording, out.path()).ok());
  const Result<Trace> again = ImportTrace(out.path());
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(again.value().launch_configs, recording.launch_configs);
  EXPECT_EQ(again.value().device_ops.launch_config, recording.device_ops.launch_config);
  EXPECT_EQ(again.value().device_ops.source, recording.device_ops.source);
  EXPECT_EQ(again.value().device_ops.target, recording.device_ops.target);
}

TEST(ChromeExport, CorpusTracesFollowPerfettosRules) {
  const std::string corpus = TRAINPROF_CORPUS;
  if (corpus.empty() || !std::filesystem::is_directory(corpus)) {
    GTEST_SKIP() << "no corpus: set TRAINPROF_CORPUS";
  }
  for (const char* name : {"tracelens/h100_qwen_chat", "hta/alexnet_cold_a100", "hta/amd_mi250",
                           "hta/event_sync_multi_stream", "dlrm_8ranks/rank3.pt.trace",
                           "kineto_resnet50/workers4.pt.trace"}) {
    SCOPED_TRACE(name);
    const Result<Trace> trace = ImportTrace(fmt::format("{}/{}.json.gz", corpus, name));
    ASSERT_TRUE(trace.ok()) << trace.error();
    ExpectPerfettoRules(Exported(trace.value()));
  }
}

TEST(ChromeExport, AnExistingFileIsLeftAloneUnlessAsked) {
  const TemporaryFile out("out.json", "precious");
  const Trace trace = Recording();
  const Result<void> refused = ExportTrace(trace, out.path());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().find("exists already"), std::string::npos);
  EXPECT_EQ(ReadWhole(out.path()), "precious");
  EXPECT_TRUE(ExportTrace(trace, out.path(), {.overwrite = true}).ok());
  EXPECT_TRUE(ReadWhole(out.path()).starts_with("{"));
}

TEST(ChromeExport, AFullDiskIsReportedAndLeavesNothing) {
  const TemporaryFile out("out.json");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 512, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<void> result = ExportTrace(Recording(), out.path());
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().find("writing failed after 512 bytes"), std::string::npos)
      << result.error();
  EXPECT_TRUE(std::filesystem::is_empty(out.folder()));
}

TEST(ChromeExport, AnUnknownEndingOrAMissingFolderIsAnError) {
  EXPECT_NE(ExportTrace(Recording(), "/tmp/x.bin").error().find("chrome"), std::string::npos);
  EXPECT_NE(ExportTrace(Recording(), "/nonexistent/x.json").error().find("create it first"),
            std::string::npos);
}

}  // namespace
}  // namespace trainprof
