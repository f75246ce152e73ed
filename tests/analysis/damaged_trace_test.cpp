// Real traces, cut off, with kernels deleted, with device rows renamed: the true busy time stays
// within the range, no cause grows, no error appears, and nothing that was not checked passes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/analysis.h"
#include "tests/analysis/random_trace.h"
#include "tests/trace/recording/scratch_folder.h"
#include "trace/formats/byte_source.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

using Json = nlohmann::ordered_json;

std::string Decompressed(const std::string& path) {
  Result<std::unique_ptr<ByteSource>> source = OpenByteSource(path);
  EXPECT_TRUE(source.ok()) << source.error();
  std::string text;
  std::vector<char> buffer(1 << 20);
  while (const size_t read = source.value()->Read(buffer.data(), buffer.size())) {
    text.append(buffer.data(), read);
  }
  return text;
}

RankAnalysis Analyzed(const std::string& json) {
  const testing::ScratchFolder folder;
  const std::string path = (folder / "trace.json").string();
  std::ofstream(path) << json;
  const Result<Trace> trace = ImportTrace(path);
  EXPECT_TRUE(trace.ok()) << trace.error();
  return trace.ok() ? Analyze(trace.value()) : RankAnalysis{};
}

std::set<std::string> Errors(const RankAnalysis& rank) {
  std::set<std::string> rules;
  for (const Finding& finding : rank.findings) {
    if (finding.severity == Severity::kError) rules.insert(finding.rule);
  }
  return rules;
}

const DeviceReport* Find(const RankAnalysis& rank, int64_t id) {
  const auto it = std::find_if(rank.devices.begin(), rank.devices.end(),
                               [&](const DeviceReport& device) { return device.id == id; });
  return it == rank.devices.end() ? nullptr : &*it;
}

void ExpectNoMoreIsClaimed(const RankAnalysis& whole, const RankAnalysis& less) {
  const std::set<std::string> known = Errors(whole);
  for (const std::string& rule : Errors(less)) EXPECT_TRUE(known.contains(rule)) << rule;
  for (const DeviceReport& device : whole.devices) {
    const DeviceReport* const now = Find(less, device.id);
    if (now == nullptr) continue;
    EXPECT_GE(less.DeviceShare(now->busy_high), whole.DeviceShare(device.busy)) << device.id;
    if (less.device_window != whole.device_window) continue;  // cut-off steps: other figures
    for (size_t c = 0; c < kDeviceClasses; ++c) {
      const auto why = static_cast<DeviceClass>(c);
      const bool says_less =
          why == DeviceClass::kIdleUnknown || why == DeviceClass::kIdleUnrecorded;
      if (!IsIdle(why) || says_less) continue;
      EXPECT_LE(now->account[c].total, device.account[c].total) << Name(why);
    }
  }
}

bool IsKernel(const Json& event) {
  const std::string category = event.value("cat", "");
  return category == "kernel" || category == "Kernel";
}

class DamagedTrace : public ::testing::Test {
 protected:
  // Files that are quick to read.
  static std::vector<std::string> Files() {
    constexpr uintmax_t kSmall = 500'000;
    std::vector<std::string> files;
    const std::filesystem::path corpus = TRAINPROF_CORPUS;
    if (corpus.empty() || !std::filesystem::is_directory(corpus)) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus)) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".json.gz") || path.find("not_a_trace") != std::string::npos) continue;
      if (entry.file_size() < kSmall) files.push_back(path);
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  void SetUp() override {
    if (Files().empty()) GTEST_SKIP() << "no corpus folder: set TRAINPROF_CORPUS";
  }
  // `damage(document, random)` changes the document; `check(whole, less)`.
  template <class Damage, class Check>
  static void ForEachFile(Damage damage, Check check) {
    for (const std::string& path : Files()) {
      const std::string text = Decompressed(path);
      const RankAnalysis whole = Analyzed(text);
      if (whole.devices.empty()) continue;
      Json document = Json::parse(text, nullptr, false);
      if (document.is_discarded()) continue;
      SCOPED_TRACE(path);
      Random random(7);
      damage(document, random);
      const RankAnalysis less = Analyzed(document.dump());
      ExpectNoMoreIsClaimed(whole, less);
      check(whole, less);
    }
  }
};

TEST_F(DamagedTrace, CutOffItLeavesOpenWhatTheDeviceDid) {
  for (const std::string& path : Files()) {
    const std::string text = Decompressed(path);
    const RankAnalysis whole = Analyzed(text);
    if (whole.devices.empty()) continue;
    for (const size_t percent : {45, 60, 75, 95}) {
      SCOPED_TRACE(fmt::format("{}, {} %", path, percent));
      const RankAnalysis less = Analyzed(text.substr(0, text.size() * percent / 100));
      ExpectNoMoreIsClaimed(whole, less);
      EXPECT_TRUE(less.passed.empty());
      EXPECT_TRUE(std::none_of(less.findings.begin(), less.findings.end(),
                               [](const Finding& f) { return f.rule == "low-utilisation"; }));
    }
  }
}

TEST_F(DamagedTrace, WithoutKernelsItCountsTheirLaunches) {
  for (const int percent : {10, 50, 100}) {
    SCOPED_TRACE(percent);
    ForEachFile(
        [&](Json& document, Random& random) {
          auto& events = document["traceEvents"].get_ref<Json::array_t&>();
          std::erase_if(
              events, [&](const Json& event) { return IsKernel(event) && random.Chance(percent); });
        },
        [&](const RankAnalysis& whole, const RankAnalysis& less) {
          if (less.kernels == whole.kernels) return;
          const auto counted = std::any_of(
              less.quality.begin(), less.quality.end(),
              [](const QualityItem& item) { return item.kind == "launches_without_kernel"; });
          // Kernels whose launch the trace does not hold leave none behind.
          EXPECT_TRUE(counted || percent < 100);
        });
  }
}

TEST_F(DamagedTrace, RenamedKernelsAreNamedAndNoRulePasses) {
  for (const char* const category : {"mtia_ccp_events", "foo", "xpu_kernel", ""}) {
    for (const bool keeps_args : {true, false}) {
      SCOPED_TRACE(fmt::format("'{}' {}", category, keeps_args));
      ForEachFile(
          [&](Json& document, Random&) {
            for (Json& event : document["traceEvents"]) {
              if (!IsKernel(event)) continue;
              event["cat"] = category;
              if (keeps_args || !event.contains("args")) continue;
              event["args"].erase("device");
              event["args"].erase("stream");
            }
          },
          [&](const RankAnalysis& whole, const RankAnalysis& less) {
            EXPECT_EQ(less.kernels, 0u);
            EXPECT_TRUE(less.passed.empty());
            const auto unknown = std::find_if(
                less.quality.begin(), less.quality.end(),
                [](const QualityItem& item) { return item.kind == "unknown_device_rows"; });
            ASSERT_NE(unknown, less.quality.end());
            EXPECT_EQ(unknown->count, static_cast<int64_t>(whole.kernels));
            EXPECT_EQ(unknown->severity, QualitySeverity::kDataLoss);
          });
    }
  }
}

}  // namespace
}  // namespace trainprof
