// Real traces, cut off, with kernels deleted, with device rows renamed: the true busy time stays
// within the range, no cause grows, no error appears, and nothing that was not checked passes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/job/analysis.h"
#include "tests/support/random_trace.h"
#include "tests/support/trace_text.h"

namespace trainprof {
namespace {

using OrderedJson = nlohmann::ordered_json;

RankAnalysis Analyzed(const std::string& json) {
  const Result<Trace> trace = ImportText(json);
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

bool IsKernel(const OrderedJson& event) {
  const std::string category = event.value("cat", "");
  return category == "kernel" || category == "Kernel";
}

bool IsLaunch(const OrderedJson& event) {
  return event.value("name", "").find("LaunchKernel") != std::string::npos;
}

// By which launches and what they started find each other.
std::set<int64_t> Ids(const OrderedJson::array_t& events, bool (*which)(const OrderedJson& event)) {
  std::set<int64_t> ids;
  for (const OrderedJson& event : events) {
    const OrderedJson args = event.value("args", OrderedJson::object());
    const bool has_id = which(event) && args.contains("correlation");
    if (has_id) ids.insert(args["correlation"].get<int64_t>());
  }
  return ids;
}

int64_t CountOf(const RankAnalysis& rank, std::string_view kind) {
  int64_t count = 0;
  for (const QualityItem& item : rank.quality) count += item.kind == kind ? item.count : 0;
  return count;
}

class DamagedTrace : public ::testing::Test {
 protected:
  struct File {
    std::string path;
    std::string text;
    RankAnalysis whole;
    OrderedJson document;  // discarded where the text is no JSON document
  };
  // Those of a GPU that are quick to read.
  static const std::vector<File>& Files() {
    static const std::vector<File> files = [] {
      constexpr uintmax_t kSmall = 500'000;
      std::vector<File> read;
      for (const std::string& path : CorpusFiles()) {
        if (std::filesystem::file_size(path) >= kSmall) continue;
        const std::string text = Decompressed(path);
        RankAnalysis whole = Analyzed(text);
        if (whole.devices.empty()) continue;
        read.push_back({path, text, std::move(whole), OrderedJson::parse(text, nullptr, false)});
      }
      return read;
    }();
    return files;
  }
  void SetUp() override {
    if (CorpusFiles().empty()) GTEST_SKIP() << "no corpus folder: set TRAINPROF_CORPUS";
  }
  // `damage(document, random)` changes the document; `check(whole, less)`.
  template <class Damage, class Check>
  static void ForEachFile(Damage damage, Check check) {
    int checked = 0;
    for (const File& file : Files()) {
      if (file.document.is_discarded()) continue;
      SCOPED_TRACE(file.path);
      OrderedJson document = file.document;
      Random random(7);
      damage(document, random);
      const RankAnalysis less = Analyzed(document.dump());
      ExpectNoMoreIsClaimed(file.whole, less);
      check(file.whole, less);
      ++checked;
    }
    EXPECT_GT(checked, 0);
  }
};

TEST_F(DamagedTrace, CutOffItLeavesOpenWhatTheDeviceDid) {
  int checked = 0;
  for (const File& file : Files()) {
    for (const size_t percent : {45, 60, 75, 95}) {
      SCOPED_TRACE(fmt::format("{}, {} %", file.path, percent));
      const RankAnalysis less = Analyzed(file.text.substr(0, file.text.size() * percent / 100));
      ExpectNoMoreIsClaimed(file.whole, less);
      EXPECT_TRUE(less.passed.empty());
      EXPECT_TRUE(std::none_of(less.findings.begin(), less.findings.end(),
                               [](const Finding& f) { return f.rule == "low-utilisation"; }));
    }
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

TEST_F(DamagedTrace, WithoutKernelsItCountsTheirLaunches) {
  for (const int percent : {10, 50, 100}) {
    SCOPED_TRACE(percent);
    int64_t lost = 0;  // launches of the file whose kernels are gone
    int64_t lost_in_all = 0;
    ForEachFile(
        [&](OrderedJson& document, Random& random) {
          auto& events = document["traceEvents"].get_ref<OrderedJson::array_t&>();
          const std::set<int64_t> launches = Ids(events, IsLaunch);
          const std::set<int64_t> before = Ids(events, IsKernel);
          std::erase_if(events, [&](const OrderedJson& event) {
            return IsKernel(event) && random.Chance(percent);
          });
          const std::set<int64_t> after = Ids(events, IsKernel);
          lost = std::count_if(before.begin(), before.end(), [&](int64_t id) {
            return launches.contains(id) && !after.contains(id);
          });
          lost_in_all += lost;
        },
        [&](const RankAnalysis&, const RankAnalysis& less) {
          EXPECT_GE(CountOf(less, "launches_without_kernel") + CountOf(less, "undelivered_at_end"),
                    lost);
        });
    EXPECT_GT(lost_in_all, 0);
  }
}

TEST_F(DamagedTrace, RenamedKernelsAreNamedAndNoRulePasses) {
  for (const char* const category : {"mtia_ccp_events", "foo", "xpu_kernel", ""}) {
    for (const bool keeps_args : {true, false}) {
      SCOPED_TRACE(fmt::format("'{}' {}", category, keeps_args));
      ForEachFile(
          [&](OrderedJson& document, Random&) {
            for (OrderedJson& event : document["traceEvents"]) {
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
