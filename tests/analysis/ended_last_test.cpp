#include "analysis/graph/ended_last.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/sanitized.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

// Threads of calls, queries and steps; of some the ends do not follow in time, as in a damaged file.
struct SomeRun {
  Trace trace;
  HostItems items;
};

SomeRun RandomThreads(std::mt19937_64& random) {
  SomeRun run;
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(1);
  const StringId name = builder.Intern("cudaLaunchKernel");
  const auto threads = static_cast<uint32_t>(2 + random() % 4);
  for (uint32_t t = 0; t < threads; ++t) {
    const TrackId thread = builder.FindOrAddThread(process, t + 1);
    const bool overlaps = random() % 3 == 0;
    int64_t at = static_cast<int64_t>(random() % 5);
    for (size_t call = random() % 30; call > 0; --call) {
      const auto lasts = static_cast<int64_t>(random() % 4);
      const ApiKind kind = random() % 5 == 0 ? ApiKind::kQuery : ApiKind::kLaunch;
      builder.AddApi({{at}, {at + (overlaps ? 4 * lasts : lasts)}, name, thread}, kind, 0);
      at += lasts + static_cast<int64_t>(random() % 3);
    }
  }
  run.trace = std::move(builder).Build(false);
  run.items.waits.emplace_back();
  for (int64_t mark = 0; mark < 40; mark += 7) run.items.marks.push_back(TraceTime{mark});
  for (uint32_t t = 0; t < run.trace.tracks.size(); ++t) {
    HostThread thread{TrackId{t}, {}};
    const auto [first, last] = run.trace.api.rows_of(TrackId{t});
    for (uint32_t call = first; call < last; ++call) {
      thread.items.push_back({NodeKind::kCall, call, 0});
    }
    for (uint32_t mark = 0; t == 0 && mark < run.items.marks.size(); ++mark) {
      thread.items.push_back({NodeKind::kStep, mark, 0});
    }
    std::stable_sort(
        thread.items.begin(), thread.items.end(), [&](const HostItem& a, const HostItem& b) {
          return run.items.Times(run.trace, a).begin < run.items.Times(run.trace, b).begin;
        });
    run.items.threads.push_back(std::move(thread));
  }
  return run;
}

std::optional<EndedLast::End> EndedLastByForce(const SomeRun& run, uint32_t thread,
                                               const Interval& within) {
  std::optional<EndedLast::End> found;
  for (uint32_t t = 0; t < run.items.threads.size(); ++t) {
    const std::vector<HostItem>& of_thread = run.items.threads[t].items;
    for (uint32_t item = 0; item < of_thread.size() && t != thread; ++item) {
      const HostItem& of = of_thread[item];
      if (of.kind == NodeKind::kStep || run.trace.api.kind[of.index] == ApiKind::kQuery) continue;
      const TraceTime end = run.items.Times(run.trace, of_thread[item]).end;
      if (end <= within.begin || end > within.end) continue;
      if (!found || end >= found->at) found = {end, t, item};
    }
  }
  return found;
}

TEST(EndedLast, IsTheOneThatBruteForceFindsForFewQuestionsAndForMany) {
  std::mt19937_64 random(11);
  for (int round = 0; round < testing::Rounds(400); ++round) {
    const SomeRun run = RandomThreads(random);
    const EndedLast few(run.trace, run.items, 0);
    const EndedLast many(run.trace, run.items, SIZE_MAX / 16);
    EndedLast::Near near;
    for (int question = 0; question < 60; ++question) {
      const auto thread = static_cast<uint32_t>(random() % run.items.threads.size());
      const auto begin = static_cast<int64_t>(random() % 60);
      const Interval within{{begin}, {begin + static_cast<int64_t>(random() % 20)}};
      const auto expected = EndedLastByForce(run, thread, within);
      for (const EndedLast* ended : {&few, &many}) {
        const auto found = ended->Within(thread, within, near);
        ASSERT_EQ(found.has_value(), expected.has_value());
        if (!found) continue;
        ASSERT_EQ(found->at, expected->at);
        ASSERT_EQ(found->thread, expected->thread);
        ASSERT_EQ(found->item, expected->item);
      }
    }
  }
}

}  // namespace
}  // namespace trainprof
