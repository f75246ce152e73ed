#include "trace/base/held_signals.h"

#include <gtest/gtest.h>

#include <functional>

#include "trace/base/parallel.h"
#include "trace/io/write_all.h"

namespace trainprof {
namespace {

uint64_t Mask() {
  uint64_t mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  return mask;
}

// A supervisor that held all signals back was ended by 32 once it had written its manifest.
TEST(HeldSignals, WhoeverHoldsThemBackStillDoesAfterAWriteOrAThread) {
  const uint64_t before = Mask();
  {
    const HeldSignals held(~uint64_t{0});
    const uint64_t all = Mask();
    EXPECT_NE(all & SignalBit(32), 0u);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(WriteAll(ends[1], "text"), 0);
    close(ends[0]);
    close(ends[1]);
    EXPECT_EQ(Mask(), all);
    const std::function<void()> jobs[] = {[] {}, [] {}};
    RunAll(jobs);
    EXPECT_EQ(Mask(), all);
  }
  EXPECT_EQ(Mask(), before);
}

TEST(HeldSignals, SwallowLeavesWhatWasHeldBefore) {
  const HeldSignals outer(SignalBit(SIGUSR1));
  {
    HeldSignals inner(SignalBit(SIGUSR1) | SignalBit(SIGUSR2));
    raise(SIGUSR1);
    raise(SIGUSR2);
    inner.Swallow();
    sigset_t pending;
    sigpending(&pending);
    EXPECT_TRUE(sigismember(&pending, SIGUSR1));
    EXPECT_FALSE(sigismember(&pending, SIGUSR2));
  }
  int taken = 0;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigwait(&set, &taken);
}

}  // namespace
}  // namespace trainprof
