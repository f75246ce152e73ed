// Launches that a window's end waits for (collectors/cupti/open_launches.h).
#include <gtest/gtest.h>

#include <memory>

#include "collectors/cupti/open_launches.h"

namespace trainprof::collectors {
namespace {

class CuptiOpenLaunches : public ::testing::Test {
 protected:
  const std::unique_ptr<OpenLaunches> open_ = std::make_unique<OpenLaunches>();
};

TEST_F(CuptiOpenLaunches, AreThoseWithoutAnswerInAnyOrder) {
  open_->Launched(1);
  open_->Launched(2);
  open_->Answered(3);
  open_->Launched(3);
  EXPECT_EQ(open_->count(), 2u);
  open_->Answered(1);
  open_->Answered(1);
  EXPECT_EQ(open_->count(), 1u);
  open_->Launched(2 + OpenLaunches::kPlaces);  // in whose place it stands
  EXPECT_EQ(open_->count(), 1u);
  open_->Answered(2);
  EXPECT_EQ(open_->count(), 1u);
  open_->Forget();
  EXPECT_EQ(open_->count(), 0u);
}

TEST_F(CuptiOpenLaunches, OfACaptureAreNotWaitedFor) {
  open_->Launched(1);
  open_->Launched(12);  // whose buffer came before that of the thread that captures
  open_->CaptureBegan(10, 100);
  EXPECT_EQ(open_->count(), 1u);
  open_->Launched(11);
  open_->Launched(12);
  EXPECT_EQ(open_->count(), 1u);
  open_->CaptureEnded(20, 100);
  open_->Launched(15);  // whose buffer came late
  EXPECT_EQ(open_->count(), 1u);
  open_->Launched(21);
  EXPECT_EQ(open_->count(), 2u);
}

TEST_F(CuptiOpenLaunches, OfCapturesThatOverlapAreNotWaitedFor) {
  open_->CaptureBegan(10, 100);
  open_->CaptureBegan(12, 200);
  open_->CaptureEnded(20, 200);
  open_->Launched(21);
  EXPECT_EQ(open_->count(), 0u);
  open_->CaptureEnded(30, 300);  // by a third thread: the one that is open
  open_->Launched(31);
  EXPECT_EQ(open_->count(), 1u);
}

// From a buffer that CUPTI has, and once more when it is delivered.
TEST_F(CuptiOpenLaunches, AreNotedOnceHoweverOftenTheyAreTold) {
  for (int again = 0; again < 2; ++again) {
    open_->Launched(5);
    open_->CaptureBegan(10, 100);
    open_->Launched(11);
    open_->CaptureEnded(12, 100);
    open_->CaptureBegan(20, 100);  // goes on
    EXPECT_EQ(open_->count(), 1u);
  }
  open_->CaptureEnded(22, 100);
  open_->Launched(23);
  EXPECT_EQ(open_->count(), 2u);
}

TEST_F(CuptiOpenLaunches, OfACaptureThatBeganUnseenAreForgotten) {
  open_->Launched(5);
  open_->CaptureEnded(10, 100);
  EXPECT_EQ(open_->count(), 0u);
  open_->Launched(11);
  EXPECT_EQ(open_->count(), 1u);
}

TEST_F(CuptiOpenLaunches, AreWaitedForAfterMoreCapturesThanAreKept) {
  for (uint32_t i = 1; i <= 100; ++i) {
    open_->CaptureBegan(10 * i, 100);
    open_->Launched(10 * i + 1);
    open_->CaptureEnded(10 * i + 2, 100);
    open_->Launched(10 * i + 3);
    EXPECT_EQ(open_->count(), i);
  }
}

}  // namespace
}  // namespace trainprof::collectors
