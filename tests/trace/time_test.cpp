// Typed time: clocks do not mix, units convert exactly.
#include "trace/base/time.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <concepts>
#include <cstdio>
#include <random>

#include "trace/base/ids.h"

namespace trainprof {
namespace {

template <class A, class B>
concept Subtracts = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Compares = requires(A a, B b) {
  a < b;
};

static_assert(Subtracts<HostTime, HostTime>);
static_assert(!Subtracts<HostTime, DeviceTime>);
static_assert(!Subtracts<TraceTime, HostTime>);
static_assert(Compares<DeviceTime, DeviceTime>);
static_assert(!Compares<HostTime, DeviceTime>);
static_assert(!std::convertible_to<HostTime, DeviceTime>);
static_assert(!std::convertible_to<StringId, TrackId>);
static_assert(!std::convertible_to<uint32_t, Row>);

TEST(Time, UnitsConvertToWholeNanoseconds) {
  EXPECT_EQ(Microseconds(3), Nanoseconds(3'000));
  EXPECT_EQ(Milliseconds(3), Microseconds(3'000));
  EXPECT_EQ(Seconds(3), Milliseconds(3'000));
  EXPECT_DOUBLE_EQ(Nanoseconds(176'270'001).ToMilliseconds(), 176.270001);
  EXPECT_DOUBLE_EQ(Milliseconds(1500).ToSeconds(), 1.5);
}

TEST(Time, PointsOfOneClockGiveADuration) {
  const TraceTime begin{100};
  const TraceTime end = begin + Microseconds(2);
  EXPECT_EQ(end - begin, Nanoseconds(2'000));
  EXPECT_EQ(end - Nanoseconds(2'000), begin);
  EXPECT_LT(begin, end);
}

// Up to 2^33 ms (99 days) a double tells the nanoseconds of a millisecond apart: what is printed
// with six decimals is exact.
TEST(Time, MillisecondsPrintTheirNanoseconds) {
  std::mt19937_64 random(12);
  std::uniform_int_distribution<int64_t> any(0, (int64_t{1} << 33) * 1'000'000 - 1);
  for (int i = 0; i < 100'000; ++i) {
    const int64_t ns = any(random) >> random() % 50;
    char printed[40];
    char exact[40];
    std::snprintf(printed, sizeof(printed), "%.6f", Nanoseconds(ns).ToMilliseconds());
    std::snprintf(exact, sizeof(exact), "%" PRId64 ".%06" PRId64, ns / 1'000'000, ns % 1'000'000);
    ASSERT_STREQ(printed, exact);
  }
}

// A double holds 2^53: adjacent nanoseconds of today's unix time would fall together.
TEST(Time, KeepsAdjacentNanosecondsOfUnixTimeApart) {
  const TraceTime now{1'765'432'109'876'543'211};
  EXPECT_EQ((now + Nanoseconds(1)) - now, Nanoseconds(1));
  EXPECT_NE(now, now + Nanoseconds(1));
}

}  // namespace
}  // namespace trainprof
