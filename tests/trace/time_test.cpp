// Typed time: clocks do not mix, units convert exactly.
#include "trace/time.h"

#include <gtest/gtest.h>

#include <concepts>

#include "trace/ids.h"

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

// A double holds 2^53: adjacent nanoseconds of today's unix time would fall together.
TEST(Time, KeepsAdjacentNanosecondsOfUnixTimeApart) {
  const TraceTime now{1'765'432'109'876'543'211};
  EXPECT_EQ((now + Nanoseconds(1)) - now, Nanoseconds(1));
  EXPECT_NE(now, now + Nanoseconds(1));
}

}  // namespace
}  // namespace trainprof
