// When a thread is taken to go on behind another one, and when that is chance.
#include "analysis/graph/hand_overs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/graph/build.h"
#include "analysis/host/timeline.h"
#include "tests/support/trace_script.h"

namespace trainprof {
namespace {

int64_t HandOversIn(const std::string& script) {
  const Trace trace = TraceFromScript(script);
  const Graph graph = BuildGraph(trace, FindSteps(trace), FindBlockingCalls(trace));
  return std::count(graph.edge_kind.begin(), graph.edge_kind.end(), EdgeKind::kHandOver);
}

// A range that was begun in the pause, and goes on: the thread was at work, and woken by nobody.
TEST(HandOvers, AThreadWithinItsOwnRangeWasNotWokenByAnother) {
  const auto hand_overs = [](const char* range) {
    return HandOversIn(fmt::format(R"(
      thread 1
      repeat 8 every 80000
        step 0 80000 step
        call 20 3003 cudaStreamSynchronize | corr=2
      end
      thread 2
      repeat 8 every 80000
        call 10 13 cudaLaunchKernel | corr=1
        {}
        call 7505 7508 cudaLaunchKernel | corr=3
      end
      stream 0 7
      repeat 8 every 80000
        kernel 15 3000 forward | corr=1
        kernel 7510 8005 backward | corr=3
      end)",
                                   range));
  };
  EXPECT_EQ(hand_overs(""), hand_overs("annotation 400 7500 tokenize") + 8);
}

// Nothing stands before a thread's first call: that is no pause, however early the call is.
TEST(HandOvers, TimesMayBeBelowZero) {
  EXPECT_EQ(HandOversIn(R"(
      thread 1
      call -40 -30 cudaLaunchKernel | corr=1
      thread 2
      call -35 -25 cudaLaunchKernel | corr=2
      stream 0 7
      kernel -20 10 forward | corr=1)"),
            0);
}

// It copies every 4 ms, whatever the loop does, which pauses for longer.
TEST(HandOvers, ALoggerHandsOverToNobody) {
  EXPECT_EQ(HandOversIn(R"(
      thread 1
      repeat 6 every 16300
        step 0 16300 step
        call 20 23 cudaLaunchKernel | corr=1
      end
      thread 2
      repeat 24 every 4050
        call 50 53 cudaMemcpyAsync | corr=2
      end
      stream 0 7
      repeat 6 every 16300
        kernel 30 1000 forward | corr=1
      end
      stream 0 9
      repeat 24 every 4050
        copy 60 62 DtoH 4 | corr=2
      end)"),
            0);
}

// It looks at something every 4 ms, mostly while the loop waits for its loader; three times the loop was interrupted then
// between two launches, and went on 3 us behind it.
TEST(HandOvers, ALoggerWhoseCallsEndInWaitsForInputHandsOverToNobody) {
  EXPECT_EQ(HandOversIn(R"(
      thread 1
      repeat 24 every 4000
        step 0 4000 step
        annotation 50 3890 data_wait
        call 3895 3898 cudaLaunchKernel | corr=1
      end
      repeat 3 every 32000
        call 3964 3967 cudaLaunchKernel | corr=2
      end
      thread 2
      repeat 24 every 4000
        call 1990 2000 cudaStreamSynchronize | corr=3
      end
      repeat 3 every 32000
        call 3950 3961 cudaStreamSynchronize | corr=4
      end
      stream 0 7
      repeat 24 every 4000
        kernel 3900 3960 forward | corr=1
      end
      repeat 3 every 32000
        kernel 3970 3980 backward | corr=2
      end)"),
            0);
}

// It launches many kernels, and the other thread goes on 40 us behind the last one.
TEST(HandOvers, AThreadThatStopsHandsOver) {
  const auto with_look = [](const char* look) {
    return HandOversIn(fmt::format(R"(
      thread 1
      repeat 6 every 10000
        step 0 10000 step
        {}
        call 20 23 cudaLaunchKernel | corr=1
        call 3450 3453 cudaLaunchKernel | corr=5
      end
      thread 2
      repeat 6 every 10000
        call 60 63 cudaLaunchKernel | corr=2
        call 1700 1703 cudaLaunchKernel | corr=3
        call 3400 3410 cudaLaunchKernel | corr=4
      end
      stream 0 7
      repeat 6 every 10000
        kernel 30 1000 forward | corr=1
        kernel 1000 2000 backward | corr=2
        kernel 2000 3000 backward | corr=3
        kernel 3460 4000 backward | corr=4
        kernel 4000 4500 adam | corr=5
      end)",
                                   look));
  };
  EXPECT_EQ(with_look(""), 11) << "but the first time that the second thread goes on";
  EXPECT_EQ(with_look("cpu 0 10000 | used=9000 waits=1"), 11);
  EXPECT_EQ(with_look("cpu 0 10000 | used=9000 interruptions=3"), 5)
      << "it never waited: nobody woke it";
}

}  // namespace
}  // namespace trainprof
