#include "viewer/timeline/background.h"

#include <gtest/gtest.h>

#include <thread>

namespace trainprof {
namespace {

// Waits for whoever wants to know, as a frame does: asks again and again.
template <class Ask>
auto WaitFor(Ask ask) {
  auto answer = ask();
  for (; !answer; answer = ask()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return answer;
}

int UntilCancelled() {
  for (;;) {
    CancelPoint();
    std::this_thread::yield();
  }
}

TEST(BackgroundJob, GivesItsValueOnce) {
  BackgroundJob<int> job;
  EXPECT_FALSE(job.busy());
  EXPECT_EQ(job.Take(), std::nullopt);
  job.Start([] { return 7; });
  EXPECT_EQ(WaitFor([&] { return job.Take(); }), 7);
  EXPECT_FALSE(job.busy());
  EXPECT_EQ(job.Take(), std::nullopt);
}

TEST(BackgroundJob, GivesNothingWhenItWasCancelled) {
  BackgroundJob<int> job;
  job.Start(UntilCancelled);
  EXPECT_TRUE(job.busy());
  EXPECT_EQ(job.Take(), std::nullopt);
  job.Cancel();
  WaitFor([&] {
    EXPECT_EQ(job.Take(), std::nullopt);
    return !job.busy();
  });
  job.Start(UntilCancelled);  // and ends with the job
}

TEST(Background, NeverShowsTheValueOfAnotherKey) {
  Background<int, int> square;
  const auto get = [&](int key, bool at_once = false) {
    return square.Get(key, at_once, [key] { return key * key; });
  };
  EXPECT_EQ(*get(3, true), 9);
  const uint64_t generation = square.generation();
  EXPECT_EQ(get(4), nullptr);
  EXPECT_TRUE(square.busy());
  EXPECT_EQ(*WaitFor([&] { return get(4); }), 16);
  EXPECT_FALSE(square.busy());
  EXPECT_NE(square.generation(), generation);
  EXPECT_EQ(square.generation(), generation + 1);
}

TEST(Background, AnotherKeyCancelsTheOneBefore) {
  Background<int, int> value;
  EXPECT_EQ(value.Get(1, false, UntilCancelled), nullptr);
  const auto second = [&] { return value.Get(2, false, [] { return 2; }); };
  EXPECT_EQ(*WaitFor(second), 2);
  // Also the first one's, when that is wanted again before it has ended.
  EXPECT_EQ(value.Get(1, false, UntilCancelled), nullptr);
  EXPECT_EQ(value.Get(2, false, UntilCancelled), nullptr);
  const auto first = [&] { return value.Get(1, false, [] { return 1; }); };
  EXPECT_EQ(*WaitFor(first), 1);
}

}  // namespace
}  // namespace trainprof
