// Jobs for tests of comparisons.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "analysis/job/diff.h"
#include "tests/support/trace_script.h"

namespace trainprof {

inline JobAnalysis JobOfTraces(const std::vector<Trace>& traces, const std::string& path = "job") {
  JobAnalyzer analyzer;
  int64_t place = 0;
  for (const Trace& trace : traces) analyzer.Add(DigestOf(RankModel(trace), place++));
  JobSource source;
  source.path = path;
  return std::move(analyzer).Finish(source, {});
}

// Steps that wait for data, launch a kernel and end with it. `wait(step)` in us.
template <class Wait>
Trace Training(int steps, Wait wait, int kernel_us = 600,
               std::string_view file = "/a/train.py(3)") {
  std::string host = "thread 1\n";
  std::string device = "stream 0 7\n";
  int at = 0;
  for (int i = 0; i < steps; ++i) {
    const int waited = wait(i);
    const int work = at + waited;
    const int end = work + 20 + kernel_us;
    host += fmt::format("step {} {} ProfilerStep#{}\n", at, end, i);
    host += fmt::format(
        "annotation {} {} enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ | "
        "stack={}: main\n",
        at, work, file);
    host += fmt::format("call {} {} cudaLaunchKernel | corr={}\n", work + 5, work + 10, i + 1);
    device += fmt::format("kernel {} {} gemm | corr={}\n", work + 12, end, i + 1);
    at = end;
  }
  return TraceFromScript(host + device);
}

inline Trace Steady(int steps, int wait_us, int kernel_us = 600) {
  return Training(
      steps, [=](int i) { return wait_us + i % 3; }, kernel_us);
}

inline Diff Compare(const std::vector<JobAnalysis>& a, const std::vector<JobAnalysis>& b,
                    bool anyway = false) {
  return DiffOf(a, b, anyway);
}

}  // namespace trainprof
