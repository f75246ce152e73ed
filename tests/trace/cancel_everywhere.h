// Cancels work at every moment at which it asks whether it is cancelled.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "trace/base/cancel.h"

namespace trainprof::testing {

// Runs `work` once to its end and then once for each of its cancel points: it has to end there with
// Cancelled, without a result and without asking again, that is, before another stage begins. For
// work that always does the same. Where jobs run beside each other (RunAll), `jobs`: each may ask once more.
inline void ExpectCancellableEverywhere(const std::function<void()>& work, int64_t least_points,
                                        int64_t jobs = 0) {
  std::atomic<int64_t> asked = 0;
  std::atomic<int64_t> cancel_at = INT64_MAX;
  const auto is_cancelled = [&] { return asked++ >= cancel_at; };
  {
    const CancelScope scope(is_cancelled);
    work();
  }
  const int64_t points = asked;
  EXPECT_GE(points, least_points);
  for (cancel_at = 0; cancel_at < points; ++cancel_at) {
    asked = 0;
    const CancelScope scope(is_cancelled);
    EXPECT_THROW(work(), Cancelled) << "at " << cancel_at;
    EXPECT_GT(asked, cancel_at);
    EXPECT_LE(asked, cancel_at + 1 + jobs);
  }
}

}  // namespace trainprof::testing
