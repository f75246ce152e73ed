// Import, export, import again: equal tables, for every corpus file and for random traces.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/formats/trace_text.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

std::vector<std::string> CorpusFiles() {
  std::vector<std::string> files;
  const std::string folder = TRAINPROF_CORPUS;
  if (folder.empty() || !std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json.gz") && !path.ends_with("not_a_trace.json.gz")) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Where two texts first differ, with both lines.
std::string FirstDifference(const std::string& a, const std::string& b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const size_t line = at == 0 ? 0 : a.rfind('\n', at - 1) + 1;
  return fmt::format("first: {}\nagain: {}", a.substr(line, 400), b.substr(line, 400));
}

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

// Random events of every kind, with the awkward values that real files hold.
class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed) : random_(seed) {}

  std::string Json() {
    std::string text =
        "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"G\"}],";
    if (Below(2) == 0)
      text += "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8},";
    if (Below(2) == 0) text += "\"baseTimeNanoseconds\": 1751410836000000000,";
    text += "\"traceEvents\": [";
    const int count = 1 + Below(60);
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",\n") + EventJson();
    return text + "]}";
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  template <size_t N>
  std::string Pick(const char* const (&choices)[N]) {
    return choices[Below(static_cast<int>(N))];
  }

  std::string EventJson() {
    const std::string phase =
        Pick({"X", "X", "X", "X", "X", "B", "E", "i", "C", "s", "f", "t", "b", "e", "n", "M", "O"});
    std::string text = fmt::format("{{\"ph\": \"{}\", \"name\": {}", phase, NameJson(phase));
    if (Below(8) != 0) {
      text +=
          fmt::format(", \"cat\": \"{}\"",
                      Pick({"cpu_op", "Operator", "kernel", "Kernel", "gpu_memcpy", "gpu_memset",
                            "cuda_runtime", "cuda_driver", "Runtime", "user_annotation", "own",
                            "gpu_user_annotation", "python_function", "cuda_sync", "overhead"}));
    }
    text += fmt::format(", \"pid\": {}", Pick({"0", "1", "4711", "-1", "\"Spans\"", "\"host a\""}));
    text += fmt::format(", \"tid\": {}", Pick({"7", "20", "4711", "-1029147072", "\"4711\"",
                                               "\"stream 7\"", "\"worker\""}));
    text += fmt::format(", \"ts\": {}", TimeJson());
    if (phase == "X" && Below(10) != 0) text += fmt::format(", \"dur\": {}", Below(50));
    if (phase == "f" || Below(20) == 0) text += ", \"bp\": \"e\"";
    if (phase == "i") text += ", \"s\": \"t\"";
    if (phase == "s" || phase == "f" || phase == "t" || phase == "b" || Below(20) == 0) {
      text += fmt::format(", \"id\": {}", Pick({"1", "2", "\"0x1f\"", "\"text\"", "77"}));
    }
    if (Below(15) == 0) text += ", \"cname\": \"good\", \"tts\": 12.25";
    if (phase == "M") return text + ", \"args\": {\"name\": \"named\"}}";
    if (Below(4) != 0) text += ", \"args\": {" + ArgsJson() + "}";
    return text + "}";
  }

  std::string NameJson(const std::string& phase) {
    if (phase == "M") return Pick({"\"process_name\"", "\"thread_name\"", "\"other_meta\""});
    return Pick({"\"aten::add\"", "\"ProfilerStep#5\"", "\"enumerate(DataLoader)#x\"",
                 "\"a\\\"b\\\\c\"", "\"line\\nbreak\"", "\"\\u00e9\\ud83d\\ude00\"",
                 "\"cudaLaunchKernel\"", "\"\"", "\"Memcpy HtoD (Pageable -> Device)\"",
                 "\"void k<float>(int)\""});
  }

  std::string TimeJson() {
    const int64_t us = 1623142623460000 + Below(200);
    if (Below(2) == 0) return std::to_string(us);
    return fmt::format("{}.{:03}", us, Below(1000));
  }

  std::string ArgsJson() {
    std::string text;
    const int count = Below(5);
    for (int i = 0; i < count; ++i) {
      text += text.empty() ? "" : ", ";
      text +=
          fmt::format("\"{}\": {}",
                      Pick({"device", "stream", "correlation", "bytes", "External id", "x", "^y"}),
                      Pick({"0",
                            "7",
                            "20",
                            "-1",
                            "123456789012345",
                            "-9223372036854775808",
                            "92233720368547758080",
                            "0.1",
                            "4.0",
                            "-0.0",
                            "1e300",
                            "1e999",
                            "88.88888888888889",
                            "null",
                            "true",
                            "false",
                            "\"text\"",
                            "\"\"",
                            "[[], [1, 2]]",
                            "{\"a\": [\"b\"]}",
                            "NaN",
                            "N/A",
                            "[NaN]"}));
    }
    return text;
  }

  std::mt19937 random_;
};

TEST(RoundTrip, RandomTracesComeBackEqual) {
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    const std::string json = RandomTrace(seed).Json();
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
