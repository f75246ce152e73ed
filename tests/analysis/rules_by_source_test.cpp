// Which rules can fire on what each way to record leaves of a habit: the table of docs/rules.md. With
// TRAINPROF_WRITE_DOCS=1 in its environment the test writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "analysis/job/analysis.h"
#include "analysis/rule.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

// What a source leaves out, by the kinds of lines of a trace script.
struct Source {
  std::string_view title;
  bool is_recording;
  std::set<std::string_view> lacks;
};

// Kineto records what streams wait for only where it is asked to (enable_cuda_sync_events).
const std::vector<Source> kSources = {
    {"default", true, {"op", "python"}},
    {"`--full`", true, {"op", "python"}},
    {"`--ops`", true, {"python"}},
    {"`--memory`", true, {"op", "python"}},
    {"Kineto", false, {"python", "stream-wait", "host-function", "hook"}},
    {"Kineto, `with_stack`", false, {"stream-wait", "host-function", "hook"}},
};

// A habit of each rule as it looks where everything is recorded. "hook" is a range that our hooks for
// Python write.
const std::map<std::string_view, std::string_view> kHabits = {
    {"input-bound", R"(
      step 0 1000 step
      annotation 0 500 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      call 510 520 cudaLaunchKernel | corr=1
      kernel 525 1000 gemm | corr=1)"},
    {"pageable-copy", R"(
      step 0 1000 step
      call 10 330 cudaMemcpyAsync | corr=1
      call 400 410 cudaLaunchKernel | corr=2
      copy 20 320 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=8000000
      kernel 415 1000 gemm | corr=2)"},
    {"cpu-tensor", R"(
      step 0 1000 step
      op 100 200 aten::randn
      op 210 400 aten::to
      call 250 390 cudaMemcpyAsync | corr=1
      call 410 420 cudaLaunchKernel | corr=2
      copy 380 385 Memcpy HtoD (Pageable -> Device) | corr=1 bytes=400
      kernel 425 1000 gemm | corr=2)"},
    {"low-utilisation", R"(
      step 0 10000 step
      call 6000 6010 cudaLaunchKernel | corr=1
      kernel 6015 10000 gemm | corr=1)"},
    {"launch-bound", R"(
      step 0 1000 step
      call 50 100 cudaLaunchKernel | corr=1
      call 550 600 cudaLaunchKernel | corr=2
      kernel 105 200 a | corr=1 grid=4
      kernel 605 700 b | corr=2 grid=4)"},
    {"host-work", R"(
      step 0 10000 step
      hook 0 5000 gc.collect (generation 2)
      python 0 5000 <built-in method collect of module>
      call 5100 5110 cudaLaunchKernel | corr=1
      kernel 5115 10000 gemm | corr=1)"},
    {"allocation", R"(
      step 0 1000 step
      call 0 300 cudaMalloc
      call 310 320 cudaLaunchKernel | corr=1
      kernel 325 1000 gemm | corr=1)"},
    {"host-sync", R"(
      step 0 1000 step
      call 10 20 cudaLaunchKernel | corr=1
      call 30 405 cudaMemcpyAsync | corr=2
      call 500 510 cudaLaunchKernel | corr=3
      kernel 25 390 gemm | corr=1
      copy 390 400 Memcpy DtoH (Device -> Pageable) | corr=2 bytes=4
      kernel 515 1000 gemm | corr=3)"},
    {"sync-call", R"(
      step 0 1000 step
      call 300 310 cudaLaunchKernel | corr=1
      call 320 1000 cudaDeviceSynchronize
      kernel 315 999 gemm | corr=1)"},
    {"exposed-communication", R"(
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      kernel 600 1000 ncclDevKernel_AllReduce_Sum_f32_RING_LL | corr=1)"},
    {"data-parallel", R"(
      step 0 1000 step
      op 0 600 DataParallel.forward
      op 10 90 Scatter
      op 110 290 Broadcast
      call 310 320 cudaLaunchKernel | corr=1
      call 320 330 cudaLaunchKernel | corr=2
      op 500 560 Gather
      kernel 325 1000 gemm | corr=1
      other-kernel 335 800 gemm | corr=2)"},
    {"exposed-copy", R"(
      step 0 1000 step
      call 10 20 cudaMemcpyAsync | corr=1
      call 22 320 cudaStreamSynchronize
      call 400 410 cudaLaunchKernel | corr=2
      copy 20 320 Memcpy HtoD (Pinned -> Device) | corr=1 bytes=8000000
      kernel 415 1000 gemm | corr=2)"},
    {"full-precision", R"(
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      kernel 5 1000 ampere_sgemm_128x64_tn | corr=1)"},
    {"serialised-streams", R"(
      step 0 1000 step
      call 1 2 cudaLaunchKernel | corr=1
      call 3 4 cudaEventRecord | corr=2
      call 5 6 cudaStreamWaitEvent | corr=3
      call 7 8 cudaLaunchKernel | corr=4
      kernel 10 500 branch_a | corr=1 grid=40
      stream-wait 5 500 | corr=3 record=2 stream=7 device=0
      side-kernel 502 1000 branch_b | corr=4 grid=40)"},
    {"device-wait", R"(
      step 0 1000 step
      call 1 2 cudaLaunchHostFunc | corr=1
      call 7 8 cudaLaunchKernel | corr=2
      host-function 5 500 host function | corr=1
      kernel 502 1000 gemm | corr=2)"},
};

// Which line of the trace a kind of script line stands on: the thread, stream 7 or 9 of device 0, or
// stream 11 of device 1.
std::string_view PlaceOf(std::string_view kind) {
  if (kind == "kernel" || kind == "copy" || kind == "host-function") return "stream 0 7";
  if (kind == "side-kernel" || kind == "stream-wait") return "stream 0 9";
  return kind == "other-kernel" ? "stream 1 11" : "thread 1";
}

std::string ScriptOf(std::string_view habit, const Source& source) {
  std::map<std::string_view, std::string> places;
  std::istringstream lines{std::string(habit)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    if (!(words >> kind) || source.lacks.contains(kind)) continue;
    std::string rest;
    std::getline(words, rest);
    std::string_view written = kind;
    if (kind == "hook") written = "annotation";
    if (kind.ends_with("-kernel")) written = "kernel";
    places[PlaceOf(kind)] += fmt::format("{}{}\n", written, rest);
  }
  const int64_t step = habit.find("10000 step") == habit.npos ? 1000 : 10000;
  std::string script = source.is_recording ? "recording\n" : "";
  script += "device 0 108 8\n";
  for (const auto& [place, events] : places) {
    script += fmt::format("{}\nrepeat 12 every {}\n{}end\n", place, step, events);
  }
  return script;
}

// "yes", "-", or why the rule was not checked.
std::string OutcomeOn(std::string_view rule, const Source& source) {
  const RankAnalysis analysis = Analyze(TraceFromScript(ScriptOf(kHabits.at(rule), source)));
  for (const SkippedRule& skipped : analysis.skipped) {
    if (skipped.rule == rule) return skipped.reason;
  }
  for (const Finding& finding : analysis.findings) {
    if (finding.rule == rule) return "yes";
  }
  return "-";
}

std::string TableOfRules() {
  std::string head = "| rule |";
  std::string line = "|---|";
  for (const Source& source : kSources) {
    head += fmt::format(" {} |", source.title);
    line += "---|";
  }
  std::vector<std::string> reasons;
  std::string rows;
  for (const RegisteredRule& entry : AllRules()) {
    rows += fmt::format("| `{}` |", entry.slug);
    for (const Source& source : kSources) {
      const std::string outcome = OutcomeOn(entry.slug, source);
      if (outcome == "yes" || outcome == "-") {
        rows += fmt::format(" {} |", outcome);
        continue;
      }
      const auto known = std::find(reasons.begin(), reasons.end(), outcome);
      rows += fmt::format(" skipped ({}) |", known - reasons.begin() + 1);
      if (known == reasons.end()) reasons.push_back(outcome);
    }
    rows += "\n";
  }
  std::string text = head + "\n" + line + "\n" + rows;
  for (size_t i = 0; i < reasons.size(); ++i) {
    text += fmt::format("\n{}. {}", i + 1, reasons[i]);
  }
  return text + "\n";
}

TEST(RulesBySource, EveryRuleHasAHabit) {
  for (const RegisteredRule& entry : AllRules()) {
    EXPECT_TRUE(kHabits.contains(entry.slug)) << entry.slug;
  }
}

TEST(RulesBySource, TheDocumentationSaysWhereEachFires) {
  constexpr std::string_view kBegin = "<!-- rules by source: begin -->\n";
  constexpr std::string_view kEnd = "<!-- rules by source: end -->";
  const std::string path = TRAINPROF_SOURCE_DIR "/docs/rules.md";
  std::string page;
  {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    page = text.str();
  }
  const size_t begin = page.find(kBegin);
  const size_t end = page.find(kEnd);
  ASSERT_NE(begin, page.npos);
  ASSERT_NE(end, page.npos);
  const std::string table = TableOfRules();
  const size_t from = begin + kBegin.size();
  if (std::getenv("TRAINPROF_WRITE_DOCS") != nullptr) {
    std::ofstream(path) << page.substr(0, from) << table << page.substr(end);
    return;
  }
  EXPECT_EQ(page.substr(from, end - from), table)
      << "TRAINPROF_WRITE_DOCS=1 analysis_test --gtest_filter='RulesBySource.*' writes it";
}

}  // namespace
}  // namespace trainprof
