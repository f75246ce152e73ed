// Every corpus trace loads with the counts that an independent Python reader found (count_events.py
// wrote corpus_counts.txt).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "trace/formats/importer.h"

namespace trainprof {
namespace {

std::string CountsOf(const Trace& trace) {
  int64_t kinds[3] = {};
  int64_t kernel_ns = 0;
  for (size_t row = 0; row < trace.device_ops.size(); ++row) {
    ++kinds[static_cast<size_t>(trace.device_ops.kind[row])];
    if (trace.device_ops.kind[row] != DeviceOpKind::kKernel) continue;
    kernel_ns += (trace.device_ops.end(row) - trace.device_ops.begin[row]).ns;
  }
  int64_t ops = 0;
  int64_t annotations = 0;
  int64_t python = 0;
  for (size_t row = 0; row < trace.ranges.size(); ++row) {
    const std::string_view word = trace.Text(trace.ranges.category[row]);
    ops += word == "cpu_op" || word == "Operator" ? 1 : 0;
    annotations += word == "user_annotation" ? 1 : 0;
    python += word == "python_function" ? 1 : 0;
  }
  return fmt::format(
      "complete={} kernels={} copies={} memsets={} calls={} ops={} annotations={} python={} "
      "syncs={} flows={} instants={} kernel_ns={}",
      trace.ranges.size() + trace.api.size() + trace.device_ops.size() + trace.syncs.size(),
      kinds[0], kinds[1], kinds[2], trace.api.size(), ops, annotations, python, trace.syncs.size(),
      trace.flows.size(), trace.instants.size(), kernel_ns);
}

TEST(CorpusCounts, AgreeWithThePythonReader) {
  const std::string corpus = TRAINPROF_CORPUS;
  if (corpus.empty() || !std::filesystem::is_directory(corpus)) {
    GTEST_SKIP() << "no corpus: set TRAINPROF_CORPUS";
  }
  std::ifstream counts(std::string(TRAINPROF_SOURCE_DIR) + "/tests/formats/corpus_counts.txt");
  std::string line;
  int files = 0;
  while (std::getline(counts, line)) {
    if (line.starts_with('#')) continue;
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    SCOPED_TRACE(name);
    const Result<Trace> trace = ImportTrace(corpus + "/" + name);
    ASSERT_TRUE(trace.ok()) << trace.error();
    EXPECT_EQ(CountsOf(trace.value()), line.substr(space + 1));
    for (const QualityItem& item : trace.value().quality.items()) {
      EXPECT_NE(item.severity, QualitySeverity::kDataLoss) << item.kind << ": " << item.detail;
    }
    ++files;
  }
  EXPECT_EQ(files, 18);
}

TEST(CorpusCounts, AFileThatIsNoTraceSaysWhatItIs) {
  const std::string path = std::string(TRAINPROF_CORPUS) + "/hta/not_a_trace.json.gz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no corpus: set TRAINPROF_CORPUS";
  const Result<Trace> trace = ImportTrace(path);
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.error().find(path), std::string::npos);
  EXPECT_NE(trace.error().find("PyTorch execution trace"), std::string::npos) << trace.error();
}

}  // namespace
}  // namespace trainprof
