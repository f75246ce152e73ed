#include "trace/recording/read/tick_converter.h"

#include <gtest/gtest.h>

#include <random>

namespace trainprof::recording {
namespace {

constexpr uint64_t kMillion = 1'000'000;

ClockSample At(uint64_t ticks, int64_t ns, uint64_t bracket = 50) {
  return {ticks, ns, ns, bracket};
}

TEST(TickConverter, MonotonicTicksAreNanoseconds) {
  const TickConverter clock(ClockKind::kMonotonic, {});
  EXPECT_EQ(clock.ToHost(123).ns, 123);
  EXPECT_EQ(clock.Error().ns, 0);
  EXPECT_TRUE(clock.RateIsKnown());
}

TEST(TickConverter, InterpolatesExactlyWhereDoublesWouldNot) {
  // 2.5 ticks a ns, half a year of uptime: a double's ulp is 2 ns there.
  const uint64_t t0 = 39'000'000'000'000'001;
  const int64_t n0 = 15'600'000'000'000'000;
  const TickConverter clock(ClockKind::kTsc,
                            {At(t0, n0), At(t0 + 250 * kMillion, n0 + 100 * 1'000'000)});
  EXPECT_EQ(clock.ToHost(t0).ns, n0);
  EXPECT_EQ(clock.ToHost(t0 + 5).ns, n0 + 2);
  EXPECT_EQ(clock.ToHost(t0 + 7).ns, n0 + 2);
  EXPECT_EQ(clock.ToHost(t0 + 250 * kMillion - 5).ns, n0 + 100 * 1'000'000 - 2);
}

TEST(TickConverter, GoesOnWithTheMeanRateOutsideTheSamples) {
  const TickConverter clock(ClockKind::kTsc,
                            {At(10 * kMillion, 5'000'000), At(20 * kMillion, 10'000'000)});
  EXPECT_EQ(clock.ToHost(8 * kMillion).ns, 4'000'000);
  EXPECT_EQ(clock.ToHost(30 * kMillion).ns, 15'000'000);
  EXPECT_EQ(clock.ToHost(0).ns, 0);
}

TEST(TickConverter, SetsAsideSamplesThatContradictOrWereInterrupted) {
  std::vector<ClockSample> samples;
  for (uint64_t i = 0; i < 20; ++i) {
    samples.push_back(At(i * 100 * kMillion, static_cast<int64_t>(i) * 50'000'000));
  }
  samples.push_back(At(550 * kMillion, 999'000'000'000));               // another machine's time
  samples.push_back(At(650 * kMillion, 325'000'000 + 40'000, 90'000));  // interrupted for 90,000
  samples.push_back({UINT64_MAX, INT64_MIN, 0, 0});
  const TickConverter clock(ClockKind::kTsc, samples);
  EXPECT_EQ(clock.ToHost(650 * kMillion).ns, 325'000'000);
  EXPECT_EQ(clock.ToHost(560 * kMillion).ns, 280'000'000);
  EXPECT_EQ(clock.Error().ns, 12);  // half of 50 ticks at 2 ticks a ns
}

TEST(TickConverter, WithOneSampleTheRateIsAGuess) {
  const TickConverter clock(ClockKind::kTsc, {At(1000, 500)});
  EXPECT_FALSE(clock.RateIsKnown());
  EXPECT_EQ(clock.ToHost(1100).ns, 600);
  EXPECT_EQ(clock.ToHost(900).ns, 400);
  EXPECT_FALSE(TickConverter(ClockKind::kTsc, {}).RateIsKnown());
}

TEST(TickConverter, NeverRunsBackwardsOnRandomSamples) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ClockSample> samples;
    uint64_t ticks = random() % (1u << 30);
    int64_t ns = static_cast<int64_t>(random() % (1u << 30));
    for (int i = 0; i < 30; ++i) {
      samples.push_back(At(ticks, ns, random() % 300));
      ticks += 1 + random() % (20 * kMillion);
      ns += 1 + static_cast<int64_t>(random() % (20 * kMillion));
    }
    const TickConverter clock(ClockKind::kTsc, samples);
    HostTime before = clock.ToHost(0);
    const uint64_t end = ticks * 2;
    for (uint64_t t = 0; t < end; t += 1 + random() % (end / 500)) {
      const HostTime now = clock.ToHost(t);
      ASSERT_GE(now, before) << "round " << round << " at " << t;
      before = now;
    }
  }
}

TEST(TickConverter, SurvivesAnySamples) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 1000; ++round) {
    std::vector<ClockSample> samples;
    for (uint64_t i = random() % 6; i > 0; --i) {
      samples.push_back({random() >> random() % 64, static_cast<int64_t>(random() >> random() % 64),
                         0, random() >> random() % 64});
    }
    const TickConverter clock(ClockKind::kTsc, samples);
    for (int i = 0; i < 20; ++i) clock.ToHost(random() >> random() % 64);
    clock.ToHost(0);
    clock.ToHost(UINT64_MAX);
  }
}

}  // namespace
}  // namespace trainprof::recording
