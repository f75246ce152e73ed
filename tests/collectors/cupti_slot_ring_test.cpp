// The buffers that CUPTI is given (collectors/cupti/slot_ring.h), without a CUPTI.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <vector>

#include "collectors/cupti/slot_ring.h"
#include "tests/support/scratch_folder.h"

namespace trainprof::collectors {
namespace {

class CuptiSlotRing : public ::testing::Test {
 protected:
  CuptiSlotRing() {
    int error = 0;
    EXPECT_TRUE(ring_->Open((folder_.path() / "segment").c_str(), "", &error)) << error;
  }

  trainprof::testing::ScratchFolder folder_;
  std::unique_ptr<SlotRing> ring_ = std::make_unique<SlotRing>();  // of zeros
};

// As torch.profiler's come to us when it leaves CUPTI to us: ours was unmapped once, whoever's it was.
TEST_F(CuptiSlotRing, AnotherClientsBufferIsLeftAlone) {
  void* theirs =
      mmap(nullptr, kSlotBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(theirs, MAP_FAILED);
  EXPECT_FALSE(ring_->Deliver(static_cast<char*>(theirs), 1000));
  EXPECT_EQ(ring_->lost_bytes(), 0u);
  EXPECT_EQ(mprotect(theirs, kSlotBytes, PROT_READ), 0) << "it is mapped no more";
  munmap(theirs, kSlotBytes);
}

TEST_F(CuptiSlotRing, RunsLowWhileCuptiHoldsMostOfIt) {
  std::vector<char*> held;
  for (uint32_t i = 0; i < kMostSlots / 4 * 3; ++i) {
    EXPECT_FALSE(ring_->RunsLow()) << i;
    held.push_back(ring_->Take(true));
    ASSERT_NE(held.back(), nullptr);
  }
  EXPECT_TRUE(ring_->RunsLow());
  EXPECT_TRUE(ring_->Deliver(held.back(), 8));
  EXPECT_FALSE(ring_->RunsLow()) << "what is delivered needs no flush";
  EXPECT_NE(ring_->Take(true), nullptr);
  EXPECT_TRUE(ring_->RunsLow());
}

TEST_F(CuptiSlotRing, BeyondItsBoundBuffersAreReleasedOnceAndTheirRecordsCounted) {
  for (uint32_t i = 0; i < kMostSlots; ++i) ASSERT_NE(ring_->Take(false), nullptr);
  EXPECT_EQ(ring_->Take(true), nullptr);
  char* const beyond = ring_->Take(false);
  ASSERT_NE(beyond, nullptr);
  beyond[kSlotBytes - 1] = 1;
  EXPECT_FALSE(ring_->Deliver(beyond, 1000));
  EXPECT_EQ(ring_->lost_bytes(), 1000u);
  EXPECT_FALSE(ring_->Deliver(beyond, 1000));
  EXPECT_EQ(ring_->lost_bytes(), 1000u);
  EXPECT_NE(mprotect(beyond, kSlotBytes, PROT_READ), 0) << "it is mapped still";
}

}  // namespace
}  // namespace trainprof::collectors
